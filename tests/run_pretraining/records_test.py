"""The records that run_pretraining.py reads: patterns, manifests, records that do not fit."""

import os

import numpy as np
import pytest

from bert import run_pretraining, tokenization
from bert.checkpoints import reading
from bert.io.record_files import write_records
from bert.scripts import pretraining_data
from tests.kit.script_runs import Script
from tests.kit.tiny_pretraining import VOCAB_SIZE, make_records, write_vocabulary, write_with_facts

script = Script(run_pretraining)
run, run_well, error_of = script.run, script.run_well, script.error_of


def test_patterns_and_lists_name_files(tmp_path):
  for name in ("b-1", "b-0", "a"):
    write_records(tmp_path / name, [{"x": 1}])  # and a hidden manifest beside each
  found = pretraining_data.find_files("input_file", f"{tmp_path}/b*, {tmp_path}/a,")
  everything = pretraining_data.find_files("input_file", f"{tmp_path}/*")
  assert [os.path.basename(path) for path in found] == ["b-0", "b-1", "a"]
  assert [os.path.basename(path) for path in everything] == ["a", "b-0", "b-1"]


def with_value(name, value):
  [record] = make_records(1, masked_each=2)
  record[name] = np.array(record[name])
  record[name][0] = value
  return record


def without(name):
  [record] = make_records(1)
  del record[name]
  return record


