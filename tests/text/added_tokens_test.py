"""Tokens that stay whole in a text.

Alone: python -m pytest tests/text/added_tokens_test.py (a second)
"""

import copy

import pytest
import tokenizers

from bert.text.added_tokens import AddedToken, Finder, Part


@pytest.mark.parametrize(
  ("settings", "text", "expected"),
  [
    ({}, "a<x> <x>", [Part(0, 1, None), Part(1, 4, 7), Part(4, 5, None), Part(5, 8, 7)]),
    ({"lstrip": True}, "a \u2028<x>", [Part(0, 1, None), Part(1, 6, 7)]),
    ({"rstrip": True}, "<x> \t", [Part(0, 5, 7)]),
    ({"lstrip": True, "rstrip": True}, "<x>  <x>", [Part(0, 5, 7), Part(5, 8, 7)]),
    ({"single_word": True}, "a<x> <x>,", [Part(0, 5, None), Part(5, 8, 7), Part(8, 9, None)]),
  ],
)
def test_tokens_are_found(settings, text, expected):
  finder = Finder({"<x>": (7, AddedToken("<x>", **settings))})
  found = finder.split(text)
  assert found == expected
  assert "".join(text[part.start : part.end] for part in found) == text


def test_the_longest_token_wins():
  tokens = {content: (number, AddedToken(content)) for number, content in enumerate(["ab", "abc"])}
  assert Finder(tokens).split("abcab") == [Part(0, 3, 1), Part(3, 5, 0)]


def test_special_tokens_can_be_left_alone():
  finder = Finder({"<x>": (7, AddedToken("<x>", special=True))})
  assert finder.split("a<x>", split_special_tokens=True) == [Part(0, 4, None)]


def test_a_token_is_like_the_librarys():
  for settings in ({}, {"special": True}, {"lstrip": True, "normalized": False}):
    ours, theirs = AddedToken("<x>", **settings), tokenizers.AddedToken("<x>", **settings)
    assert repr(ours) == repr(theirs)
    assert AddedToken.of(theirs) == ours == AddedToken.of(ours.settings()) == copy.deepcopy(ours)
  assert AddedToken("<x>") != AddedToken("<x>", lstrip=True)
  with pytest.raises(TypeError, match="must be str"):
    AddedToken.of(5)
