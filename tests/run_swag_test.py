"""Tests of bert/tasks/multiple_choice.py and run_swag.py: questions, and whole runs on tiny data
and a tiny model.

Alone: python -m pytest tests/run_swag_test.py (half a minute, most of it compiling graphs)
"""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling, run_swag, tokenization
from bert.checkpoints import load_report
from bert.fine_tuning.model_fn import model_fn_of
from bert.fine_tuning.task import DataSet
from bert.model import heads
from bert.model.task_heads import ChoiceHead
from bert.model.variables import VariableStore, use_store
from bert.scripts import run_settings
from bert.tasks import multiple_choice
from bert.training.estimator import ModeKeys
from tests.kit import task_outputs, tiny_bert
from tests.kit.script_runs import Script, Trained, results_in, table
from tests.kit.tiny_choices import CONFIG, SIZES, VOCAB, questions, write_csv, write_jsonl

script = Script(run_swag)
run, run_well, error_of = script.run, script.run_well, script.error_of


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict:
  """The flags of a tiny model, the same for every run."""
  return {
    **tiny_bert.write(tmp_path_factory.mktemp("model"), VOCAB, **SIZES),
    "max_seq_length": 24,
    "train_batch_size": 8,
    "learning_rate": 0.003,
  }


NUM_TRAIN, NUM_DEV, NUM_TEST = 48, 20, 11


@pytest.fixture(scope="module")
def trained(model, tmp_path_factory) -> Trained:
  """A run that trains, evaluates and predicts. Tests only read its folder."""
  folder = tmp_path_factory.mktemp("swag")
  write_csv(folder / "train.csv", questions(NUM_TRAIN, 1))
  write_csv(folder / "val.csv", questions(NUM_DEV, 2))
  unlabelled = [c for c in questions(1, 0)[0] if c != "label"]
  write_csv(folder / "test.csv", questions(NUM_TEST, 3), unlabelled)
  values = {**model, "data_dir": folder, "output_dir": folder / "out", "num_train_epochs": 12.0}
  done = run_well(**values, do_train=True, do_eval=True, do_predict=True)
  return Trained(values, folder / "out", done)


# ---------------------------------------------------------------------------------------------
# Reading.


def test_the_columns_of_swag(tmp_path):
  text = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\r\n"
    '0,v,1,"A b. She",A b.,She,gold,"goes, then ""stops"".",c,d,e,2\r\n'
    "1,v,2,F. ,F.,,gold,g,h,i,,0\r\n"
  )
  (tmp_path / "train.csv").write_bytes(text.encode())
  first, second = multiple_choice.read_swag_examples(tmp_path / "train.csv")
  assert first.context == "A b."
  assert first.choices == ['She goes, then "stops".', "She c", "She d", "She e"]
  assert (first.guid, first.label) == ("train-1", 2)
  assert (second.context, second.choices, second.label) == ("F.", ["g", "h", "i"], 0)


def test_the_same_question_in_other_formats(tmp_path):
  row = {"sent1": "A.", "sent2": "B", "ending0": 'c "d', "ending1": "e", "label": 1}
  csv_path = write_csv(tmp_path / "a.csv", [row])
  tsv_path = tmp_path / "a.tsv"
  tsv_path.write_text("\t".join(row) + "\n" + "\t".join(map(str, row.values())) + "\n")
  jsonl_path = write_jsonl(tmp_path / "a.jsonl", [row])
  found = [repr(multiple_choice.read_swag_examples(p)) for p in (csv_path, tsv_path, jsonl_path)]
  assert found[0] == found[1] == found[2]
  assert found[0] == "[ChoiceExample('train-1', 'A.', ['B c \"d', 'B e'], 1)]"
  only = {"startphrase": "A. B", "ending0": "c", "ending1": "d"}
  (question,) = multiple_choice.read_swag_examples(
    write_jsonl(tmp_path / "b.jsonl", [only]), "test", False
  )
  assert (question.context, question.choices, question.label) == ("A. B", ["c", "d"], None)