BAD_RECORDS = {
  "length": (
    make_records(1, seq_length=24)[0],
    ["input_ids has 24 values, but --max_seq_length is 16", "Give --max_seq_length=24"],
  ),
  "predictions": (
    make_records(1, predictions=5)[0],
    ["has 5 values, but --max_predictions_per_seq is 3", "Give --max_predictions_per_seq=5"],
  ),
  "word": (
    with_value("input_ids", VOCAB_SIZE),
    [f"input_ids holds {VOCAB_SIZE}, but the vocab_size of --bert_config_file="],
  ),
  "negative word": (with_value("input_ids", -1), ["input_ids holds -1, but the vocab_size"]),
  "masked word": (
    with_value("masked_lm_ids", 30000),
    ["masked_lm_ids holds 30000, but the vocab_size of --bert_config_file=", "is 40"],
  ),
  "position": (with_value("masked_lm_positions", 16), ["masked_lm_positions holds 16"]),
  "position of padding": (
    with_value("masked_lm_positions", 15),
    ["masked_lm_positions holds 15, where input_mask shows no token"],
  ),
  "other file": (without("masked_lm_ids"), ["no int64_list 'masked_lm_ids'", "input_ids"]),
  "other type": (
    {**make_records(1)[0], "masked_lm_weights": [1, 1, 1]},
    ["no float_list 'masked_lm_weights'"],
  ),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_records_that_do_not_fit_are_refused_at_once(model, tmp_path, case):
  record, parts = BAD_RECORDS[case]
  path = tmp_path / "bad.tfrecord"
  write_records(path, [*make_records(2), record])
  values = {**model, "input_file": path, "output_dir": tmp_path / "out"}
  message = error_of(**values, do_train=True)
  assert message.startswith(f"ERROR: {path}, record {1 if len(parts) == 0 else 3}: ")
  for part in parts:
    assert part in message
  assert not (tmp_path / "out").exists()


def test_a_bad_word_deep_in_a_file_is_found_when_it_stops_the_training(model, tmp_path):
  path = tmp_path / "bad.tfrecord"
  write_records(path, [*make_records(40), with_value("input_ids", VOCAB_SIZE)])
  values = {**model, "input_file": path, "output_dir": tmp_path / "out", "num_train_steps": 9}
  message = error_of(**values, do_train=True)
  assert message.startswith(f"ERROR: {path}, record 41: input_ids holds {VOCAB_SIZE}, ")


def test_a_file_that_is_no_file_of_records(model, tmp_path):
  path = tmp_path / "records"
  for content, said in (
    (b"", "holds no record"),
    (b"Once upon a time. " * 9, ", record 1: the file is damaged or cut short there"),
  ):
    path.write_bytes(content)
    values = {**model, "input_file": path, "output_dir": tmp_path / "out"}
    assert f"ERROR: {path}{said if said[0] == ',' else ' ' + said}" in error_of(
      **values, do_train=True
    )


# ---------------------------------------------------------------------------------------------
# Manifests.

UNFIT_MANIFESTS = {
  "length": (
    {"max_seq_length": 24},
    "max_seq_length is 24, but --max_seq_length is 16. Give --max_seq_length=24, or",
  ),
  "predictions": (
    {"max_predictions_per_seq": 5},
    "max_predictions_per_seq is 5, but --max_predictions_per_seq is 3. Give "
    "--max_predictions_per_seq=5, or",
  ),
  "vocabulary size": (
    {"vocab_size": 41},
    "made with a vocabulary of 41 tokens; the vocab_size of --bert_config_file=",
  ),
  "unmasked": (
    {"dynamic_masking": True},
    "its sequences have no masks, as for --dynamic_masking. Give --dynamic_masking and",
  ),
  "no record": ({"records": 0}, "it holds no record"),
  "of ELECTRA": ({"format": "electra"}, "its records are for ELECTRA, with neither masks nor"),
  "sentence order": (
    {"format": "albert"},
    "its labels say which sentences are in the wrong order, but --objective=mlm_nsp learns which "
    "follow each other. Give --objective=mlm_sop, or",
  ),
}


@pytest.mark.parametrize("case", UNFIT_MANIFESTS)
def test_records_whose_manifest_does_not_fit_are_refused(model, tmp_path, case):
  """Even where the records look right: those of the model, with other facts beside them."""
  facts, said = UNFIT_MANIFESTS[case]
  path = tmp_path / "train.tfrecord"
  write_with_facts(path, make_records(4), **facts)
  values = {**model, "input_file": path, "output_dir": tmp_path / "out"}
  message = error_of(**values, do_train=True)
  assert message.startswith(f"ERROR: {path}, by its manifest: {said}")
  assert not (tmp_path / "out").exists()


def test_next_sentences_are_no_sentence_order(model, tmp_path):
  path = tmp_path / "train.tfrecord"
  values = {**model, "input_file": path, "output_dir": tmp_path / "out", "objective": "mlm_sop"}
  for facts in ({"dupe_factor": 5}, {"format": "albert", "random_next_sentence": True}):
    write_with_facts(path, make_records(4), **facts)
    message = error_of(**values, do_train=True)
    assert "by its manifest: its labels say which sentences follow each other, but" in message
    assert "Give --objective=mlm, or write the records again" in message


@pytest.mark.usefixtures("fake_estimator")
@pytest.mark.parametrize(
  ("facts", "objective"),
  [
    ({"format": "albert"}, "mlm_sop"),
    ({"format": "albert"}, "mlm"),
    ({"format": "albert", "random_next_sentence": True}, "mlm_nsp"),
    ({"dupe_factor": 5}, "mlm"),
    ({}, "mlm_sop"),  # of another program, which does not say
  ],
)
def test_labels_that_fit_the_objective_or_are_not_read(facts, objective, model, tmp_path):
  path = tmp_path / "train.tfrecord"
  write_with_facts(path, make_records(8), **facts)
  run_well(
    **{**model, "input_file": path, "output_dir": tmp_path / "out", "num_train_steps": 1},
    objective=objective,
    do_train=True,
  )


@pytest.mark.usefixtures("fake_estimator")
def test_a_fitting_manifest_and_a_smaller_vocabulary_train(model, tmp_path):
  path = tmp_path / "train.tfrecord"
  facts = {"max_seq_length": 16, "max_predictions_per_seq": 3, "dynamic_masking": False}
  facts["do_lower_case"] = False
  write_with_facts(path, make_records(8), **facts, vocab_size=39, vocabulary="ab" * 32)
  values = {**model, "input_file": path, "output_dir": tmp_path / "out", "num_train_steps": 1}
  done = run_well(**values, do_train=True)
  assert "made with a vocabulary of 39 tokens" in done.err
  state = reading.read_state(str(tmp_path / "out/model.ckpt-1"))
  assert state["fingerprint"]["vocabulary"] == "ab" * 32
  assert state["fingerprint"]["do_lower_case"] is False, "what runs that start from it need to know"

  # Records of another vocabulary do not go on with this model.
  write_with_facts(path, make_records(8), **facts, vocab_size=40, vocabulary="cd" * 32)
  assert "vocabulary was 'abab" in error_of(**{**values, "num_train_steps": 2}, do_train=True)


@pytest.mark.usefixtures("fake_estimator")
def test_files_of_two_vocabularies_are_refused(model, tmp_path):
  for name in "ab":
    write_with_facts(tmp_path / name, make_records(4), vocabulary=name * 64)
  values = {**model, "output_dir": tmp_path / "out"}
  said = (
    f"ERROR: {tmp_path}/b, by its manifest: the hash of its vocabulary begins with bbbbbbbbbbbb, "
    f"but that of {tmp_path}/a with aaaaaaaaaaaa."
  )
  assert error_of(**values | {"input_file": f"{tmp_path}/*"}, do_train=True).startswith(said)
  files = {"input_file": tmp_path / "a", "eval_input_file": tmp_path / "b"}
  assert error_of(**values | files, do_train=True, do_eval=True).startswith(said)
  # What is not read is not compared.
  run_well(**values | files, do_train=True)


@pytest.mark.usefixtures("fake_estimator")
def test_another_vocabulary_than_the_one_at_hand_is_refused(model, tmp_path):
  vocab_file = write_vocabulary(tmp_path / "vocab.txt")
  path = tmp_path / "train.tfrecord"
  write_with_facts(path, make_records(8), vocabulary="ab" * 32)
  values = {**model, "input_file": path, "output_dir": tmp_path / "out", "vocab_file": vocab_file}
  assert f"but that of --vocab_file={vocab_file} with" in error_of(**values, do_train=True)
  made_with = tokenization.vocabulary_hash(tokenization.load_vocab(vocab_file))
  write_with_facts(path, make_records(8), vocabulary=made_with)
  run_well(**values, do_train=True)
