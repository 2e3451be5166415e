"""Tests of run_ner.py: whole runs on tiny data and a tiny model, as a user starts them.

Alone: python -m pytest tests/run_ner_test.py (under a minute, most of it compiling graphs)
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling, run_ner, tokenization
from bert.checkpoints import load_report
from bert.fine_tuning import engine
from bert.model import heads
from bert.model.task_heads import TokenHead
from bert.model.variables import VariableStore, use_store
from bert.predicting.predictor import Predictor
from bert.tasks import conll_files, label_schemes, tagging
from tests.kit import task_outputs, tiny_bert
from tests.kit.script_runs import OF_TRAINING, Script, Trained, json_lines, results_in
from tests.kit.tiny_entities import CONFIG, SIZES, VOCAB, sentences, write_conll

script = Script(run_ner)
run, run_well, error_of = script.run, script.run_well, script.error_of


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict:
  """The flags of a tiny model, the same for every run."""
  return {
    **tiny_bert.write(tmp_path_factory.mktemp("model"), VOCAB, **SIZES),
    "max_seq_length": 16,
    "train_batch_size": 8,
    "learning_rate": 0.003,
  }


NUM_TRAIN, NUM_DEV, NUM_TEST = 64, 20, 12


@pytest.fixture(scope="module")
def trained(model, tmp_path_factory) -> Trained:
  """A run that trains, evaluates and predicts. Tests only read its folder."""
  folder = tmp_path_factory.mktemp("ner")
  write_conll(folder / "train.conll", sentences(NUM_TRAIN, 1))
  write_conll(folder / "valid.txt", sentences(NUM_DEV, 2))
  write_conll(folder / "test.conll", sentences(NUM_TEST, 3))
  values = {**model, "data_dir": folder, "output_dir": folder / "out", "num_train_epochs": 12.0}
  values["seed"] = 3  # So small a model learns in so few steps from every other seed only.
  done = run_well(**values, do_train=True, do_eval=True, do_predict=True)
  return Trained(values, folder / "out", done)


# ---------------------------------------------------------------------------------------------
# One run, and every file it leaves.


@pytest.mark.ci
def test_it_learns(trained):
  results = results_in(trained.out / "eval_results.txt")
  assert results["eval_f1"] > 0.95
  assert results["eval_accuracy"] > 0.95
  assert results["eval_loss"] < 0.3
  assert list(results) == [
    *("eval_f1", "eval_precision", "eval_recall", "eval_accuracy", "eval_loss"),
    *("global_step", "loss", "eval_f1_LOC", "eval_f1_PER", "eval_precision_LOC"),
    *("eval_precision_PER", "eval_recall_LOC", "eval_recall_PER"),
    *("eval_support_LOC", "eval_support_PER"),
  ]
  dev = conll_files.read_conll(trained.flags["data_dir"] / "valid.txt")
  found = [entity for e in dev.examples for entity in label_schemes.entities_of(e.labels, "bio")]
  assert results["eval_support_LOC"] == sum(entity.type == "LOC" for entity in found)
  assert results["eval_support_PER"] == sum(entity.type == "PER" for entity in found)


def test_files_of_a_run(trained):
  names = {path.name for path in trained.out.iterdir() if "tfevents" not in path.name}
  names = {name for name in names if not name.startswith("model.ckpt")}
  record_files = {"train.tf_record", "eval.tf_record", "predict.tf_record"}
  manifests = {f".{name}.manifest.json" for name in record_files}
  results = {"eval_results.txt", "test_results.txt", "predictions.conll", "predictions.jsonl"}
  of_model = {"bert_config.json", "vocab.txt", "example.json", "label_map.json", *OF_TRAINING}
  assert names == {
    *record_files,
    *manifests,
    *results,
    *of_model,
    "checkpoint",
    "dev_summary.json",
    "eval",
  }
  label_map = json.loads((trained.out / "label_map.json").read_text())
  assert list(label_map) == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
  assert "entities\n" in trained.done.err, "the table of scores"


def test_checkpoint_has_the_names_of_the_originals_heads(trained):
  names = {name for name, _ in tf.train.list_variables(str(trained.out))}
  heads_ = {n for n in names if not n.startswith("bert/") and not load_report.is_training_state(n)}
  assert heads_ == {"output_weights", "output_bias"}


def test_predictions_are_the_file_with_one_more_column(trained):
  lines = (trained.flags["data_dir"] / "test.conll").read_text().splitlines()
  predicted = (trained.out / "predictions.conll").read_text().splitlines()
  assert len(lines) == len(predicted)
  for line, with_label in zip(lines, predicted, strict=True):
    if line:
      assert with_label.rsplit("\t", 1)[0] == line
    else:
      assert with_label == ""
  # The new column, read as another run's input would be, has the scores that were told.
  gold = conll_files.read_conll(trained.flags["data_dir"] / "test.conll")
  ours = conll_files.read_conll(trained.out / "predictions.conll")
  scores = tagging.score([e.labels for e in gold.examples], [e.labels for e in ours.examples])
  results = results_in(trained.out / "test_results.txt")
  assert scores["f1"] == pytest.approx(results["eval_f1"])
  assert scores["f1"] > 0.9


def test_entities_have_text_and_place(trained):
  lines = json_lines(trained.out / "predictions.jsonl")
  ours = conll_files.read_conll(trained.out / "predictions.conll")
  assert len(lines) == NUM_TEST
  for line, example in zip(lines, ours.examples, strict=True):
    assert line["text"] == " ".join(example.words)
    entities = label_schemes.entities_of(example.labels, "bio")
    assert [(e["type"], e["first_word"], e["last_word"] + 1) for e in line["entities"]] == entities
    for entity in line["entities"]:
      assert line["text"][entity["start"] : entity["end"]] == entity["text"]
      words = example.words[entity["first_word"] : entity["last_word"] + 1]
      assert entity["text"] == " ".join(words)
      assert 0 < entity["probability"] <= 1
  assert sum(len(line["entities"]) for line in lines) > NUM_TEST


def test_long_sentences_are_read_through_windows(trained):
  """Sentences of up to 30 pieces, 14 in a window: else words would be missing or cut off."""
  records = list(tf.data.TFRecordDataset(str(trained.out / "predict.tf_record")))
  assert len(records) > NUM_TEST
  is_word = 0
  for record in records:
    feature = tf.train.Example.FromString(record.numpy()).features.feature
    is_word += sum(feature["word_mask"].int64_list.value)
  assert is_word == sum(len(rows) for rows in sentences(NUM_TEST, 3))


# ---------------------------------------------------------------------------------------------
# Going on: another call, a stopped run, evaluation in between.


@pytest.mark.ci
def test_prediction_in_another_call_and_without_labels(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  words = [[(word, "O") for word, _ in rows] for rows in sentences(NUM_TEST, 3)]
  values["test_file"] = write_conll(tmp_path / "words.txt", words, columns="{word}")
  (tmp_path / "out" / "test_results.txt").unlink()
  for options in (
    {},
    {"predict_batch_size": 1},  # batches as short as their only sentence
    {"pad_to_max_length": True, "predict_batch_size": 3},
  ):
    run_well(**values, **options, do_predict=True)
    assert not (tmp_path / "out" / "test_results.txt").exists()
    found = (tmp_path / "out" / "predictions.conll").read_text()
    expected = [
      f"{line.split(chr(9))[0]} {line.split(chr(9))[2]}" if line else ""
      for line in (trained.out / "predictions.conll").read_text().splitlines()
    ]
    assert found.splitlines() == expected
  fresh = {**values, "init_checkpoint": trained.out, "output_dir": tmp_path / "fresh"}
  run_well(**fresh, do_predict=True)
  assert (tmp_path / "fresh" / "predictions.conll").read_text() == found


def test_another_set_of_labels_is_refused(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  labels = "O,B-PER,I-PER,B-LOC,I-LOC"
  message = error_of(**values, labels=labels, do_train=True)
  assert "labels was ['O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER'], now ['O', 'B-PER'" in message


@pytest.mark.slow
def test_the_exported_model_tags_texts(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  run_well(**values, do_export=True)
  texts = [line["text"] for line in json_lines(trained.out / "predictions.jsonl")]
  found = Predictor.load(str(tmp_path / "out" / "export"))(texts)
  ours = conll_files.read_conll(trained.out / "predictions.conll").examples
  for text, answer, example in zip(texts, found, ours, strict=True):
    assert answer["words"] == example.words
    places = zip(answer["starts"], answer["ends"], strict=True)
    assert [text[a:b] for a, b in places] == answer["words"]
    entities = label_schemes.entities_of(answer["tags"], "bio")
    assert entities == label_schemes.entities_of(example.labels, "bio")


# ---------------------------------------------------------------------------------------------
# Other files.


@pytest.mark.usefixtures("fake_estimator")
@pytest.mark.parametrize(
  ("scheme", "options", "columns"),
  [
    ("bioes", {"separator": "tab", "token_column": 1, "label_column": 0}, "{label}\t{word}\tNN"),
    ("iob1", {"model_scheme": "bioes", "label_column": 2}, "{word}  NN \t {label}  x"),
    ("bilou", {"separator": "|"}, "{word}|{label}"),
    ("plain", {}, "{word} {label}"),
  ],
)
def test_schemes_and_columns(model, tmp_path, scheme, options, columns):
  for name, count in (("train", 24), ("dev", 4)):
    write_conll(tmp_path / f"{name}.conll", sentences(count, count), scheme, columns)
  values = {**model, **options, "label_scheme": scheme, "data_dir": tmp_path}
  out = tmp_path / "out"
  values.update(output_dir=out, test_file=tmp_path / "dev.conll")
  done = run_well(**values, do_train=True, do_eval=True, do_predict=True)
  assert "violate the scheme" not in done.err
  assert (
    list(json.loads((out / "label_map.json").read_text()))[:5]
    == {
      "bioes": ["O", "B-LOC", "I-LOC", "E-LOC", "S-LOC"],
      "iob1": ["O", "B-LOC", "I-LOC", "E-LOC", "S-LOC"],
      "bilou": ["O", "B-LOC", "I-LOC", "L-LOC", "U-LOC"],
      "plain": ["LOC", "O", "PER"],
    }[scheme]
  )
  # What is written is of the file's scheme, and evaluation and prediction agree.
  lines = (out / "predictions.conll").read_text().splitlines()
  gold = (tmp_path / "dev.conll").read_text().splitlines()
  assert [line[: len(old.rstrip())] for line, old in zip(lines, gold, strict=True)] == [
    line.rstrip() for line in gold
  ]
  found = {(line.split() if scheme != "bilou" else line.split("|"))[-1] for line in lines if line}
  assert len(found) > 2
  for label in found:
    label_schemes.split_label(label, scheme)
  results = [results_in(out / f"{name}_results.txt") for name in ("eval", "test")]
  for key in results[1]:
    assert results[0][key] == results[1][key]


def test_types_that_training_lacks_are_missed_and_not_an_error(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  rows = [[("ada", "B-MISC"), ("lives", "O")], *sentences(3, 4)]
  values["dev_file"] = write_conll(tmp_path / "dev.conll", rows)
  done = run_well(**values, do_eval=True)
  assert "the model has no label for B-MISC." in done.err
  results = results_in(tmp_path / "out" / "eval_results.txt")
  assert results["eval_recall_MISC"] == 0
  assert results["eval_support_MISC"] == 1


def test_no_token_is_dropped_whatever_it_consists_of(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  strange = ["\u200b", "\x01", "\ufe0f", "a" * 300, "." * 50, "\u00a0", "\U0001f600", "#", "-"]
  text = "-DOCSTART- O\n\n" + "\n".join(strange) + "\n \t\n\nada\r\n\r\nlondon"
  values["test_file"] = tmp_path / "strange.txt"
  values["test_file"].write_bytes(text.encode())
  run_well(**values, do_predict=True)
  found = (tmp_path / "out" / "predictions.conll").read_bytes().decode().split("\n")
  assert found[-1] == ""
  assert found[:2] == ["-DOCSTART- O O", ""]
  for word, line in zip(strange, found[2:], strict=False):
    assert line.rsplit(" ", 1)[0] == word
  assert found[11:13] == [" \t", ""]
  assert found[13].startswith("ada ")
  assert found[14] == ""
  assert found[15].startswith("london ")
  assert len(found) == 17
  ids = [line["id"] for line in json_lines(tmp_path / "out" / "predictions.jsonl")]
  assert ids == ["test-1", "test-2", "test-3"]


def test_batches_for_a_tpu_are_filled_with_windows_without_words(model):
  example = conll_files.TaggedSentence("x", ["ada", "lives"], ["B-PER", "O"])
  tokenizer = tokenization.FullTokenizer(model["vocab_file"])
  features = tagging.convert_examples_to_features([example] * 5, ["O"], "bio", 6, tokenizer)
  filled = list(engine.padded_to_batch(features, 4, lambda: tagging.padding_features(6)))
  assert len(filled) == 8
  assert [sum(feature.word_mask) for feature in filled] == [2] * 5 + [0] * 3
  assert [max(feature.label_ids) for feature in filled] == [0] * 5 + [-1] * 3


# ---------------------------------------------------------------------------------------------
# The model.


def logits_of(config, store, ids, mask, is_training=False):
  with use_store(store):
    segments = tf.zeros_like(ids)
    inputs = tf.constant(ids), tf.constant(mask), segments
    return task_outputs.logits(TokenHead(3), config, is_training, *inputs).numpy()


def test_logits_do_not_depend_on_padding():
  config = modeling.BertConfig.from_dict({**CONFIG, "initializer_range": 0.5})
  store, rng = VariableStore(1), np.random.default_rng(1)
  ids = rng.integers(5, len(VOCAB), [4, 7]).astype(np.int32)
  mask = np.ones_like(ids)
  alone = logits_of(config, store, ids, mask)
  assert alone.shape == (4, 7, 3)
  assert np.ptp(alone[0, :, 0]) > 0.005, "logits that are all alike would prove nothing"
  wide_mask = np.pad(mask, [(0, 0), (0, 9)])
  garbage = np.pad(ids, [(0, 0), (0, 9)], constant_values=7)
  padded = logits_of(config, store, garbage, wide_mask)
  np.testing.assert_allclose(padded[:, :7], alone, rtol=0, atol=1e-5)


def test_loss_is_the_mean_over_the_words_alone():
  rng = np.random.default_rng(1)
  logits = rng.normal(size=[2, 4, 3]).astype(np.float32)
  labels = np.array([[-1, 2, -1, 0], [1, -1, -1, -1]], np.int32)
  loss, per_token = heads.get_token_loss(tf.constant(logits), tf.constant(labels))
  log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
  wanted = -np.array([log_probs[0, 1, 2], log_probs[0, 3, 0], log_probs[1, 0, 1]])
  assert loss.numpy() == pytest.approx(wanted.mean(), rel=1e-6)
  np.testing.assert_allclose(per_token.numpy()[labels >= 0], wanted, rtol=1e-5)
  assert (per_token.numpy()[labels < 0] == 0).all()
  assert heads.get_token_loss(tf.constant(logits), tf.constant(labels * 0 - 1))[0].numpy() == 0


# ---------------------------------------------------------------------------------------------
# What a user sees when something is wrong.

# Changed flags ("{tmp}" is the test's folder), content of the training file, the message.
ERRORS = {
  "no data": ({"train_file": "", "data_dir": ""}, "", "--train_file is missing: give it, or"),
  "no such file": ({"train_file": "{tmp}/x"}, "", "{tmp}/x: there is no such file."),
  "missing labels": ({"labels": "O,B-PER"}, "ada B-PER\nlovelace I-PER\n", "--labels lacks I-PER."),
  "bad labels": ({"labels": "O,PER"}, "ada O\n", "--labels, --model_scheme=bio: the label 'PER'"),
  "wide stride": (
    {"doc_stride": 15},
    "ada O\n",
    "--doc_stride=15: must be at least 1 and at most --max_seq",
  ),
  "plain model": ({"model_scheme": "plain"}, "ada O\n", "plain labels have no entities"),
  "no labels known": (
    {"do_train": False, "do_predict": True, "test_file": "{tmp}/train.conll"},
    "ada O\n",
    "The labels of the model are unknown",
  ),
  "labels of another script's run": (
    {
      **{"do_train": False, "do_predict": True, "test_file": "{tmp}/train.conll"},
      "output_dir": "{tmp}/classifier",
    },
    "ada O\n",
    "the model in {tmp}/classifier, --model_scheme=bio: the label 'no'",
  ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_message_before_any_work(model, tmp_path, name):
  changes, content, expected = ERRORS[name]
  data = content if isinstance(content, bytes) else content.encode()
  (tmp_path / "train.conll").write_bytes(data)
  (tmp_path / "model").mkdir()
  (tmp_path / "classifier").mkdir()
  (tmp_path / "classifier" / "label_map.json").write_text('{"no": 0, "yes": 1}')
  values = {**model, "train_file": tmp_path / "train.conll", "output_dir": tmp_path / "out"}
  values = {**values, "do_train": True, **changes}
  values = {k: v.format(tmp=tmp_path) if isinstance(v, str) else v for k, v in values.items()}
  assert expected.format(tmp=tmp_path) in error_of(**values)
  assert not list(tmp_path.rglob("*.tf_record"))


@pytest.mark.usefixtures("fake_estimator")
def test_a_folder_of_conllu_whose_bad_rows_are_skipped(model, tmp_path):
  columns = "\t_" * 6
  rows = ["# x", f"1-2\tal\t_\t_{columns}", f"1\tada\t_\tA{columns}", f"2\t \t_\tB{columns}", ""]
  (tmp_path / "train.conllu").write_text("\n".join(rows * 4))
  columns = {"separator": "tab", "token_column": 1, "label_column": 3, "comment_prefix": "#"}
  values = {**model, **columns, "label_scheme": "plain", "data_dir": tmp_path, "do_train": True}
  assert "line 4: the word is empty or a blank" in error_of(**values, output_dir=tmp_path / "out")
  done = run_well(**values, output_dir=tmp_path / "out", skip_bad_rows=True)
  assert "Skipped 4 malformed row(s)." in done.err
  assert json.loads((tmp_path / "out" / "label_map.json").read_text()) == {"A": 0}


@pytest.mark.usefixtures("fake_estimator")
@pytest.mark.parametrize(
  ("last", "advice"),
  [("I-LOC", "All of them fit --label_scheme=iob1."), ("B-LOC", "Check --label_scheme.")],
)
def test_labels_that_break_their_scheme_are_counted(model, tmp_path, last, advice):
  text = "ada I-PER\nlovelace I-PER\nin O\nyork I-LOC\n" * 3
  (tmp_path / "train.conll").write_text(f"{text}ada I-PER\nlovelace I-PER\nin O\nyork {last}\n")
  values = {**model, "train_file": tmp_path / "train.conll", "output_dir": tmp_path / "out"}
  done = run_well(**values, do_train=True)
  count = 8 if last == "I-LOC" else 7
  assert f"train.conll: {count} of 16 labels violate the scheme bio." in done.err
  assert f"The first is in line 1: I-PER is read as B-PER. {advice}" in done.err
  assert "1 windows, a batch of 8 and 3 epochs make less than one step" not in done.err