def test_features_of_a_question(model):
  tokenizer = tokenization.FullTokenizer(model["vocab_file"])
  question = multiple_choice.ChoiceExample("x", "she takes", ["a pear", "a a saw ."], 1)
  (feature,) = multiple_choice.convert_examples_to_features([question], 3, 8, tokenizer)
  tokens = [[VOCAB[i] for i in ids if i] for ids in feature["input_ids"]]
  assert tokens == [
    ["[CLS]", "she", "takes", "[SEP]", "a", "pear", "[SEP]"],
    ["[CLS]", "she", "takes", "[SEP]", "a", "a", "saw", "[SEP]"],  # cut to 8
    [],
  ]
  assert feature["input_mask"] == [[1] * 7 + [0], [1] * 8, [0] * 8]
  assert feature["segment_ids"] == [[0] * 4 + [1] * 3 + [0], [0] * 4 + [1] * 4, [0] * 8]
  assert feature["choice_mask"] == [1, 1, 0]
  assert feature["label_ids"] == 1


# ---------------------------------------------------------------------------------------------
# One run, and every file it leaves.


@pytest.mark.ci
def test_it_learns(trained):
  results = results_in(trained.out / "eval_results.txt")
  assert list(results) == ["eval_accuracy", "eval_loss", "global_step", "loss"]
  assert results["eval_accuracy"] > 0.9
  assert results["global_step"] == 72
  header, *rows = table(trained.out / "predictions.tsv")
  assert header == ["id", "label", *(f"probability_{i}" for i in range(4)), "context", "choice"]
  assert [row[0] for row in rows] == [f"test-{i}" for i in range(1, NUM_TEST + 1)]
  probabilities = np.array([row[2:6] for row in rows], np.float32)
  np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
  chosen = [int(row[1]) for row in rows]
  assert chosen == probabilities.argmax(axis=1).tolist()
  right = [question["label"] for question in questions(NUM_TEST, 3)]
  assert np.mean(np.equal(chosen, right)) > 0.9


def test_the_head_is_a_single_vector(trained):
  shapes = dict(tf.train.list_variables(str(trained.out)))
  names = {n for n in shapes if not n.startswith("bert/") and not load_report.is_training_state(n)}
  assert names == {"output_weights"}
  assert shapes["output_weights"] == [1, 32]


def test_prediction_does_not_depend_on_batches_format_or_padding(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  rows = table(trained.out / "predictions.tsv")[1:]
  expected = np.array([row[2:6] for row in rows], np.float32)
  write_jsonl(tmp_path / "test.jsonl", questions(NUM_TEST, 3))
  for options in (
    {"predict_batch_size": 1},
    {"predict_batch_size": 4, "pad_to_max_length": True},
    {"test_file": tmp_path / "test.jsonl", "max_seq_length": 32},
  ):
    run_well(**{**values, **options}, do_predict=True)
    rows = table(tmp_path / "out" / "predictions.tsv")[1:]
    found = np.array([row[2:6] for row in rows], np.float32)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4, err_msg=str(options))


def test_batches_are_cut_to_their_longest_sequence(trained):
  examples = multiple_choice.read_swag_examples(trained.flags["data_dir"] / "train.csv", "dev")

  def input_fn_of(**values):
    task = run_swag.MultipleChoice(run_settings.SplitSettings(max_seq_length=24, **values))
    return task.input_fn(str(trained.out / "train.tf_record"), DataSet("dev", examples))

  batches = input_fn_of(), input_fn_of(pad_to_max_length=True)
  for cut, padded in zip(*(input_fn({"batch_size": 5}) for input_fn in batches), strict=True):
    assert cut["input_ids"].shape[1:] == (4, 16), "13 or 14 pieces, at a multiple of eight"
    assert padded["input_ids"].shape[1:] == (4, 24)
    assert cut.keys() == padded.keys()
    for name, value in cut.items():
      whole = padded[name].numpy()
      if name in ("input_ids", "input_mask", "segment_ids"):
        np.testing.assert_array_equal(value, whole[..., :16])
        assert not whole[..., 16:].any()
      else:
        np.testing.assert_array_equal(value, whole)


