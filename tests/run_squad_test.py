"""Tests of run_squad.py: whole runs on tiny data and a tiny model, as a user starts them.

Alone: python -m pytest tests/run_squad_test.py (about a minute, most of it compiling graphs)

Runs happen in this process, through `command_line.run`, so they start fast; a few start Python.
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling, run_squad, tokenization
from bert.checkpoints import checkpoint
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.scripts import command_line, flag_groups
from bert.tasks.squad import SquadExample, generate_features, read_squad_examples
from tests.kit.paths import ROOT
from tests.kit.script_runs import Done, Script, results_in, tensors

WORDS = ["when", "was", "it", "in", "built", "house", "tower", "river", "gate", "?", "."]
YEARS = ["1895", "1902", "1943", "1997"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *YEARS]
CONFIG = {
  "vocab_size": len(VOCAB),
  "hidden_size": 16,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "max_position_embeddings": 32,
  "initializer_range": 0.2,  # As small as this model is, 0.02 would take it long to learn.
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
}


script = Script(run_squad)
run, run_well, error_of = script.run, script.run_well, script.error_of


def write_squad(path, contexts, with_answers=True, version_2=False) -> None:
  """A file of one question for each context: its year, if it has one, is the answer."""
  paragraphs = []
  for i, context in enumerate(contexts):
    years = [word for word in context.split() if word in YEARS]
    qa = {"id": f"q{i}", "question": "when was it ?"}
    if with_answers:
      qa["answers"] = [{"text": year, "answer_start": context.index(year)} for year in years]
    if version_2:
      qa["is_impossible"] = not years
    paragraphs.append({"context": context, "qas": [qa]})
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(json.dumps({"version": "x", "data": [{"paragraphs": paragraphs}]}))


def contexts(count, seed, impossible=False) -> list[str]:
  """From 5 to 29 words, so that some need several windows; the year stands anywhere."""
  rng = random.Random(seed)
  found = []
  for i in range(count):
    words = rng.choices(WORDS[3:9], k=5 + i % 25)
    if not (impossible and i % 2):
      words[rng.randrange(len(words))] = rng.choice(YEARS)
    found.append(" ".join(words))
  return found


class Trained(NamedTuple):
  flags: dict  # of the run, without do_*
  out: pathlib.Path
  done: Done


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict:
  """The flags of a tiny model, the same for every run."""
  folder = tmp_path_factory.mktemp("model")
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
  (folder / "bert_config.json").write_text(json.dumps(CONFIG))
  return {
    "vocab_file": folder / "vocab.txt",
    "bert_config_file": folder / "bert_config.json",
    "max_seq_length": 24,
    "doc_stride": 8,
    "max_query_length": 4,
    "train_batch_size": 8,
    "learning_rate": 0.01,
  }


NUM_TRAIN, NUM_DEV = 48, 25


def train_and_predict(model, folder, version_2, **more) -> Trained:
  files = {"train_file": folder / "train.json", "predict_file": folder / "dev.json"}
  write_squad(files["train_file"], contexts(NUM_TRAIN, 1, version_2), version_2=version_2)
  write_squad(files["predict_file"], contexts(NUM_DEV, 2, version_2), version_2=version_2)
  values = {**model, **files, "output_dir": folder / "out", "num_train_epochs": 10.0, **more}
  if version_2:
    values["version_2_with_negative"] = True
  return Trained(values, folder / "out", run_well(**values, do_train=True, do_predict=True))


@pytest.fixture(scope="module")
def v1(model, tmp_path_factory) -> Trained:
  """A run that trains and predicts. Tests only read its folder."""
  return train_and_predict(model, tmp_path_factory.mktemp("v1"), False)


@pytest.fixture(scope="module")
def v2(model, tmp_path_factory) -> Trained:
  return train_and_predict(model, tmp_path_factory.mktemp("v2"), True)


def copy_of(trained: Trained, folder) -> dict:
  """The flags of a run that goes on in a copy of `trained`'s folder."""
  shutil.copytree(trained.out, folder / "out")
  return {**trained.flags, "output_dir": folder / "out"}


def json_in(path):
  return json.loads(path.read_text(encoding="utf-8"))


def details_in(folder) -> list[dict]:
  lines = (folder / "predictions_detailed.jsonl").read_text(encoding="utf-8").splitlines()
  return [json.loads(line) for line in lines]


