"""Tests of bert/checks/record_checks.py: planted faults of record files."""

import pytest

from bert.checks.findings import to_text
from bert.io.tfrecord_bytes import framed_size
from tests.kit import healthy_run as run
from tests.kit.healthy_run import (
  VOCAB,
  Fault,
  bad,
  bytes_changed,
  config_with,
  diagnose,
  flipped,
  spoil_nothing,
  write_classifier_records,
  write_records,
)

RECORDS = {"data": "records"}


def records_with(change=lambda records: None, **facts):
  return lambda folder: write_records(folder / "records/a.tfrecord", change, **facts)


def other_order(folder):
  """Records that are sound each, but not those that the manifest was written for."""
  manifest = folder / "records/.a.tfrecord.manifest.json"
  facts = manifest.read_text()
  write_records(folder / "records/a.tfrecord", lambda records: records.reverse())
  manifest.write_text(facts)


def without_masks_and_labels(records):
  for record in records:
    for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
      del record[name]
    del record["next_sentence_labels"]


def cut_behind_a_record(data: bytes) -> bytes:
  return data[: framed_size(data)]


FAULTS = {
  # Records.
  "an id beyond the vocabulary": Fault(
    records_with(lambda records: records[7]["input_ids"].__setitem__(4, len(VOCAB))),
    "Record 8: input_ids holds 59",
    "a.tfrecord",
    flags=RECORDS,
  ),
  "a third segment": Fault(
    records_with(lambda records: records[7]["segment_ids"].__setitem__(4, 2)),
    "Record 8: segment_ids holds 2",
    "a.tfrecord",
    flags=RECORDS,
  ),
  "records of another length": Fault(
    spoil_nothing, "Give --max_seq_length=16", "a.tfrecord", flags={**RECORDS, "max_seq_length": 32}
  ),
  "records of other masks": Fault(
    spoil_nothing,
    "Give --max_predictions_per_seq=3",
    "",
    flags={**RECORDS, "max_predictions_per_seq": 5},
  ),
  "records cut behind a record": Fault(
    bytes_changed("records/a.tfrecord", cut_behind_a_record), "was cut short", "", flags=RECORDS
  ),
  "a flipped bit in records": Fault(
    bytes_changed("records/a.tfrecord", flipped), "sha256", "a.tfrecord", flags=RECORDS
  ),
  "records that were changed": Fault(other_order, "sha256", "a.tfrecord", flags=RECORDS),
  "records of another vocabulary": Fault(
    records_with(vocabulary="0123456789abcdef"), "begins with 0123456789ab", "", flags=RECORDS
  ),
  "records that begin otherwise": Fault(
    records_with(lambda records: [r["input_ids"].__setitem__(0, 9) for r in records]),
    "begin with token 9, but [CLS] is 2",
    "a.tfrecord",
    flags=RECORDS,
  ),
  "records that repeat": Fault(
    records_with(lambda records: records.extend(records)),
    "50% of its records",
    "a.tfrecord",
    "warning",
    RECORDS,
  ),
  "records of ELECTRA": Fault(
    records_with(without_masks_and_labels, format="electra"),
    "its records are for ELECTRA",
    "",
    flags=RECORDS,
  ),
  "masks that ELECTRA draws itself": Fault(
    config_with(model_type="electra"),
    "have masks already, but a model of ELECTRA draws them",
    "",
    flags={**RECORDS, "init_checkpoint": None},
  ),
  "padding by which a RoBERTa counts": Fault(
    config_with(model_type="roberta"),
    "its padding has the id 0, but the model counts positions by the pad_token_id",
    "",
    flags={**RECORDS, "init_checkpoint": None},
  ),
  "an empty file of records": Fault(
    bytes_changed("records/a.tfrecord", lambda data: b""), "all files are empty", "", flags=RECORDS
  ),
  "records of one label": Fault(
    write_classifier_records([1] * 20),
    "every record is 1",
    "train.tf_record",
    "warning",
    {**RECORDS, "input_file": "records/train.tf_record"},
  ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(folder, name):
  run.assert_found(FAULTS[name], folder)


def test_records_of_a_classifier_are_good(folder):
  write_classifier_records([0, 1] * 10)(folder)
  write_classifier_records([0] * 20, "predict")(folder)  # placeholders
  findings = diagnose(folder, "records", input_file="records/*.tf_record")
  assert not bad(findings), to_text(findings)
  assert "Labels: 0: 50%, 1: 50%" in to_text(findings)


def test_records_of_electra_are_good_for_it(folder):
  config_with(model_type="electra")(folder)
  write_records(folder / "records/a.tfrecord", without_masks_and_labels, format="electra")
  findings = diagnose(folder, "records", init_checkpoint=None)
  assert not [each for each in findings if each.level == "error"], to_text(findings)
  assert "20 records were read" in to_text(findings)


@pytest.mark.parametrize(
  "facts", [{"format": "roberta"}, {"format": "distilbert"}, {"no_next_sentence": True}]
)
def test_the_label_of_records_without_pairs_means_nothing(folder, facts):
  records = folder / "records/a.tfrecord"
  write_records(records, lambda rs: [r["next_sentence_labels"].__setitem__(0, 0) for r in rs])
  assert "The label of every record is 0" in to_text(diagnose(folder, "records"))
  write_records(
    records, lambda rs: [r["next_sentence_labels"].__setitem__(0, 0) for r in rs], **facts
  )
  assert not bad(diagnose(folder, "records"))


def test_records_without_a_manifest_are_a_note(folder):
  (folder / "records/.a.tfrecord.manifest.json").unlink()
  findings = diagnose(folder, "records")
  assert not bad(findings)
  assert "It has no manifest" in to_text(findings)


def test_no_more_than_max_examples_are_read(folder):
  write_records(folder / "records/a.tfrecord", lambda rs: rs[9]["input_ids"].__setitem__(4, 99))
  assert bad(diagnose(folder, "records"))
  findings = diagnose(folder, "records", max_examples=9)
  assert not bad(findings), to_text(findings)
  assert "The first 9 records" in to_text(findings)
