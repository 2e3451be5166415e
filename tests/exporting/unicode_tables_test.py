"""The size of the tables of characters; what they say: hub_preprocess_test.py."""

import unicodedata

import numpy as np

from bert import tokenization
from bert.exporting import unicode_tables as tables


def test_only_rare_characters_are_slow():
  main = tables.character_tables(do_lower_case=True).main
  slow = [chr(code) for code in range(0x110000) if main[code] & tables.SLOW]
  hangul = [char for char in slow if unicodedata.name(char).startswith("HANGUL SYLLABLE")]
  assert len(hangul) == 11172
  assert {"Σ", "\u302e"} < set(slow)
  assert not any(0x400 <= ord(char) < 0x900 or ord(char) < 0x3A3 for char in slow)
  assert len(slow) - len(hangul) < 150


def test_tables_are_small():
  main, slow = tables.character_tables(do_lower_case=True)
  arrays = [*main, *slow.sigma, *slow.expansion, *slow.element, slow.pool]
  assert sum(array.nbytes for array in arrays) < 600_000
  assert {array.dtype for array in arrays} == {np.dtype(t) for t in ("u1", "i2", "i4")}


def test_asking_does_not_fill_the_tokenizers_memory():
  """A million remembered characters would stay with every process that exports."""
  tables.character_tables(do_lower_case=True)
  assert len(tokenization._CLEAN_TABLE) < 350_000
