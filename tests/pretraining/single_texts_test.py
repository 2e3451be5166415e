"""DistilBERT's records: the original's sequences, and those of any number of processes."""

import json

import pytest

from bert import create_pretraining_data
from bert.pretraining import single_texts
from tests.kit.pretraining_records import manifest_of
from tests.kit.script_runs import Script, values_in

script = Script(create_pretraining_data)


@pytest.fixture(scope="module")
def golden(golden_dir) -> dict:
  return json.loads((golden_dir / "distilbert" / "data_prep.json").read_text())


def sequences_of(golden, sequences) -> tuple[list, list]:
  """All parts of sequences, and those that are kept."""
  special = golden["special_tok_ids"]
  length = golden["max_model_input_size"]
  parts = [
    part
    for ids in sequences
    for part in single_texts.cut(ids, length, special["cls_token"], special["sep_token"])
  ]
  return parts, [part for part in parts if single_texts.is_kept(part, special["unk_token"])]


def test_sequences_are_cut_and_left_out_as_in_the_original(golden):
  parts, kept = sequences_of(golden, golden["token_ids"])
  assert len(parts) > len(kept)
  assert kept == golden["dataset"]


@pytest.mark.ci
def test_records_of_a_text_equal_the_original(golden, golden_dir, tmp_path):
  """Its text, a line each, and two processes."""
  texts = golden["texts"]
  (tmp_path / "text.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
  out = tmp_path / "words.tfrecord"
  script.run_well(
    input_file=tmp_path / "text.txt",
    output_file=out,
    vocab_file=golden_dir / "distilbert" / "tiny" / "vocab.txt",
    format="distilbert",
    max_seq_length=golden["max_model_input_size"],
    num_workers=2,
  )
  found = [record["input_ids"] for record in values_in(out)]
  found = [ids[: ids.index(0)] if 0 in ids else ids for ids in found]
  _, expected = sequences_of(golden, golden["token_ids"][: len(texts)])
  assert sorted(found) == sorted(expected)
  facts = manifest_of(out)
  assert facts["format"] == "distilbert"
  assert facts["dynamic_masking"] is True
  assert set(values_in(out)[0]) == {
    *("input_ids", "input_mask", "segment_ids", "next_sentence_labels")
  }


def test_masks_are_not_for_this_format(tmp_path):
  values = {"input_file": "a", "output_file": tmp_path / "b", "vocab_file": "c"}
  error = script.error_of(**values, format="distilbert", dynamic_masking=False)
  assert "--format=distilbert writes no masks" in error
  assert "--masked_lm_prob means nothing" in script.error_of(
    **values, format="distilbert", masked_lm_prob=0.2
  )
