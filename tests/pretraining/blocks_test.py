"""Blocks of text and the instances made of them."""

import itertools
import pathlib
import random

import numpy as np
import pytest

from bert.pretraining import blocks as pretraining_blocks
from bert.pretraining import piece_tables
from bert.pretraining.random_streams import Stream
from bert.pretraining.record_settings import RecordSettings
from bert.text import corpus, corpus_statistics, text_files
from tests.kit.paths import ROOT
from tests.kit.pretraining_records import features_of

VOCAB = str(ROOT / "samples" / "vocab.txt")
TOKENS = pathlib.Path(VOCAB).read_text().split("\n")
WORDS = [token for token in TOKENS if token.isascii() and token.isalpha()][:400]


def settings_of(**changes):
  return RecordSettings(**{"vocab_file": VOCAB, "max_seq_length": 64, "dupe_factor": 1, **changes})


def write_text(path, documents=40, seed=0, sentences=(3, 12), words=(3, 20)):
  """Documents of random words; no sentence occurs twice."""
  rng = random.Random(seed)
  text = [
    "\n".join(
      " ".join(rng.choices(WORDS, k=rng.randint(*words))) for _ in range(rng.randint(*sentences))
    )
    for _ in range(documents)
  ]
  path.write_text("\n\n".join(text) + "\n")
  return [[line.split() for line in document.split("\n")] for document in text]


def unmasked(features):
  """The words of both segments as they were."""
  ids = features["input_ids"].copy()
  chosen = features["masked_lm_weights"] > 0
  ids[features["masked_lm_positions"][chosen]] = features["masked_lm_ids"][chosen]
  words = [TOKENS[i] for i in ids[: features["input_mask"].sum()]]
  assert words[0] == "[CLS]"
  assert words[-1] == "[SEP]"
  segments = features["segment_ids"][: len(words)]
  first = words[1 : list(segments).index(1) - 1] if segments.any() else words[1:-1]
  return first, [w for w, segment in zip(words, segments, strict=True) if segment][:-1]


# ---------------------------------------------------------------------------------------------
# Pairs of segments.


def contains(words, part):
  return f" {' '.join(part)} " in words


def test_pairs(tmp_path):
  path = tmp_path / "text"
  documents = [f" {' '.join(itertools.chain(*document))} " for document in write_text(path, 30)]
  found = features_of(path, settings_of(dupe_factor=2))
  assert len(found) > 100
  for features in found:
    first, second = unmasked(features)
    homes = [d for d in documents if contains(d, first)]
    assert len(homes) >= 1
    assert len(second) >= 1
    assert len(first) + len(second) + 3 <= 64
    if features["next_sentence_labels"][0]:
      others = [d for d in documents if contains(d, second) and d not in homes]
      assert others or len(second) < 3
    else:
      assert any(contains(home, second) for home in homes)


def test_next_sentences_are_random_in_half_of_the_cases(tmp_path):
  path = tmp_path / "text"
  write_text(path, 100, sentences=(200, 400), words=(3, 8))
  settings = settings_of(short_seq_prob=0.0)
  labels = [f["next_sentence_labels"][0] for f in features_of(path, settings)]
  assert len(labels) > 3000
  # A chunk of one sentence, as in very short sequences, is always random.
  assert np.mean(labels) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("whole_words", [False, True])
def test_shares_of_masks(whole_words, tmp_path):
  path = tmp_path / "text"
  write_text(path, 150, sentences=(10, 20))
  # Of 128 tokens, 15% are 19.2; of 64 they are 9.6, and 10 would be 15.6%.
  settings = settings_of(max_seq_length=128, dupe_factor=4, do_whole_word_mask=whole_words)
  found = features_of(path, settings)
  tokens = sum(f["input_mask"].sum() for f in found)
  assert tokens > 100_000
  chosen = np.concatenate([f["masked_lm_ids"][f["masked_lm_weights"] > 0] for f in found])
  now = np.concatenate(
    [f["input_ids"][f["masked_lm_positions"][f["masked_lm_weights"] > 0]] for f in found]
  )
  mask_id = piece_tables.load_tables(settings).mask_id
  assert len(chosen) / tokens == pytest.approx(0.15, abs=0.003)
  assert (now == mask_id).mean() == pytest.approx(0.8, abs=0.01)
  assert (now == chosen).mean() == pytest.approx(0.1, abs=0.01)
  assert ((now != chosen) & (now != mask_id)).mean() == pytest.approx(0.1, abs=0.01)


def test_short_sequences(tmp_path):
  path = tmp_path / "text"
  write_text(path, 200, sentences=(10, 20))
  long = features_of(path, settings_of(short_seq_prob=0.0))
  short = features_of(path, settings_of(short_seq_prob=1.0))
  mean = [np.mean([f["input_mask"].sum() for f in found]) for found in (long, short)]
  assert mean[0] > 55
  assert mean[1] < 50
  assert max(f["input_mask"].sum() for f in short) <= 64


