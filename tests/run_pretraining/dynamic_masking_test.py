"""Tests of run_pretraining.py --dynamic_masking: masks that are drawn while reading."""

import numpy as np
import pytest

from bert import run_pretraining
from bert.io.record_files import write_records
from bert.pretraining import dynamic_masking
from tests.kit.script_runs import Script, results_in
from tests.kit.tiny_pretraining import (
  VOCAB_SIZE,
  make_records,
  make_unmasked,
  write_vocabulary,
  write_with_facts,
)

script = Script(run_pretraining)
run, run_well, error_of = script.run, script.run_well, script.error_of


@pytest.mark.ci
def test_it_learns_from_masks_drawn_while_reading(unmasked, tmp_path):
  # So small a model learns in so few steps what the next sentence is from some seeds only.
  values = {**unmasked, "output_dir": tmp_path, "num_train_steps": 150, "seed": 3}
  run_well(**values, max_eval_steps=20, do_train=True, do_eval=True)
  results = results_in(tmp_path / "eval_results.txt")
  assert results["masked_lm_accuracy"] > 0.7
  assert results["next_sentence_accuracy"] > 0.7  # The piece that decides may itself be masked.


def dynamic_batches(is_training, batches, path, whole_words=False, **params):
  masking = dynamic_masking.Masking(VOCAB_SIZE, 4, (2, 3), 3, 0.15, whole_words)
  input_fn = run_pretraining.input_fn_builder(path, 16, 3, is_training, masking=masking)
  dataset = input_fn({"batch_size": 4, "seed": 1, "skip_examples": 0, **params})
  return [{n: v.numpy() for n, v in batch.items()} for batch in dataset.take(batches)]


def assert_same_batches(first, second):
  for one, other in zip(first, second, strict=True):
    assert one.keys() == other.keys()
    for name, value in one.items():
      np.testing.assert_array_equal(other[name], value, err_msg=name)


def test_masks_change_with_each_pass_and_are_the_same_after_a_resumption(unmasked):
  path = unmasked["input_file"]
  straight = dynamic_batches(True, 20, path)
  assert_same_batches(dynamic_batches(True, 13, path, skip_examples=28), straight[7:])
  # Batches of another size hold the same examples with the same masks.
  wide = dynamic_batches(True, 10, path, batch_size=8)
  for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
    both = [np.concatenate([batch[name] for batch in made]) for made in (straight, wide)]
    np.testing.assert_array_equal(*both, err_msg=name)
  # 80 examples of 22 records: each comes back three or four times.
  masks: dict[tuple, set] = {}
  for batch in straight:
    for i in range(4):
      ids, positions = batch["input_ids"][i].copy(), batch["masked_lm_positions"][i]
      there = positions[batch["masked_lm_weights"][i] > 0]
      ids[there] = batch["masked_lm_ids"][i][: len(there)]
      masks.setdefault(tuple(ids.tolist()), set()).add(tuple(there.tolist()))
  assert np.mean([len(drawn) for drawn in masks.values()]) > 2


def test_masks_of_evaluation_are_fixed(unmasked):
  path = unmasked["input_file"]
  first = dynamic_batches(False, 11, path)
  assert_same_batches(dynamic_batches(False, 11, path, seed=99), first)
  flat = [np.concatenate([b["masked_lm_positions"] for b in first])[i : i + 22] for i in (0, 22)]
  np.testing.assert_array_equal(*flat)  # The second pass.
  assert len(np.unique(flat[0], axis=0)) > 10


@pytest.mark.usefixtures("fake_estimator")
def test_whole_words_need_their_starts(unmasked, tmp_path):
  values = {**unmasked, "output_dir": tmp_path / "out", "do_whole_word_mask": True}
  message = error_of(**values, do_train=True)
  assert "record 1: it does not mark the beginnings of words (word_starts). Omit" in message
  path = tmp_path / "words.tfrecord"
  write_records(path, make_unmasked(12, word_starts=True))
  run_well(**{**values, "input_file": path}, do_train=True)
  # Words are pieces 1 and 2, 3 and 4, ...; the first is [CLS], and P is 3.
  for batch in dynamic_batches(True, 10, path, whole_words=True):
    for positions, weights in zip(
      batch["masked_lm_positions"], batch["masked_lm_weights"], strict=True
    ):
      there = positions[weights > 0]
      assert len(there) in (0, 1, 2)
      assert len(there) < 2 or (there[0] % 2 == 1 and there[1] == there[0] + 1)


def test_masks_where_none_should_be_and_the_other_way_round(model, unmasked, tmp_path):
  out = {"output_dir": tmp_path / "out", "do_train": True}
  masked = {**unmasked, "input_file": model["input_file"]}
  message = error_of(**masked, **out)
  assert f"{model['input_file']}, record 1: its sequences have masks already" in message
  assert "Omit --dynamic_masking, or" in message
  plain = tmp_path / "plain.tfrecord"
  write_records(plain, make_unmasked(3))  # A manifest that does not tell.
  message = error_of(**{**model, "input_file": plain}, **out)
  assert f"{plain}, record 1: its sequences have no masks" in message
  assert "Give --dynamic_masking and --vocab_file, or" in message
  told = tmp_path / "told.tfrecord"
  write_with_facts(told, make_records(3), dynamic_masking=False)
  message = error_of(**{**unmasked, "input_file": told}, **out)
  assert f"{told}, by its manifest: its sequences have masks already" in message


@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
def test_bad_flags_of_masking(unmasked, model, tmp_path):
  out = {"output_dir": tmp_path / "out", "do_train": True}
  without = {name: value for name, value in unmasked.items() if name != "vocab_file"}
  assert "--dynamic_masking needs --vocab_file" in error_of(**without, **out)
  assert "--masked_lm_prob=0.0: must be above 0" in error_of(**unmasked, masked_lm_prob=0, **out)
  message = error_of(**model, do_whole_word_mask=True, **out)
  assert "--do_whole_word_mask is about masks that are drawn while reading" in message
  short = tmp_path / "short.txt"
  short.write_text("[PAD]\n[CLS]\n[SEP]\n")
  message = error_of(**{**unmasked, "vocab_file": short}, **out)
  assert f"--vocab_file={short}: The vocabulary lacks [MASK]" in message
  long = write_vocabulary(tmp_path / "long.txt")
  long.write_text(long.read_text() + "one more\n")
  message = error_of(**{**unmasked, "vocab_file": long}, **out)
  assert f"{long} numbers its tokens up to 40, but " in message
