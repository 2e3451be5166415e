"""Tokens as words, and what words contributed.

Alone: python -m pytest tests/reports/words_test.py (seconds)
"""

import types

import numpy as np
import pytest

from bert.reports import words
from bert.text.sequence_layout import Layout

PIECES = types.SimpleNamespace(vocab={"[UNK]": 0, "##ing": 1})
BYTE_PAIRS = types.SimpleNamespace(
  vocab={"<s>": 0, "<pad>": 1, "</s>": 2, "Ġthe": 3},
  layout=Layout(cls="<s>", sep="</s>", pad="<pad>", mask="<mask>", unk="<unk>"),
  shown=lambda token: token.replace("Ġ", " "),
)


@pytest.mark.parametrize(
  ("tokenizer", "tokens", "expected"),
  [
    (
      PIECES,
      ["[CLS]", "play", "##ing", ".", "[SEP]"],
      ["[CLS]", "playing", ".", "[SEP]"],
    ),
    (PIECES, ["[CLS]", "##ing", "##", "[UNK]"], ["[CLS]", "ing", "##", "[UNK]"]),
    (BYTE_PAIRS, ["<s>", "He", "llo", "Ġthe", "re", "</s>"], ["<s>", "Hello", "there", "</s>"]),
  ],
)
def test_pieces_become_words_and_their_shares_are_added(tokenizer, tokens, expected):
  shares = np.arange(len(tokens), dtype=np.float32)
  found = words.words_of(tokenizer, tokens, shares)
  assert [word.text for word in found] == expected
  assert sum(word.share for word in found) == shares.sum()
  assert found[0].is_special


def test_the_strongest_words_leave_special_tokens_out():
  shares = {"[CLS]": 9.0, "good": 2.0, "bad": -1.0, "so": 0.01}
  row = [words.Word(text, share, text == "[CLS]") for text, share in shares.items()]
  found = words.Contribution("“yes”", [row])
  assert found.largest == 2
  assert [word.text for word in found.strongest(1)] == ["good"]
  assert [word.text for word in found.strongest(-1)] == ["bad"]
  assert words.Contribution("“yes”", []).largest == 0


def test_a_word_that_is_strong_twice_is_named_once():
  row = [words.Word(*each) for each in (("book", 1.0), ("the", 1.5), ("book", 2.0), ("a", 0.5))]
  found = words.Contribution("“yes”", [row]).strongest(1, count=3)
  assert [(word.text, word.share) for word in found] == [("book", 2.0), ("the", 1.5), ("a", 0.5)]