def records(path) -> list[dict]:
  """Name -> values of each record."""
  found = []
  for record in tf.data.TFRecordDataset(str(path)):
    feature = tf.train.Example.FromString(record.numpy()).features.feature
    found.append({name: list(feature[name].int64_list.value) for name in sorted(feature)})
  return found


def windows_of(trained: Trained, key: str, is_training: bool) -> list:
  flags = trained.flags
  version_2 = flags.get("version_2_with_negative", False)
  examples = read_squad_examples(flags[key], is_training, version_2)
  if is_training:
    random.Random(12345).shuffle(examples)
  tokenizer = tokenization.FullTokenizer(flags["vocab_file"])
  return list(generate_features(examples, tokenizer, 24, 8, 4, is_training))


# ---------------------------------------------------------------------------------------------
# One run, and every file it leaves.


def test_it_learns(v1):
  results = results_in(v1.out / "eval_results.txt")
  assert list(results) == ["exact_match", "f1", "total", "global_step"]
  assert results["exact_match"] > 90
  assert results["f1"] >= results["exact_match"]
  assert results["total"] == NUM_DEV
  assert results["global_step"] == NUM_TRAIN // 8 * 10


def test_it_learns_when_there_is_no_answer(v2):
  results = results_in(v2.out / "eval_results.txt")
  assert list(results) == [
    *("exact", "f1", "total", "HasAns_exact", "HasAns_f1", "HasAns_total"),
    *("NoAns_exact", "NoAns_f1", "NoAns_total"),
    *("best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh"),
    *("HasAns_exact_if_answered", "HasAns_f1_if_answered", "global_step"),
  ]
  assert results["total"] == NUM_DEV
  assert results["HasAns_total"] == 13
  assert results["best_exact"] >= results["exact"] > 80
  odds = json_in(v2.out / "null_odds.json")
  predictions = json_in(v2.out / "predictions.json")
  assert {qid: odds[qid] > 0 for qid in odds} == {qid: not predictions[qid] for qid in predictions}


def test_files_of_a_run(v1, v2):
  for trained, extra in ((v1, set()), (v2, {"null_odds.json"})):
    names = {path.name for path in trained.out.iterdir() if "tfevents" not in path.name}
    checkpoints = {
      f"model.ckpt-{step}.{suffix}"
      for step in (0, 60)
      for suffix in ("index", "data-00000-of-00001", "state.json")
    }
    record_files = {"train.tf_record", "eval.tf_record"}
    manifests = {f".{name}.manifest.json" for name in record_files}
    answers = {"predictions.json", "nbest_predictions.json", "predictions_detailed.jsonl"}
    assert names == {
      *(checkpoints | record_files | manifests | answers | extra),
      *("checkpoint", "eval_results.txt"),
    }


def test_log_lines_of_the_original(v1):
  windows = {key: len(windows_of(v1, f"{key}_file", False)) for key in ("train", "predict")}
  assert windows["train"] > NUM_TRAIN
  for line in (
    "***** Running training *****",
    f"  Num orig examples = {NUM_TRAIN}",
    f"  Num split examples = {windows['train']}",
    "  Batch size = 8",
    "  Num steps = 60",
    "***** Running predictions *****",
    f"  Num orig examples = {NUM_DEV}",
    f"  Num split examples = {windows['predict']}",
    f"Processing example: 0 of {windows['predict']}",
    f"Writing predictions to: {v1.out / 'predictions.json'}",
    f"Writing nbest to: {v1.out / 'nbest_predictions.json'}",
    "***** Eval results *****",
  ):
    assert f"INFO:tensorflow:{line}\n" in v1.done.err
  assert v1.done.err.count("*** Example ***") >= 40
  assert v1.done.out == ""


@pytest.mark.parametrize("split", ["train", "predict"])
def test_records_have_the_originals_features(v2, split):
  is_training = split == "train"
  found = records(v2.out / f"{'train' if is_training else 'eval'}.tf_record")
  windows = windows_of(v2, f"{split}_file", is_training)
  assert any(window.doc_span_index for window in windows)
  for record, window in zip(found, windows, strict=True):
    expected = {
      "unique_ids": [window.unique_id],
      "input_ids": window.input_ids,
      "input_mask": window.input_mask,
      "segment_ids": window.segment_ids,
    }
    if is_training:
      expected["start_positions"] = [window.start_position]
      expected["end_positions"] = [window.end_position]
      expected["is_impossible"] = [int(window.is_impossible)]
    assert record == expected


