"""The item with which a model is tried."""

import pytest

from bert.io import text_lines
from bert.predicting import answer_lines
from bert.tasks import usage


def test_a_short_item_is_chosen_and_else_the_shortest():
  long, longer = {"text_a": "a" * 400}, {"text_a": "b" * 500}
  assert usage.choose([longer, {"text_a": "", "text_b": "x"}, long]) == {"text_b": "x"}
  assert usage.choose([longer, long]) == long
  assert usage.choose([{"text_a": " "}, {"text_a": None}, {}]) is None
  choices = {"context": "It rains.", "choices": ["a", "b"]}
  assert usage.choose([{"context": "x", "choices": ["a", " "]}, choices]) == choices


@pytest.mark.parametrize(
  "item",
  [
    {"text_a": 'It\'s "5 < 6" & \\n $HOME'},
    {"text_a": "It rains.", "text_b": "It is wet."},
    {"text": "{ a brace"},
    {"text_a": "{ braces }"},
    {"text_a": "two\nlines", "text_b": "one"},
    {"text_a": "a ||| b", "text_b": "c"},
    {"text_a": "a ||| b"},
    {"text_a": " blanks "},
    {"question": "Who?", "context": "It was me."},
    {"context": "She", "choices": ["a", "b"]},
  ],
)
def test_a_line_is_read_as_the_item(item):
  line = usage.as_line(item)
  assert len(line.splitlines()) == 1
  [found] = answer_lines.parse_lines([line], text_lines.STANDARD_STREAM)
  if isinstance(found, dict):
    assert found == item
  else:
    assert [found] if isinstance(found, str) else list(found) == list(item.values())


def test_the_item_of_a_run_is_that_of_its_best_weights(tmp_path):
  assert usage.read(str(tmp_path)) is None
  (tmp_path / usage.FILE).write_text('{"text_a": "It rains."}')
  (tmp_path / "best").mkdir()
  expected = {"text_a": "It rains."}
  assert usage.read(str(tmp_path)) == usage.read(str(tmp_path / "best")) == expected