def slow_truncate(a, b, most):
  """Lengths after cutting token by token, as the paper's authors describe it."""
  while a + b > most:
    a, b = (a - 1, b) if a > b else (a, b - 1)
  return a, b


def test_truncation_has_the_lengths_of_one_token_after_the_other():
  stream = Stream(0)
  for a, b, most in itertools.product(range(1, 30), range(1, 30), (5, 8, 13, 60)):
    start_a, length_a, start_b, length_b = pretraining_blocks._truncated(
      100, a, 500, b, most, stream
    )
    assert (length_a, length_b) == slow_truncate(a, b, most)
    assert 100 <= start_a <= start_a + length_a <= 100 + a
    assert 500 <= start_b <= start_b + length_b <= 500 + b


def test_one_document_gives_its_own_text_as_random(tmp_path):
  path = tmp_path / "text"
  path.write_text("the of and\n")
  [features] = features_of(path, settings_of())
  assert unmasked(features) == (["the", "of", "and"], ["the", "of", "and"])
  assert features["next_sentence_labels"] == [1]


# ---------------------------------------------------------------------------------------------
# What records depend on.


def test_records_depend_on_seed_pass_and_document(tmp_path):
  path = tmp_path / "text"
  path.write_text("\n\n".join(["the of and to\nin one the of\nand to in one"] * 4))
  keys = set()
  for seed in (1, 2):
    found = features_of(path, settings_of(random_seed=seed, dupe_factor=2, short_seq_prob=0.0))
    keys |= {tuple(f["masked_lm_positions"]) + tuple(f["input_ids"]) for f in found}
    assert len(found) >= 8
  assert len(keys) > 12  # no draw is repeated, though all texts are alike
  again = features_of(path, settings_of(random_seed=2, dupe_factor=2, short_seq_prob=0.0))
  for one, other in zip(found, again, strict=True):
    assert all((one[name] == other[name]).all() for name in one)