def test_files_of_answers_agree(v1, v2):
  for trained in (v1, v2):
    predictions = json_in(trained.out / "predictions.json")
    nbest = json_in(trained.out / "nbest_predictions.json")
    details = details_in(trained.out)
    assert list(predictions) == list(nbest) == [f"q{i}" for i in range(NUM_DEV)]
    for detail, context in zip(details, contexts(NUM_DEV, 2, trained is v2), strict=True):
      qid = detail["id"]
      assert detail["text"] == predictions[qid]
      [entry] = [e for e in nbest[qid] if e["text"] == predictions[qid]]
      assert detail["probability"] == entry["probability"]
      assert sum(e["probability"] for e in nbest[qid]) == pytest.approx(1.0)
      if detail["text"]:
        assert context[detail["start"] : detail["end"]] == detail["text"]
      else:
        assert detail["start"] is detail["end"] is None
    assert max(detail["window"] for detail in details) > 0


def test_checkpoint_has_the_originals_names(v1):
  names = {name for name, _ in tf.train.list_variables(str(v1.out / "model.ckpt-60"))}
  model_names = {name for name in names if not checkpoint.is_training_state(name)}
  assert {name for name in model_names if not name.startswith("bert/")} == {
    "cls/squad/output_weights",
    "cls/squad/output_bias",
  }
  shapes = dict(tf.train.list_variables(str(v1.out / "model.ckpt-60")))
  assert shapes["cls/squad/output_weights"] == [2, 16]
  # The pooler is there, but nothing of the loss comes from it.
  pooler = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
  assert pooler < model_names
  slots = {f"{n}/{slot}" for n in model_names - pooler for slot in ("adam_m", "adam_v")}
  assert names == model_names | slots | {"global_step"}


# ---------------------------------------------------------------------------------------------
# Export: questions and paragraphs as strings, answered without this project.

