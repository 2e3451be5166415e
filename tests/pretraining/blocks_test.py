"""Blocks of text and the instances made of them."""

import itertools
import pathlib
import random

import numpy as np
import pytest

from bert.pretraining import blocks as pretraining_blocks
from bert.pretraining import piece_tables
from bert.pretraining.record_settings import RecordSettings
from bert.text import corpus, corpus_statistics, text_files
from tests.kit.paths import ROOT
from tests.kit.pretraining_records import create, features_of, sha256

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


@pytest.mark.parametrize(
  ("flags", "expected"),
  [
    ({"dupe_factor": 3}, "bd0c1594dfc05318"),
    ({"dupe_factor": 3, "ngram_max": 3, "do_whole_word_mask": True}, "58d261b6a09f34c8"),
    ({"dupe_factor": 3, "format": "albert", "favor_shorter_ngram": False}, "2db5dcfd3eac34ea"),
    ({"dupe_factor": 3, "format": "roberta", "dynamic_masking": False}, "ed0f0abb074d841f"),
    ({"format": "electra"}, "73a974927d7a5b3b"),
  ],
)
def test_the_stream_is_pinned(flags, expected, tmp_path):
  """A run that is resumed with another version, or repeated, has the same records."""
  create(tmp_path / "out", max_seq_length=64, num_workers=1, **flags)
  assert sha256(tmp_path / "out")[:16] == expected


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


# ---------------------------------------------------------------------------------------------
# What records depend on.


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
