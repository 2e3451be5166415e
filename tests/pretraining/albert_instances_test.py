"""ALBERT's records: the original's.

Alone: python -m pytest tests/pretraining/albert_instances_test.py
"""

import pytest

from tests.kit.pretraining_records import create, recorded
from tests.kit.script_runs import values_in

_SHORT = {"max_seq_length": 64, "dupe_factor": 3, "max_predictions_per_seq": 10}
GOLDEN = {
  "sample_default": {"max_seq_length": 128, "dupe_factor": 5},
  "sample_permutation": {**_SHORT, "do_permutation": True},
  "sample_random_next": {**_SHORT, "random_next_sentence": True, "random_seed": 7},
  "sample_long_ngrams": {**_SHORT, "favor_shorter_ngram": False, "ngram": 5},
  "sample_pieces": {**_SHORT, "do_whole_word_mask": False},
  "sample_wordpiece": _SHORT,
  "sample_no_masks": {**_SHORT, "dupe_factor": 1, "masked_lm_prob": 0},
  "wiki_64": {**_SHORT, "dupe_factor": 1, "short_seq_prob": 0.3, "random_seed": 7},
  "commas": {"max_seq_length": 64, "dupe_factor": 1},
}


@pytest.mark.parametrize("name", GOLDEN)
def test_records_of_the_original(name, golden_dir, data_dir, released_vocab_file, tmp_path):
  golden = golden_dir / "albert"
  text = data_dir / "corpus" / "sample_text.txt"
  flags = {"vocab_file": "unused", "spm_model_file": golden / "tiny_spm.model"}
  if name == "sample_wordpiece":
    flags = {"vocab_file": released_vocab_file}
  elif name == "wiki_64":
    wiki = (data_dir / "corpus" / "wikitext2_valid.txt").read_text(encoding="utf-8")
    text = tmp_path / "text"
    text.write_text("".join(wiki.splitlines(keepends=True)[:600]), encoding="utf-8")
  elif name == "commas":
    text = golden / "pretraining_data" / "commas.txt"
    flags["spm_model_file"] = golden / "commas_spm.model"
  create(tmp_path / "out", text, format="albert", **flags, **GOLDEN[name])
  expected = recorded(golden / "pretraining_data" / f"{name}.jsonl.gz")
  found = values_in(tmp_path / "out")
  assert len(found) == len(expected)
  for ours, original in zip(found, expected, strict=True):
    assert ours == original