_ELSEWHERE = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
question, context = map(tf.constant, json.load(sys.stdin))
outputs = model.signatures["serving_default"](question=question, context=context)
outputs = {name: values.numpy().tolist() for name, values in outputs.items()}
outputs["answer"] = [answer.decode() for answer in outputs["answer"]]
print(json.dumps(outputs))
"""


def answers_elsewhere(folder, dev) -> dict[str, list]:
  done = subprocess.run(
    [sys.executable, "-c", _ELSEWHERE, str(folder)],
    input=json.dumps([["when was it ?"] * len(dev), dev]),
    cwd=folder,
    env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def assert_answers_are_those_of_the_run(found, folder):
  details = details_in(folder)
  assert found["answer"] == [detail["text"] for detail in details]
  for place in ("start", "end"):
    assert found[place] == [-1 if d[place] is None else d[place] for d in details]
  probabilities = [detail["probability"] for detail in details]
  np.testing.assert_allclose(found["probability"], probabilities, rtol=0, atol=1e-5)


def test_an_exported_model_has_the_answers_of_its_run(v1, tmp_path):
  done = run_well(**copy_of(v1, tmp_path), do_export=True)
  exported = tmp_path / "out" / "export"
  assert sorted(os.listdir(exported)) == ["encoder", "preprocess", "task"]
  assert f"Exported the fine-tuned model of {tmp_path / 'out' / 'model.ckpt-60'}" in done.err
  found = answers_elsewhere(exported / "task", contexts(NUM_DEV, 2))
  assert sorted(found) == ["answer", "end", "probability", "score", "start"]
  assert_answers_are_those_of_the_run(found, v1.out)


@pytest.mark.slow
def test_an_exported_model_of_2_0_without_padding(v2, tmp_path):
  """With other settings, that all of them reach it."""
  values = {
    **copy_of(v2, tmp_path),
    **dict(n_best_size=3, max_answer_length=2, doc_stride=5, max_query_length=2),
    **dict(null_score_diff_threshold=-1.5, pad_to_longest=True),
  }
  run_well(**values, do_predict=True, do_export=True, export_dir=tmp_path / "elsewhere")
  found = answers_elsewhere(tmp_path / "elsewhere" / "task", contexts(NUM_DEV, 2, True))
  assert_answers_are_those_of_the_run(found, tmp_path / "out")
  odds = json_in(tmp_path / "out" / "null_odds.json")
  np.testing.assert_allclose(found["null_odds"], list(odds.values()), rtol=0, atol=1e-4)


def test_nothing_to_export(v1, tmp_path):
  message = error_of(**{**v1.flags, "output_dir": tmp_path}, do_export=True)
  assert "--do_export: there is no checkpoint in --output_dir" in message


# ---------------------------------------------------------------------------------------------
# Later runs.


def test_questions_of_ones_own_from_another_folder(v1, tmp_path):
  """No answers in the file, no training, the model from elsewhere: the same answers, no scores."""
  write_squad(tmp_path / "own.json", contexts(NUM_DEV, 2), with_answers=False)
  values = {
    **v1.flags,
    "predict_file": tmp_path / "own.json",
    "init_checkpoint": v1.out,
    "output_dir": tmp_path / "out",
  }
  done = run_well(**values, do_predict=True)
  for name in ("predictions.json", "nbest_predictions.json", "predictions_detailed.jsonl"):
    assert (tmp_path / "out" / name).read_bytes() == (v1.out / name).read_bytes()
  assert not (tmp_path / "out" / "eval_results.txt").exists()
  assert "does not tell the right answers: no scores." in done.err
  assert "does not tell the right answers. Use --do_predict." in error_of(**values, do_eval=True)


def test_do_eval_is_prediction_and_scores(v2, tmp_path):
  values = copy_of(v2, tmp_path)
  for name in ("predictions.json", "eval_results.txt", "null_odds.json"):
    (tmp_path / "out" / name).unlink()
  run_well(**values, do_eval=True)
  for name in ("predictions.json", "eval_results.txt", "null_odds.json"):
    assert (tmp_path / "out" / name).read_bytes() == (v2.out / name).read_bytes()


def test_only_known_answers_are_scored(v1, tmp_path):
  values = copy_of(v1, tmp_path)
  document = json_in(v1.flags["predict_file"])
  for entry in document["data"][0]["paragraphs"][5:]:
    del entry["qas"][0]["answers"]
  values["predict_file"] = tmp_path / "some.json"
  values["predict_file"].write_text(json.dumps(document))
  done = run_well(**values, do_predict=True)
  assert results_in(tmp_path / "out" / "eval_results.txt")["total"] == 5
  assert f"Scores are those of 5 questions of {NUM_DEV}." in done.err


def test_the_threshold_decides_and_the_best_one_does_not_depend_on_it(v2, tmp_path):
  values = copy_of(v2, tmp_path)
  best = results_in(v2.out / "eval_results.txt")["best_f1"]
  for threshold, num_empty in ((-1e6, NUM_DEV), (1e6, 0)):
    run_well(**values, do_eval=True, null_score_diff_threshold=threshold)
    predictions = json_in(tmp_path / "out" / "predictions.json")
    assert list(predictions.values()).count("") == num_empty
    results = results_in(tmp_path / "out" / "eval_results.txt")
    assert results["NoAns_exact"] == (100.0 if num_empty else 0.0)
    assert results["best_f1"] == best > results["f1"]
    assert (results["HasAns_f1"] == results["HasAns_f1_if_answered"]) == (num_empty == 0)


def test_n_best_size_and_answer_length(v1, tmp_path):
  def longest(answers):
    return max(len(entry["text"].split()) for entry in answers)

  free = json_in(v1.out / "nbest_predictions.json")
  assert max(len(answers) for answers in free.values()) == 20
  assert max(map(longest, free.values())) > 2
  values = copy_of(v1, tmp_path)
  run_well(**values, do_predict=True, n_best_size=15)
  few = json_in(tmp_path / "out" / "nbest_predictions.json")
  assert max(len(answers) for answers in few.values()) == 15
  run_well(**values, do_predict=True, max_answer_length=2)
  short = json_in(tmp_path / "out" / "nbest_predictions.json")
  assert max(map(longest, short.values())) == 2


def test_parts_of_a_run_are_the_run_bit_for_bit(v1, tmp_path, monkeypatch):
  """With dropout and shuffling on, and a second process that knows nothing of the first."""
  values = {**v1.flags, "num_train_epochs": 2.0, "save_checkpoints_steps": 6, "do_train": True}
  run_well(**{**values, "output_dir": tmp_path / "straight"})
  save = checkpoint.save

  def save_and_stop(directory, step, *args, **kwargs):
    save(directory, step, *args, **kwargs)
    if step == 6:
      raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(checkpoint, "save", save_and_stop)
    assert run(**{**values, "output_dir": tmp_path / "parts"}).code == 130
  done = run_well(**{**values, "output_dir": tmp_path / "parts"})
  assert "Resumed from" in done.err
  straight = tensors(str(tmp_path / "straight" / "model.ckpt-12"))
  parts = tensors(str(tmp_path / "parts" / "model.ckpt-12"))
  assert straight.keys() == parts.keys()
  assert "cls/squad/output_weights/adam_v" in straight
  for name, value in straight.items():
    np.testing.assert_array_equal(value, parts[name], err_msg=name)


def test_the_other_version_is_answered_but_not_trained_on(v1, tmp_path):
  values = {**copy_of(v1, tmp_path), "version_2_with_negative": True}
  write_squad(tmp_path / "train.json", contexts(8, 3, True), version_2=True)
  before = (tmp_path / "out" / "train.tf_record").read_bytes()
  message = error_of(**{**values, "train_file": tmp_path / "train.json"}, do_train=True)
  assert "version_2_with_negative was False, now True" in message
  assert (tmp_path / "out" / "train.tf_record").read_bytes() == before
  run_well(**values, do_predict=True)
  assert (tmp_path / "out" / "null_odds.json").exists()


@pytest.mark.parametrize(("version_2", "pad_to_longest"), [(False, False), (True, True)])
def test_evaluation_during_training(model, tmp_path, version_2, pad_to_longest):
  """The figures of the middle are those of --do_eval on the same weights, and the best are kept."""
  more = {"num_train_epochs": 1.0, "eval_every_steps": 3, "pad_to_longest": pad_to_longest}
  trained = train_and_predict(model, tmp_path, version_2, **more)
  metric = "best_f1" if version_2 else "f1"
  lines = re.findall(rf"\b{metric} = ([\d.]+)", trained.done.err)
  assert len(lines) >= 3
  evaluated = [float(value) for value in lines[:2]]
  results = results_in(trained.out / "eval_results.txt")
  assert results[metric] == pytest.approx(max(evaluated), rel=1e-4)
  assert results["global_step"] == (3, 6)[int(np.argmax(evaluated))]
  assert results["total"] == NUM_DEV
  assert f"Using the best checkpoint, {trained.out / 'best'}" in trained.done.err
  assert re.search(r"\bloss = [\d.]+", trained.done.err)
  assert "start_positions" in records(trained.out / "dev.tf_record")[0]


def test_the_best_checkpoint_predicts_and_not_the_last(model, tmp_path):
  """By a figure that is the same each time, the first checkpoint stays the best."""
  more = {"num_train_epochs": 1.0, "eval_every_steps": 3, "best_metric": "total", "plots": True}
  trained = train_and_predict(model, tmp_path, False, **more)
  assert (trained.out / "plots" / "training.png").is_file()
  assert (trained.out / "model.ckpt-6.index").exists()
  assert results_in(trained.out / "eval_results.txt")["global_step"] == 3


def test_in_evaluation_padding_of_shorter_batches_is_no_place_for_an_answer(v1):
  """Batches of other lengths are joined with zeros, which may well be the largest logits."""
  with flag_groups.defined_flags(run_squad.define_flags) as flag_values:
    command_line.parse(["run_squad.py", "--pad_to_longest", "--n_best_size=1"])
    job = run_squad.QuestionAnswering(None, None)
    job.dev_examples = read_squad_examples(v1.flags["predict_file"], True)
    job.dev_windows = windows_of(v1, "predict_file", False)
    unique_ids = np.array([window.unique_id for window in job.dev_windows])
    tokens = [window.tokens for window in job.dev_windows]
    logits = np.zeros([len(tokens), 24], np.float32)
    for row, window_tokens in zip(logits, tokens, strict=True):
      row[: len(window_tokens)] = [-1.0 if t in YEARS else -5.0 for t in window_tokens]
    assert job._metric_fn(unique_ids, logits, logits)["exact_match"] == 100.0
    flag_values.pad_to_longest = False
    assert job._metric_fn(unique_ids, logits, logits)["exact_match"] < 100.0


# ---------------------------------------------------------------------------------------------
# Padding.


@pytest.mark.parametrize(("pad_to_longest", "lengths"), [(False, {24}), (True, {16, 24})])
def test_batches(v1, pad_to_longest, lengths):
  """Windows of 12 to 24 pieces, cut to multiples of 8 or not at all."""
  for name, is_training in (("train", True), ("eval", False)):
    input_fn = run_squad.input_fn_builder(
      str(v1.out / f"{name}.tf_record"), 24, is_training, False, pad_to_longest=pad_to_longest
    )
    batches = list(input_fn({"batch_size": 1, "seed": 1}).take(20))
    assert {batch["input_ids"].shape[1] for batch in batches} == lengths
    assert ("start_positions" in batches[0]) == is_training
    assert {value.dtype for value in batches[0].values()} == {tf.int32}


def test_with_pad_to_longest_neither_batch_nor_length_changes_an_answer(v1, tmp_path):
  """With weights that are not trained: trained ones are so sure that little can move them."""
  values = {**v1.flags, "output_dir": tmp_path / "out", "init_checkpoint": v1.out / "model.ckpt-0"}
  values.update(pad_to_longest=True, do_predict=True, doc_stride=16)
  write_squad(tmp_path / "short.json", [c for c in contexts(NUM_DEV, 2) if len(c.split()) < 17])
  values["predict_file"] = tmp_path / "short.json"

  def nbest(**more):
    run_well(**{**values, **more})
    return json_in(tmp_path / "out" / "nbest_predictions.json")

  expected = nbest()
  for options in ({"predict_batch_size": 1}, {"max_seq_length": 32, "predict_batch_size": 3}):
    for qid, answers in nbest(**options).items():
      assert_equal_nbest(answers, expected[qid])
  # The original's way: padding takes part, so its amount shows.
  padded = [nbest(pad_to_longest=False, max_seq_length=n, n_best_size=8) for n in (24, 32)]
  assert padded[0] != padded[1]


def test_windows_of_like_length_are_predicted_together(v1, tmp_path, monkeypatch):
  """In chunks, and no file of answers shows it. Weights are not trained, as above."""
  values = {**v1.flags, "init_checkpoint": v1.out / "model.ckpt-0", "predict_batch_size": 3}
  nbest, lengths, orders = [], [], []
  write = run_squad.write_predictions

  def write_and_note(examples, windows, *args, **options):
    orders.append([window.unique_id for window in windows])
    return write(examples, windows, *args, **options)

  monkeypatch.setattr(run_squad, "write_predictions", write_and_note)
  for chunk_size in (1, 10):
    monkeypatch.setattr(run_squad, "_SORTED_WINDOWS", chunk_size)
    out = values["output_dir"] = tmp_path / str(chunk_size)
    run_well(**values, do_predict=True, pad_to_longest=True)
    nbest.append(json_in(out / "nbest_predictions.json"))
    lengths.append([sum(record["input_mask"]) for record in records(out / "eval.tf_record")])
  windows = windows_of(v1, "predict_file", False)
  assert lengths[0] == [len(window.tokens) for window in windows]
  chunks = [lengths[0][i : i + 10] for i in range(0, len(windows), 10)]
  assert lengths[1] == [length for chunk in chunks for length in sorted(chunk)] != lengths[0]
  # Of equal scores the first found counts, so the order of windows is part of the answers.
  assert orders == [[window.unique_id for window in windows]] * 2
  assert list(nbest[0]) == list(nbest[1])
  for qid, answers in nbest[0].items():
    assert_equal_nbest(nbest[1][qid], answers)


def test_pad_to_longest_is_the_default_without_its_padding(v1, tmp_path, monkeypatch):
  """That padding competes with the text is the whole difference."""
  values = {**v1.flags, "init_checkpoint": v1.out / "model.ckpt-0", "do_predict": True}
  run_well(**{**values, "output_dir": tmp_path / "longest", "pad_to_longest": True})
  write = run_squad.write_predictions

  def write_without_padding(examples, windows, results, *args, **options):
    cut = [
      run_squad.RawResult(unique_id, start[: len(window.tokens)], end[: len(window.tokens)])
      for window, (unique_id, start, end) in zip(windows, results, strict=True)
    ]
    return write(examples, windows, cut, *args, **options)

  monkeypatch.setattr(run_squad, "write_predictions", write_without_padding)
  run_well(**{**values, "output_dir": tmp_path / "default"})
  expected = json_in(tmp_path / "default" / "nbest_predictions.json")
  for qid, answers in json_in(tmp_path / "longest" / "nbest_predictions.json").items():
    assert_equal_nbest(answers, expected.pop(qid))
  assert not expected


def assert_equal_nbest(found, expected) -> None:
  assert [a["text"] for a in found] == [a["text"] for a in expected]
  for key in ("probability", "start_logit", "end_logit"):
    np.testing.assert_allclose(
      [a[key] for a in found], [a[key] for a in expected], rtol=0, atol=1e-5
    )


def test_training_with_pad_to_longest_learns(model, tmp_path):
  trained = train_and_predict(model, tmp_path, False, pad_to_longest=True)
  assert results_in(trained.out / "eval_results.txt")["exact_match"] > 90


# ---------------------------------------------------------------------------------------------
# The model.


def span_inputs():
  rng = np.random.default_rng(1)
  ids = rng.integers(5, len(VOCAB), [3, 9]).astype(np.int32)
  mask = (np.arange(9) < np.array([[9], [6], [1]])).astype(np.int32)
  return ids * mask, mask


def test_logits_are_the_last_layer_times_the_weights():
  config, store = modeling.BertConfig.from_dict(CONFIG), VariableStore(1)
  ids, mask = span_inputs()
  segments = np.zeros_like(ids)
  with use_store(store):
    start, end = run_squad.create_model(config, False, ids, mask, segments, False)
    bert = modeling.BertModel(config, False, ids, mask, segments).get_sequence_output()
  weights = store.variables["cls/squad/output_weights"].numpy()
  store.variables["cls/squad/output_bias"].assign([0.5, -2.0])
  with use_store(store):
    biased = run_squad.create_model(config, False, ids, mask, segments, False)
  for i, (found, with_bias) in enumerate(zip((start, end), biased, strict=True)):
    np.testing.assert_allclose(found, bert.numpy() @ weights[i], rtol=0, atol=1e-5)
    np.testing.assert_allclose(with_bias - found, np.full([3, 9], [0.5, -2.0][i]), atol=1e-5)
  assert np.ptp(start.numpy()) > 0.05, "logits that are all alike would prove nothing"


def test_masked_padding_is_never_chosen_and_changes_nothing_else():
  config, store = modeling.BertConfig.from_dict(CONFIG), VariableStore(1)
  ids, mask = span_inputs()
  with use_store(store):
    plain = run_squad.create_model(config, False, ids, mask, mask * 0, False)
    masked = run_squad.create_model(config, False, ids, mask, mask * 0, False, mask_padding=True)
  for one, other in zip(plain, masked, strict=True):
    np.testing.assert_allclose(one.numpy()[mask == 1], other.numpy()[mask == 1], atol=1e-5)
    assert (other.numpy()[mask == 0] == -10000.0).all()
    assert (one.numpy()[mask == 0] > -100.0).all()


def test_loss_is_the_originals():
  """One-hot positions times log-softmax, summed, averaged over the batch and over both ends."""
  rng = np.random.default_rng(2)
  logits = rng.normal(size=[2, 3, 5]).astype(np.float32)  # start and end, B, S
  positions = np.array([[0, 4, 2], [1, 4, 0]])
  log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
  expected = -(np.eye(5)[positions] * log_probs).sum(-1).mean(-1).sum() / 2
  loss = heads.get_span_loss(*logits, *positions)
  np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_feature_writer_writes_what_write_features_does(v1, tmp_path):
  windows = windows_of(v1, "train_file", True)
  writer = run_squad.FeatureWriter(tmp_path / "one_by_one", is_training=True)
  for window in windows:
    writer.process_feature(window)
  writer.close()
  assert writer.num_features == len(windows)
  assert run_squad.write_features(str(tmp_path / "at_once"), windows, True) == len(windows)
  assert (tmp_path / "one_by_one").read_bytes() == (tmp_path / "at_once").read_bytes()
  assert (tmp_path / "at_once").read_bytes() == (v1.out / "train.tf_record").read_bytes()


# ---------------------------------------------------------------------------------------------
# The command line.


def test_flags_of_the_original(golden_dir):
  golden = json_in(golden_dir / "flags.json")["run_squad"]
  with flag_groups.defined_flags(run_squad.define_flags):
    ours = {flag["name"]: flag for flag in flag_groups.describe()}
  assert len(golden) == 30
  for flag in golden:
    assert ours[flag["name"]] == flag
  assert "pad_to_max_length" not in ours


def test_without_flags_the_required_ones_are_named():
  message = error_of()
  required = ("output_dir", "bert_config_file", "vocab_file")
  for name in required:
    assert f"Flag --{name} must have a value other than None." in message
  assert message.count("must have a value") == len(required)


# Changed flags ("{tmp}" is the test's folder), what the message says.
ERRORS = {
  "nothing to do": (
    {"do_train": False},
    "At least one of `do_train` or `do_predict` must be True.",
  ),
  "no train file": (
    {"train_file": ""},
    "If `do_train` is True, then `train_file` must be specified.",
  ),
  "no predict file": (
    {"do_predict": True, "predict_file": ""},
    "If `do_predict` is True, then `predict_file` must be specified.",
  ),
  "nothing to evaluate": (
    {"do_eval": True, "predict_file": ""},
    "If `do_eval` is True, then `predict_file` must be specified.",
  ),
  "nothing to evaluate on while training": (
    {"eval_every_steps": 5, "predict_file": ""},
    "--eval_every_steps evaluates on --predict_file: name one.",
  ),
  "too long": (
    {"max_seq_length": 33},
    "Cannot use sequence length 33 because the BERT model was only trained up to sequence length "
    "32",
  ),
  "no room": (
    {"max_query_length": 21},
    "The max_seq_length (24) must be greater than max_query_length (21) + 3",
  ),
  "no stride": ({"doc_stride": 0}, "--doc_stride=0: at least 1 is needed."),
  "no answers": ({"n_best_size": 0}, "--n_best_size=0: at least 1 is needed."),
  "no length": ({"max_answer_length": -1}, "--max_answer_length=-1: at least 1 is needed."),
  "negative batch": ({"predict_batch_size": -8}, "--predict_batch_size=-8: at least 1 is needed"),
  "train file is missing": (
    {"train_file": "{tmp}/none.json"},
    "{tmp}/none.json: it cannot be read",
  ),
  "predict file is bad": (
    {"do_predict": True, "predict_file": "{tmp}/bad.json"},
    "{tmp}/bad.json: data[0]: 'paragraphs' is missing; there is nothing.",
  ),
  "no checkpoint": (
    {"init_checkpoint": "{tmp}/model.ckpt-3"},
    "No checkpoint {tmp}/model.ckpt-3: {tmp}/model.ckpt-3.index does not exist.",
  ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_message_before_any_work(v1, tmp_path, name):
  changes, expected = ERRORS[name]
  (tmp_path / "bad.json").write_text('{"data": [{}]}')
  values = {**v1.flags, "output_dir": tmp_path / "out", "do_train": True}
  for key, value in changes.items():
    values[key] = value.format(tmp=tmp_path) if isinstance(value, str) else value
  assert expected.format(tmp=tmp_path) in error_of(**values)
  assert not list(tmp_path.glob("out/*")), "work was done"


def test_less_than_one_step_of_data_trains_one(v1, tmp_path):
  values = {**v1.flags, "output_dir": tmp_path / "out", "num_train_epochs": 0.1}
  done = run_well(**values, do_train=True)
  assert "make less than one step: training for one." in done.err
  assert (tmp_path / "out" / "model.ckpt-1.index").exists()


def python(*arguments, cwd=ROOT) -> subprocess.CompletedProcess:
  return subprocess.run(
    [sys.executable, *arguments],
    env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
    capture_output=True,
    text=True,
    cwd=cwd,
    timeout=120,
  )


def test_help_names_every_flag_in_groups_without_tensorflow(tmp_path):
  driver = """
