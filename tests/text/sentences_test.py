"""Where sentences end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.text.sentences import split_sentences


@pytest.mark.parametrize(
  "expected",
  [
    ["One.", "Two!", "Three?", "Four"],
    ["Really?!", "Yes..."],
    ["He said “Go.”", "She went."],
    ["Dr. Who met J. R. R. Tolkien.", "Mr. Frodo was there."],
    ["See Fig. 2 and No. 5, pp. 3 to 9.", "The answer is no.", "It ends."],
    ["It is 3.14 or 1.5e3.", "Version 2.0 came."],
    ["This is e.g. Berlin or i.e. a town.", "Next."],
    ["So did I.", "You, too."],
    ["Ask www.example.com about it.", "Or not."],
    ["¿Qué?", "¡Nada!", "Fin."],
    ["no small letter. begins one"],
    ["これは本です。", "それは？", "はい！"],
    ["他说：“你好。”", "我走了。"],
    ["中文。", "English follows.", "再来。"],
  ],
)
def test_sentences(expected):
  separator = "" if "。" in expected[0] and "文" not in expected[0] else " "
  assert split_sentences(separator.join(expected)) == expected
  assert split_sentences(" ".join(expected)) == expected


@given(st.text(alphabet='aB1 .!?。！“”"()…\n', max_size=60))
def test_no_character_is_lost(text):
  found = split_sentences(text)
  assert "".join("".join(found).split()) == "".join(text.split())
  assert all(sentence == sentence.strip() != "" for sentence in found)


def test_a_long_paragraph_takes_linear_time():
  for paragraph in ("a" * 2_000_000, ". " * 500_000, "." * 1_000_000, "。”" * 300_000):
    assert split_sentences(paragraph)
