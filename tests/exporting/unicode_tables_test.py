"""What each character becomes in a graph is what the tokenizer makes of it."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert import tokenization
from bert.exporting import unicode_tables as tables

CHINESE_RANGES = (
  (0x4E00, 0x9FFF),
  (0x3400, 0x4DBF),
  (0x20000, 0x2A6DF),
  (0x2A700, 0x2B73F),
  (0x2B740, 0x2B81F),
  (0x2B820, 0x2CEAF),
  (0xF900, 0xFAFF),
  (0x2F800, 0x2FA1F),
)


def is_chinese(char):
  return any(first <= ord(char) <= last for first, last in CHINESE_RANGES)


def defined_kind(char):
  """What cleaning and splitting say of a character that does not change any more."""
  category = unicodedata.category(char)
  if char in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
    return tables.SPACE
  if char == "\ufffd" or category in ("Cc", "Cf"):
    return tables.DROPPED
  is_symbol = char in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
  if is_symbol or category[0] == "P" or is_chinese(char):
    return tables.ALONE
  return tables.LETTER


def kind_of(cell):
  return cell >> tables.KIND_SHIFT & 3


def chosen(every):
  """All assigned characters, the edges of all pages' sixteenths, and `every` so many others."""
  for code in range(0x110000):
    assigned = unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
    if assigned or (code < 0x30000 and code % 16 in (0, 15)) or code % every == 0:
      yield chr(code)


@pytest.mark.parametrize("every", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_cased_characters_stay_and_have_the_defined_kind(every):
  main, slow = tables.character_tables(do_lower_case=False)
  assert slow is None
  for char in chosen(every):
    assert main[ord(char)] == defined_kind(char) << tables.KIND_SHIFT, ascii(char)


@pytest.mark.parametrize("every", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_uncased_characters_become_what_is_defined(every):
  main, slow = tables.character_tables(do_lower_case=True)
  for char in chosen(every):
    cell = main[ord(char)]
    decomposed = unicodedata.normalize("NFD", char.lower())
    remains = [part for part in decomposed if unicodedata.category(part) != "Mn"]
    kind = defined_kind(char)
    if kind in (tables.DROPPED, tables.SPACE):
      assert cell == kind << tables.KIND_SHIFT, ascii(char)
      continue
    assert bool(cell & tables.ACCENT) == (not remains), ascii(char)
    assert bool(cell & tables.CHINESE) == is_chinese(char), ascii(char)
    if not remains:
      assert kind_of(cell) == tables.DROPPED, ascii(char)
      continue
    assert expanded(slow, char) == decomposed, ascii(char)
    if cell & tables.SLOW:
      continue
    assert len(remains) == 1, ascii(char)
    assert not unicodedata.combining(remains[0]), ascii(char)
    assert chr(ord(char) ^ (cell & tables.CODE_MASK)) == remains[0], ascii(char)
    assert kind_of(cell) == (kind if is_chinese(char) else defined_kind(remains[0])), ascii(char)


def expanded(slow, char):
  entry = slow.expansion[ord(char)]
  if not entry:
    return char
  start, length = entry >> tables.LENGTH_BITS, entry & (1 << tables.LENGTH_BITS) - 1
  return "".join(map(chr, slow.pool[start : start + length]))


def test_only_rare_characters_are_slow():
  main = tables.character_tables(do_lower_case=True).main
  slow = [chr(code) for code in range(0x110000) if main[code] & tables.SLOW]
  hangul = [char for char in slow if unicodedata.name(char).startswith("HANGUL SYLLABLE")]
  assert len(hangul) == 11172
  assert {"Σ", "\u302e"} < set(slow)
  assert not any(0x400 <= ord(char) < 0x900 or ord(char) < 0x3A3 for char in slow)
  assert len(slow) - len(hangul) < 150


def test_elements_have_kind_and_combining_class():
  slow = tables.character_tables(do_lower_case=True).slow
  for char in set(map(chr, slow.pool)) | set(map(chr, range(0x3000))):
    is_accent = unicodedata.category(char) == "Mn"
    kind = tables.DROPPED if is_accent else defined_kind(char)
    expected = unicodedata.combining(char) << tables.CLASS_SHIFT | kind
    assert slow.element[ord(char)] == expected, ascii(char)


def lowered_by_roles(word, roles):
  result = ""
  for index, char in enumerate(word):
    before = [roles[ord(c)] for c in word[:index] if roles[ord(c)] != tables.SKIPPED]
    after = [roles[ord(c)] for c in word[index + 1 :] if roles[ord(c)] != tables.SKIPPED]
    is_final = before[-1:] == [tables.CASED] and after[:1] != [tables.CASED]
    result += "ς" if char == "Σ" and is_final else char.lower()
  return result


@given(
  st.text(
    st.one_of(st.sampled_from("ΣΣΣσaA.:'\u0301\u00b7\u2019-ªⅧ1博\u02b0"), st.characters()),
    max_size=8,
  )
)
@settings(deadline=None, max_examples=500)
def test_roles_beside_a_sigma_give_pythons_lower_case(word):
  roles = tables.character_tables(do_lower_case=True).slow.sigma
  assert lowered_by_roles(word, roles) == word.lower()


def test_blanks_and_chinese_characters_end_a_sigmas_word():
  main, slow = tables.character_tables(do_lower_case=True)
  for code in range(0x110000):
    if main[code] & tables.CHINESE or kind_of(main[code]) == tables.SPACE:
      assert slow.sigma[code] == tables.UNCASED, hex(code)


def test_tables_are_small():
  main, slow = tables.character_tables(do_lower_case=True)
  arrays = [*main, *slow.sigma, *slow.expansion, *slow.element, slow.pool]
  assert sum(array.nbytes for array in arrays) < 600_000
  assert {array.dtype for array in arrays} == {np.dtype(t) for t in ("u1", "i2", "i4")}


def test_asking_does_not_fill_the_tokenizers_memory():
  """A million remembered characters would stay with every process that exports."""
  tables.character_tables(do_lower_case=True)
  assert len(tokenization._CLEAN_TABLE) < 350_000