import runpy, sys
sys.argv = ["run_squad.py", "--help"]
try:
  runpy.run_module("run_squad", run_name="__main__")
finally:
  print("HEAVY", sorted({"tensorflow", "scipy", "sklearn"} & set(sys.modules)), file=sys.stderr)
"""
  done = python("-c", driver, cwd=tmp_path)
  assert done.returncode == 0, done.stderr
  assert "HEAVY []" in done.stderr
  with flag_groups.defined_flags(run_squad.define_flags):
    names = [flag["name"] for flag in flag_groups.describe()]
  listed = re.findall(r"^  --(?:\[no\])?(\w+) \(", done.stdout, re.MULTILINE)
  assert set(names) <= set(listed)
  groups = re.findall(r"^(\S.*):$", done.stdout, re.MULTILINE)
  assert {"Task and data", "Windows", "Answers", "Model", "Training", "TPU"} <= set(groups)
  assert "Other" not in groups, "a flag stands in no group"
  assert os.listdir(tmp_path) == []


def test_importing_defines_no_flag():
  done = python(
    "-c", "from bert import run_squad; from absl import flags; print('n_best_size' in flags.FLAGS)"
  )
  assert done.stdout == "False\n", done.stderr


def test_code_of_2018_finds_its_names():
  for name in ("read_squad_examples", "convert_examples_to_features", "write_predictions"):
    assert callable(getattr(run_squad, name))
  example = run_squad.SquadExample("q", "?", ["a"])
  assert isinstance(example, SquadExample)
  assert run_squad.RawResult(unique_id=1, start_logits=[], end_logits=[]).unique_id == 1


def test_the_program_itself_fails_with_one_message():
  done = python("run_squad.py", "--do_train", "--output_dir=x")
  assert done.returncode == 1
  assert "Traceback" not in done.stderr
  assert "Flag --bert_config_file must have a value other than None." in done.stderr