def test_questions_with_fewer_choices_and_files_with_more(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  rows = questions(8, 5, num_choices=6, fewer=True)
  values["test_file"] = write_csv(tmp_path / "six.csv", rows)
  values["dev_file"] = write_csv(tmp_path / "two.csv", questions(10, 6, num_choices=2))
  run_well(**values, do_eval=True, do_predict=True)
  header, *found = table(tmp_path / "out" / "predictions.tsv")
  assert len(header) == 2 + 6 + 2
  probabilities = np.array([row[2:8] for row in found], np.float32)
  assert (probabilities[1::2, 5] == 0).all(), "what is no choice has no probability"
  assert (probabilities[::2, 5] > 0).all()
  np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
  assert np.mean([int(r[1]) == q["label"] for r, q in zip(found, rows, strict=True)]) > 0.7
  assert results_in(tmp_path / "out" / "eval_results.txt")["eval_accuracy"] > 0.8


# ---------------------------------------------------------------------------------------------
# The model.


def test_logits_are_scores_of_single_sequences():
  """Each choice has the score it would have among any others, at any place."""
  config = modeling.BertConfig.from_dict(CONFIG)
  store, rng = VariableStore(1), np.random.default_rng(1)
  ids = rng.integers(5, len(VOCAB), [2, 3, 6]).astype(np.int32)

  def logits_of(ids, choice_mask):
    with use_store(store):
      ids = tf.constant(ids)
      inputs = ids, tf.ones_like(ids), tf.zeros_like(ids)
      features = {"choice_mask": tf.constant(choice_mask)}
      return task_outputs.logits(ChoiceHead(), config, False, *inputs, **features).numpy()

  logits = logits_of(ids, np.ones([2, 3], np.int32))
  assert logits.shape == (2, 3)
  assert np.ptp(logits) > 1e-3
  order = [2, 0, 1]
  other = logits_of(ids[:, order], np.array([[1, 1, 1], [1, 0, 1]], np.int32))
  np.testing.assert_allclose(other[0], logits[0, order], rtol=0, atol=1e-6)
  np.testing.assert_allclose(other[1], [logits[1, 2], -10000, logits[1, 1]], rtol=0, atol=1e-5)


def test_loss_is_the_cross_entropy_over_choices():
  config = modeling.BertConfig.from_dict({**CONFIG, "initializer_range": 0.5})
  store, rng = VariableStore(1), np.random.default_rng(1)
  ids = tf.constant(rng.integers(5, len(VOCAB), [4, 3, 6]), tf.int32)
  features = {
    "input_ids": ids,
    "input_mask": tf.ones_like(ids),
    "segment_ids": tf.zeros_like(ids),
    "choice_mask": tf.ones([4, 3], tf.int32),
    "label_ids": tf.constant([0, 2, 1, 1]),
    "is_real_example": tf.constant([1, 1, 1, 0]),
  }
  metrics = run_swag.MultipleChoice(None).evaluate
  model_fn = model_fn_of(ChoiceHead(), config, None, 1e-3, 1, 0, False, False, metric_fn=metrics)
  with use_store(store):
    evaluated = model_fn(features, None, ModeKeys.EVAL, {})
    probabilities = model_fn(features, None, ModeKeys.PREDICT, {}).predictions["probabilities"]
  chosen = probabilities.numpy()[range(4), [0, 2, 1, 1]]
  assert evaluated.loss.numpy() == pytest.approx(-np.log(chosen).mean(), rel=1e-5)
  metric_fn, tensors_ = evaluated.eval_metrics
  results = metric_fn(**{name: tensor.numpy() for name, tensor in tensors_.items()})
  assert results["eval_loss"] == pytest.approx(-np.log(chosen[:3]).mean(), rel=1e-5)
  right = probabilities.numpy()[:3].argmax(axis=1) == [0, 2, 1]
  assert results["eval_accuracy"] == pytest.approx(right.mean())


def test_a_row_without_any_choice_is_no_nan():
  with use_store(VariableStore(1)):
    logits = heads.get_choice_logits(tf.ones([4, 8]), tf.constant([[1, 0], [0, 0]]), False)
  assert np.isfinite(tf.nn.softmax(logits).numpy()).all()


# ---------------------------------------------------------------------------------------------
# What a user sees when something is wrong.

GOOD = "sent1,sent2,ending0,ending1,label\na,b,c,d,0\n"
# Changed flags ("{tmp}" is the test's folder), content of the training file, the message.
ERRORS = {
  "no data": ({"train_file": ""}, GOOD, "--train_file is missing: give it, or --data_dir"),
  "no such file": ({"train_file": "{tmp}/x.csv"}, GOOD, "{tmp}/x.csv: there is no such file."),
  "empty label": ({}, GOOD + "a,b,c,d,\n", "the label is '', but must be an integer"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_message_before_any_work(model, tmp_path, name):
  changes, content, expected = ERRORS[name]
  data = content if isinstance(content, bytes) else content.encode()
  (tmp_path / "train.csv").write_bytes(data)
  (tmp_path / "model").mkdir()
  values = {**model, "train_file": tmp_path / "train.csv", "output_dir": tmp_path / "out"}
  values = {**values, "do_train": True, **changes}
  values = {k: v.format(tmp=tmp_path) if isinstance(v, str) else v for k, v in values.items()}
  assert expected.format(tmp=tmp_path) in error_of(**values)
  assert not list(tmp_path.rglob("*.tf_record"))


def test_malformed_rows_can_be_left_out(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  rows = questions(4, 2)
  rows[1]["label"] = 9
  values["dev_file"] = write_csv(tmp_path / "dev.csv", rows)
  assert "line 3: the label is '9'" in error_of(**values, do_eval=True)
  done = run_well(**values, skip_bad_rows=True, do_eval=True)
  assert "Skipped 1 malformed row(s). The first: " in done.err
  assert "  Num examples = 3\n" in done.err


@pytest.mark.slow
def test_the_exported_model_chooses_from_texts_in_a_fresh_process(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  run_well(**values, do_export=True)
  rows = questions(NUM_TEST, 3)
  texts = {
    "context": [row["sent1"] for row in rows],
    "choices": [[f"{row['sent2']} {row[f'ending{j}']}" for j in range(4)] for row in rows],
  }
  code = (
    "import json, sys, tensorflow as tf, tensorflow_text\n"
    "model = tf.saved_model.load(sys.argv[1])\n"
    "texts = json.loads(sys.stdin.read())\n"
    "found = model(tf.constant(texts['context']), tf.constant(texts['choices']))\n"
    "print(json.dumps({name: value.numpy().tolist() for name, value in found.items()}))"
  )
  done = subprocess.run(
    [sys.executable, "-c", code, str(tmp_path / "out" / "export" / "task")],
    input=json.dumps(texts),
    capture_output=True,
    text=True,
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stderr
  found = json.loads(done.stdout)
  _, *predictions = table(trained.out / "predictions.tsv")
  assert found["choice"] == [int(row[1]) for row in predictions]
  ours = np.array([row[2:6] for row in predictions], np.float32)
  np.testing.assert_allclose(found["probabilities"], ours, atol=1e-5)


def test_another_task_in_the_folder_is_refused(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  assert "do_lower_case was True, now False" in error_of(
    **values, do_lower_case=False, do_eval=True
  )