def test_a_document_does_not_depend_on_a_later_range(tmp_path):
  for name, second in (("a", "in one\nto\n"), ("b", "to the\nof\n")):
    (tmp_path / name).write_text("the of\nand\n\nand to\nin\n\n" + second)
  size = (tmp_path / "a").stat().st_size
  found = [features_of(tmp_path / name, settings_of(), size * 2 // 3) for name in "ab"]
  masks = [[tuple(f["input_ids"]) for f in features] for features in found]
  assert masks[0] != masks[1]
  assert masks[0][:2] == masks[1][:2]


# ---------------------------------------------------------------------------------------------
# Long documents.


def blocks_of(path, target_bytes=1 << 20, **changes):
  settings = settings_of(**changes)
  [part] = text_files.text_ranges([str(path)], 1 << 30)
  return list(
    pretraining_blocks._read_blocks(
      0,
      part,
      target_bytes,
      settings,
      piece_tables.load_tables(settings),
      corpus_statistics.TextStatistics(),
    )
  )


def test_long_documents_are_cut(tmp_path, monkeypatch):
  monkeypatch.setattr(pretraining_blocks, "_DOCUMENT_CHARACTERS", 1000)
  path = tmp_path / "text"
  path.write_text("the of and to\n" * 1000 + "\nin one\n")
  blocks = blocks_of(path, 1500)
  assert len(blocks) == 7
  assert all(len(block.ids) <= 700 for block in blocks)
  assert sum(len(block.ids) for block in blocks) == 4002
  assert [block.place for block in blocks] == [(0, 2 * number) for number in range(7)]
  assert all(len(block) == 2 for block in blocks[:6])


def test_a_line_without_end_is_cut(tmp_path, monkeypatch):
  parts = corpus.parts
  monkeypatch.setattr(corpus, "parts", lambda line: parts(line, limit=100))
  path = tmp_path / "text"
  path.write_text("the of " * 1000 + "\n")
  [block] = blocks_of(path)
  lengths = np.diff(block.sentence_ends)
  assert lengths.sum() == 2000
  assert lengths.max() < 40


def test_blocks_of_a_compressed_file_are_bounded(tmp_path):
  path = tmp_path / "text"
  write_text(path, 200)
  size = path.stat().st_size
  blocks = blocks_of(path, size // 10)
  assert 8 <= len(blocks) <= 10
  assert sum(map(len, blocks)) == 200


# ---------------------------------------------------------------------------------------------
# Options.


def test_without_next_sentences(tmp_path):
  path = tmp_path / "text"
  documents = write_text(path, 30, words=(3, 90))
  found = features_of(path, settings_of(no_next_sentence=True, short_seq_prob=0.0))
  texts = []
  for features in found:
    text, second = unmasked(features)
    assert not second
    assert not features["segment_ids"].any()
    assert features["next_sentence_labels"] == [0]
    texts.append(text)
  # All text in its order, each document from a new sequence on, whole sentences where they fit.
  expected = []
  for document in documents:
    packed = [[]]
    for sentence in document:
      if packed[-1] and len(packed[-1]) + len(sentence) > 62:
        packed.append([])
      while len(packed[-1]) + len(sentence) > 62:
        room = 62 - len(packed[-1])
        packed[-1] += sentence[:room]
        packed.append([])
        sentence = sentence[room:]
      packed[-1] += sentence
    expected += packed
  assert texts == expected


def test_dynamic_masking_leaves_the_masks_out(tmp_path):
  path = tmp_path / "text"
  write_text(path, 20)
  plain = features_of(path, settings_of())
  dynamic = features_of(path, settings_of(dynamic_masking=True))
  names = {"input_ids", "input_mask", "segment_ids", "next_sentence_labels"}
  for one, other in zip(plain, dynamic, strict=True):
    assert set(other) == names
    chosen = one["masked_lm_weights"] > 0
    one["input_ids"][one["masked_lm_positions"][chosen]] = one["masked_lm_ids"][chosen]
    assert all((one[name] == other[name]).all() for name in names)


def test_where_words_begin(tmp_path):
  path = tmp_path / "text"
  path.write_text("unaffable the\nunaffable of\n")
  [features] = features_of(path, settings_of(dynamic_masking=True, do_whole_word_mask=True))[:1]
  words = [TOKENS[index] for index in features["input_ids"]]
  starts = features["word_starts"]
  assert starts.shape == (64,)
  assert any(word.startswith("##") for word in words)
  for position, word in enumerate(words):
    is_text = features["input_mask"][position] and word not in ("[CLS]", "[SEP]")
    assert starts[position] == (is_text and not word.startswith("##"))


def test_a_segment_that_begins_within_a_word_begins_a_word(tmp_path):
  path = tmp_path / "text"
  path.write_text("\n\n".join(["unaffable " * 30 + "\n" + "unaffable " * 30] * 5))
  for features in features_of(
    path, settings_of(dynamic_masking=True, do_whole_word_mask=True, max_seq_length=23)
  ):
    first_b = features["segment_ids"].tolist().index(1)
    assert features["word_starts"][1] == features["word_starts"][first_b] == 1


# ---------------------------------------------------------------------------------------------
# ALBERT's format.


def test_sentence_order(tmp_path):
  path = tmp_path / "text"
  documents = [" ".join(itertools.chain(*document)) for document in write_text(path, 60)]
  settings = settings_of(format="albert", short_seq_prob=0.0, dupe_factor=3)
  labels = []
  for features in features_of(path, settings):
    first, second = map(" ".join, unmasked(features))
    [home] = [d for d in documents if f" {first} " in f" {d} "][:1]
    if second not in home:  # a chunk of one sentence
      assert features["next_sentence_labels"] == [1]
      continue
    is_swapped = home.index(second) < home.index(first)
    labels.append(is_swapped)
    assert features["next_sentence_labels"] == [int(is_swapped)]
  assert len(labels) > 200
  assert np.mean(labels) == pytest.approx(0.5, abs=0.1)


def test_random_next_sentences_are_those_of_bert(tmp_path):
  path = tmp_path / "text"
  write_text(path, 20)
  names = ("input_ids", "segment_ids", "next_sentence_labels", "masked_lm_positions")
  plain = features_of(path, settings_of())
  for one, other in zip(
    plain, features_of(path, settings_of(format="albert", random_next_sentence=True)), strict=True
  ):
    assert set(other) == {*one, "token_boundary"}
    assert all((one[name] == other[name]).all() for name in names)


@pytest.mark.parametrize("do_whole_word_mask", [False, True])
def test_token_boundary(tmp_path, do_whole_word_mask):
  path = tmp_path / "text"
  path.write_text("\n\n".join(["unaffable " * 30 + "\n" + "the unaffable " * 30] * 5))
  settings = settings_of(format="albert", do_whole_word_mask=do_whole_word_mask, max_seq_length=24)
  for features in features_of(path, settings):
    ids, chosen = features["input_ids"].copy(), features["masked_lm_weights"] > 0
    ids[features["masked_lm_positions"][chosen]] = features["masked_lm_ids"][chosen]
    used = features["input_mask"].sum()
    # That of each piece, even where a segment begins within a word.
    expected = [not TOKENS[index].startswith("##") for index in ids[:used]] + [False] * (24 - used)
    assert features["token_boundary"].tolist() == expected


def test_no_masks_at_all(tmp_path):
  path = tmp_path / "text"
  path.write_text("the of and\nto in one\n")
  [features] = features_of(path, settings_of(format="albert", masked_lm_prob=0.0))
  assert not features["masked_lm_weights"].any()
  assert piece_tables.load_tables(settings_of()).mask_id not in features["input_ids"]


def test_permuted_tokens_have_room_of_their_own(tmp_path):
  path = tmp_path / "text"
  write_text(path, 10)
  for features in features_of(path, settings_of(format="albert", do_permutation=True)):
    assert features["masked_lm_positions"].shape == (40,)
    assert features["masked_lm_weights"].sum() <= 2 * max(
      1, round(features["input_mask"].sum() * 0.15)
    )
