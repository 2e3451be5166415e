"""Tests of run_similarity.py: whole runs on tiny data and a tiny model.

Alone: python -m pytest tests/run_similarity_test.py (half a minute, most of it compiling graphs)
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert import convert_checkpoint, extract_features, modeling, predict, run_similarity
from bert.checkpoints import load_report
from bert.fine_tuning.model_fn import model_fn_of
from bert.model.variables import VariableStore, use_store
from bert.model.vector_head import VectorHead
from bert.predicting.predictor import Predictor
from bert.predicting.sentence_vectors import cosine_similarity
from bert.training.estimator import ModeKeys
from tests.kit import task_outputs, tiny_bert, tiny_pairs
from tests.kit.script_runs import (
  Script,
  Trained,
  assert_same_tensors,
  results_in,
  stopped_after,
  table,
  tensors,
)
from tests.kit.tiny_pairs import CONFIG, SIZES, VOCAB

script = Script(run_similarity)
run, run_well, error_of = script.run, script.run_well, script.error_of


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict:
  """The flags of a tiny model, the same for every run."""
  return {
    **tiny_bert.write(tmp_path_factory.mktemp("model"), VOCAB, **SIZES),
    "max_seq_length": 16,
    "train_batch_size": 8,
    "learning_rate": 0.005,
  }


NUM_TRAIN, NUM_DEV, NUM_TEST = 48, 20, 11


@pytest.fixture(scope="module")
def trained(model, tmp_path_factory) -> Trained:
  """A run that trains, evaluates and predicts. Tests only read its folder."""
  folder = tmp_path_factory.mktemp("pairs")
  tiny_pairs.write(folder / "train.csv", tiny_pairs.pairs(NUM_TRAIN, 1, top=5))
  tiny_pairs.write(folder / "dev.tsv", tiny_pairs.pairs(NUM_DEV, 2, top=5))
  tiny_pairs.write(folder / "test.csv", tiny_pairs.pairs(NUM_TEST, 3), ["text_a", "text_b"])
  values = {**model, "data_dir": folder, "output_dir": folder / "out", "max_score": 5}
  values |= {"num_train_epochs": 6.0, "pooling": "max"}
  done = run_well(**values, do_train=True, do_eval=True, do_predict=True)
  return Trained(values, folder / "out", done)


def similarities(folder) -> np.ndarray:
  return np.array([row[1] for row in table(folder / "predictions.tsv")[1:]], np.float32)


# ---------------------------------------------------------------------------------------------
# One run, and every file it leaves.


@pytest.mark.ci
def test_it_learns(trained):
  results = results_in(trained.out / "eval_results.txt")
  assert list(results) == ["eval_spearman", "eval_pearson", "eval_loss", "global_step", "loss"]
  assert results["eval_spearman"] > 0.8
  assert results["eval_pearson"] > 0.9
  assert results["eval_loss"] < 0.05
  header, *rows = table(trained.out / "predictions.tsv")
  assert header == ["id", "similarity"]
  assert [row[0] for row in rows] == [f"test-{i}" for i in range(1, NUM_TEST + 1)]
  is_same = np.array([row["score"] for row in tiny_pairs.pairs(NUM_TEST, 3)]) == 1
  found = similarities(trained.out)
  assert found[is_same].min() > found[~is_same].max()


def test_the_checkpoint_is_that_of_an_encoder(trained):
  shapes = dict(tf.train.list_variables(str(trained.out)))
  names = {name for name in shapes if not load_report.is_training_state(name)}
  assert all(name.startswith("bert/") for name in names)
  assert {"bert/pooler/dense/kernel", "bert/embeddings/word_embeddings"} <= names


def test_prediction_does_not_depend_on_batches_order_or_padding(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  rows = tiny_pairs.pairs(NUM_TEST, 3)
  swapped = [{"text_a": row["text_b"], "text_b": row["text_a"]} for row in rows]
  options = {
    "predict_batch_size": 3,
    "pad_to_max_length": True,
    "test_file": tiny_pairs.write(tmp_path / "test.jsonl", swapped),
    "max_seq_length": 20,
  }
  run_well(**{**values, **options}, do_predict=True)
  expected = similarities(trained.out)
  np.testing.assert_allclose(similarities(tmp_path / "out"), expected, rtol=0, atol=1e-5)


@pytest.mark.ci
def test_two_halves_are_the_whole_bit_for_bit(trained, tmp_path):
  values = {**trained.flags, "num_train_epochs": 2.0, "save_checkpoints_steps": 5, "do_train": True}
  values |= {"gradient_accumulation_steps": 2, "dtype": "bfloat16"}
  run_well(**{**values, "output_dir": tmp_path / "straight"})
  with stopped_after(5):
    assert run(**{**values, "output_dir": tmp_path / "parts"}).code == 130
  # Without --pooling, a run goes on with its own.
  del values["pooling"]
  run_well(**{**values, "output_dir": tmp_path / "parts"})
  assert tensors(tmp_path / "straight")["global_step"] == 12
  assert_same_tensors(tmp_path / "straight", tmp_path / "parts")


@pytest.mark.ci
def test_in_batch_negatives(model, tmp_path):
  rows = tiny_pairs.similar(64, 1)
  tiny_pairs.write(tmp_path / "train.csv", rows)
  tiny_pairs.write(tmp_path / "dev.csv", tiny_pairs.similar(6, 2))
  values = {**model, "data_dir": tmp_path, "output_dir": tmp_path / "out"}
  values |= {"loss": "in_batch_negatives", "eval_every_steps": 40, "num_train_epochs": 15.0}
  done = run_well(**values, do_train=True, do_eval=True)
  assert "Using the best checkpoint" in done.err
  results = results_in(tmp_path / "out" / "eval_results.txt")
  assert list(results) == ["eval_accuracy", "eval_mrr", "eval_loss", "global_step", "loss"]
  assert results["eval_mrr"] > 0.8
  # To evaluate, it need not be said again how the run was trained.
  del values["loss"]
  run_well(**values, do_eval=True)
  assert results_in(tmp_path / "out" / "eval_results.txt") == results


@pytest.mark.ci
def test_pairs_that_are_similar_enough_teach_a_ranking(trained, tmp_path):
  values = {**trained.flags, "loss": "in_batch_negatives", "output_dir": tmp_path / "out"}
  values |= {"min_positive_score": 4, "num_train_epochs": 1.0}
  done = run_well(**values, do_train=True, do_eval=True)
  assert "24 of 48 pairs have --min_positive_score." in done.err
  assert "eval_spearman" in results_in(tmp_path / "out" / "eval_results.txt")


# ---------------------------------------------------------------------------------------------
# Where the trained vectors are used.


@pytest.mark.ci
def test_every_reader_takes_the_folder_with_its_pooling(trained, tmp_path):
  rows = tiny_pairs.pairs(NUM_TEST, 3)
  pairs = [(row["text_a"], row["text_b"]) for row in rows]
  expected = similarities(trained.out)
  (tmp_path / "pairs.txt").write_text("".join(f"{a} ||| {b}\n" for a, b in pairs))
  flags = {
    "input_file": tmp_path / "pairs.txt",
    "init_checkpoint": trained.out,
    "output_file": tmp_path / "found.jsonl",
    "max_seq_length": 16,
  }
  Script(extract_features).run_well(**flags, similarity=True, layers="-1")
  lines = (tmp_path / "found.jsonl").read_text().splitlines()
  found = [json.loads(line)["similarity"] for line in lines]
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
  Script(predict).run_well(**flags)
  lines = (tmp_path / "found.jsonl").read_text().splitlines()
  found = [json.loads(line)["similarity"] for line in lines]
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
  (tmp_path / "one.txt").write_text("a saw ||| a nail\na saw\n")
  error = Script(predict).error_of(**{**flags, "input_file": tmp_path / "one.txt"})
  assert "one.txt, line 2: 'a saw' is one text, but this model compares two" in error
  encode = Predictor.load(str(trained.out), task="vectors", max_seq_length=16)
  first, second = (np.stack(encode([pair[i] for pair in pairs])) for i in range(2))
  np.testing.assert_allclose(cosine_similarity(first, second), expected, rtol=0, atol=1e-5)
  Script(extract_features).run_well(
    **{**flags, "output_file": tmp_path / "a.npz"}, output_format="npz", layers="-1"
  )
  with np.load(tmp_path / "a.npz") as found:
    assert found["vectors"].shape == (NUM_TEST, 1, SIZES["hidden_size"])


@pytest.mark.slow
def test_the_export_compares_and_encodes(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  run_well(**values, do_export=True)
  rows = tiny_pairs.pairs(NUM_TEST, 3)
  pairs = [(row["text_a"], row["text_b"]) for row in rows]
  compare = Predictor.load(str(tmp_path / "out" / "export"))
  found = [each["similarity"] for each in compare(pairs)]
  np.testing.assert_allclose(found, similarities(trained.out), rtol=0, atol=1e-5)
  task = tf.saved_model.load(str(tmp_path / "out" / "export" / "task"))
  texts = [*(a for a, _ in pairs), "", "she takes the plum " * 9]
  vectors = task.signatures["vectors"](text=tf.constant(texts))["vector"]
  encode = Predictor.load(str(trained.out), task="vectors", max_seq_length=16)
  np.testing.assert_allclose(vectors, np.stack(encode(texts)), rtol=0, atol=1e-5)


@pytest.mark.ci
def test_it_becomes_a_folder_of_sentence_transformers(trained, tmp_path):
  script = Script(convert_checkpoint)
  done = script.run_well(
    command="to_transformers", init_checkpoint=trained.out, output_dir=tmp_path / "st"
  )
  assert "loads it, too: pooling max." in done.err
  assert json.loads((tmp_path / "st" / "sentence_bert_config.json").read_text()) == {
    "max_seq_length": 16,
    "do_lower_case": False,
  }
  texts = ["she takes the plum", "a saw ."]
  ours, theirs = (
    Predictor.load(str(folder), task="vectors", max_seq_length=16)(texts)
    for folder in (trained.out, tmp_path / "st")
  )
  np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-6)


# ---------------------------------------------------------------------------------------------
# The model.


def rows_of_ids(num_rows, num_texts, length, seed=1):
  """int32 ids and masks `[B, N, S]` of texts of several lengths."""
  rng = np.random.default_rng(seed)
  ids = rng.integers(5, len(VOCAB), [num_rows, num_texts, length]).astype(np.int32)
  lengths = rng.integers(1, length + 1, [num_rows, num_texts, 1])
  mask = (np.arange(length) < lengths).astype(np.int32)
  return ids * mask, mask


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_vectors_are_those_of_single_texts_at_any_padding(pooling):
  config, store = modeling.BertConfig.from_dict(CONFIG), VariableStore(1)
  ids, mask = rows_of_ids(3, 2, 6)

  def vectors_of(ids, mask):
    with use_store(store):
      features = {"input_ids": tf.constant(ids), "input_mask": tf.constant(mask)}
      head = VectorHead(pooling)
      return task_outputs.outputs(head, config, False, **features)["vectors"].numpy()

  found = vectors_of(ids, mask)
  assert found.shape == (3, 2, 16)
  assert found.std() > 0.1
  alone = vectors_of(ids[1:2, 1:], mask[1:2, 1:])
  np.testing.assert_allclose(alone[0, 0], found[1, 1], rtol=0, atol=1e-5)
  wider = [np.pad(each, [(0, 0), (0, 1), (0, 5)]) for each in (ids, mask)]  # and a missing text
  padded = vectors_of(*wider)
  np.testing.assert_allclose(padded[:, :2], found, rtol=0, atol=1e-5)
  assert np.isfinite(padded).all()


@pytest.mark.parametrize("loss_name", ["cosine", "in_batch_negatives"])
def test_every_weight_but_the_poolers_is_trained(loss_name):
  config, store = modeling.BertConfig.from_dict(CONFIG), VariableStore(1)
  ids, mask = rows_of_ids(4, 2, 6)
  features = {
    "input_ids": tf.constant(ids),
    "input_mask": tf.constant(mask),
    "score": tf.constant([0.1, 0.9, 0.5, 0.2]),
    "is_real_example": tf.ones([4], tf.int32),
  }
  head = VectorHead("mean", ranks_in_evaluation=loss_name != "cosine")
  model_fn = model_fn_of(head, config, None, 1e-3, 1, 0, False, False)
  with use_store(store), tf.GradientTape() as tape:
    loss = model_fn(features, None, ModeKeys.EVAL, {}).loss
  weights = store.trainable_variables
  gradients = tape.gradient(loss, list(weights.values()), unconnected_gradients="zero")
  sizes = [np.abs(tf.convert_to_tensor(each)).max() for each in gradients]
  untrained = {name for name, size in zip(weights, sizes, strict=True) if size < 1e-7}
  assert {name.rpartition("/")[0] for name in untrained} <= {
    "bert/pooler/dense",
    # Added to all scores of a softmax, it changes none.
    "bert/encoder/layer_0/attention/self/key",
  }


# ---------------------------------------------------------------------------------------------
# What a user sees when something is wrong.

GOOD = "text_a,text_b,score\na,b,1\nthe,saw,0\n"
RANKING = {"loss": "in_batch_negatives"}
# Changed flags ("{tmp}" is the test's folder), content of the training file, the message.
ERRORS = {
  "nothing to do": ({"do_train": False}, GOOD, "At least one of `do_train`, `do_eval` or"),
  "no data": ({"train_file": ""}, GOOD, "--train_file is missing: give it, or --data_dir"),
  "no dev file": ({"do_eval": True}, GOOD, "--dev_file is missing: give it, or --data_dir"),
  "another task": ({"task_name": "MRPC"}, GOOD, "--task_name=MRPC: this script knows csv, sts-b."),
  "unknown pooling": ({"pooling": "sum"}, GOOD, "--pooling takes one of cls, mean, max"),
  "unknown loss": ({"loss": "mse"}, GOOD, "--loss takes one of cosine, in_batch_negatives"),
  "an empty scale": ({"max_score": 0}, GOOD, "--min_score=0 --max_score=0: the scale needs two"),
  "no scale": ({"max_score": "nan"}, GOOD, "--max_score=nan"),
  "an endless scale": ({"max_score": "inf"}, GOOD, "--max_score=inf: the scale needs two ends"),
  "one score": ({}, "text_a,text_b,score\na,b,1\nthe,saw,1\n", "all pairs have the same score:"),
  "one column twice": ({"text_b_column": "text_a"}, GOOD, "column 0 (text_a) is given as both"),
  "an unknown metric": (
    {"eval_every_steps": 1, "dev_file": "{tmp}/train.csv", "best_metric": "spearman"},
    GOOD,
    "Did you mean eval_spearman?",
  ),
  "scores of 5": ({}, GOOD + "a,b,4.5\n", "line 4: the score '4.5' is outside the scale from 0 to"),
  "one text": ({}, "text_a,score\na,1\n", "column 'text_b' is not in the header"),
  "no scores": ({}, "text_a,text_b\na,b\n", "there is no column of scores; the header has text_a"),
  "STS-B's columns": ({"task_name": "STS-B"}, GOOD, "column 'sentence1' is not in the header"),
  "negatives for nothing": ({"negative_column": "x"}, GOOD, "--negative_column is for --loss=in_b"),
  "a limit for nothing": ({"min_positive_score": 0.5}, GOOD, "--min_positive_score is for --loss"),
  "a batch of 1": ({**RANKING, "train_batch_size": 1}, GOOD, "so a part needs at least 2."),
  "parts of 1": (
    {**RANKING, "train_batch_size": 8, "gradient_accumulation_steps": 8},
    GOOD,
    "--train_batch_size=8 --gradient_accumulation_steps=8: with --loss=in_batch_negatives a",
  ),
  "scores for a ranking": (RANKING, GOOD, "Give --min_positive_score, to train on those with at"),
  "a limit without scores": (
    {**RANKING, "min_positive_score": 0.5},
    "text_a,text_b\na,b\n",
    "--min_positive_score needs a column of scores",
  ),
  "one answer": (RANKING, "text_a,text_b\na,b\nc,b\n", "but all 2 are equal."),
  "a negative twice": (
    RANKING,
    "text_a,text_b,negative\na,b,c\nd,e,e\n",
    "line 3: the negative is the second text again.",
  ),
  "a limit too high": ({**RANKING, "min_positive_score": 2}, GOOD, "no pair has --min_posi"),
  "one pair": (RANKING, "text_a,text_b\na,b\n", "second texts of other pairs, but all 1 are equal"),
  "too short": ({"max_seq_length": 2}, GOOD, "--max_seq_length=2: must be at least 3"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_message_before_any_work(model, tmp_path, name):
  changes, content, expected = ERRORS[name]
  (tmp_path / "train.csv").write_text(content)
  values = {**model, "train_file": tmp_path / "train.csv", "output_dir": tmp_path / "out"}
  values = {**values, "do_train": True, **changes}
  values = {k: v.format(tmp=tmp_path) if isinstance(v, str) else v for k, v in values.items()}
  assert expected in error_of(**values)
  assert not list(tmp_path.rglob("*.tf_record"))


def test_another_pooling_in_the_folder_is_refused(trained, tmp_path):
  values = {**trained.copied_to(tmp_path), "pooling": "cls"}
  assert "pooling was 'max', now 'cls'" in error_of(**values, do_eval=True)
