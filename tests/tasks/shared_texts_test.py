"""Tests of bert/tasks/shared_texts.py, and that runs of all tasks ask for it."""

import logging

import pytest

from bert import run_ner, run_squad, run_swag
from bert.tasks import shared_texts
from bert.tasks.conll_files import TaggedSentence
from bert.tasks.multiple_choice import ChoiceExample
from bert.tasks.squad import SquadExample


@pytest.mark.parametrize(
  ("size", "level", "start"),
  [(2, logging.WARNING, "1 of 2"), (60, logging.INFO, "1 of 60"), (0, None, "")],
)
def test_examples_that_the_model_has_seen_are_counted(caplog, size, level, start):
  caplog.set_level(logging.INFO, logger="absl")
  others = [["It  rains.", "Yes."], *([f"{i}"] for i in range(size - 2)), None][:size]
  shared_texts.warn_of_shared({shared_texts.key(["It rains. ", "Yes."])}, others, "dev")
  assert [record.levelno for record in caplog.records] == [level] * bool(size)
  assert caplog.text.count(f"{start} examples of dev are in the training set, too") == bool(size)


def test_the_text_that_is_shown_is_one_and_has_two_quotes(caplog):
  texts = [[" "], ["It rained. " * 9]]
  shared_texts.warn_of_shared(set(map(shared_texts.key, texts)), texts, "dev")
  [message] = caplog.messages
  assert message.startswith("1 of 2 examples of dev")
  assert "such as 'It rained. It" in message
  assert "...': scores" in message


@pytest.mark.parametrize(
  ("task_class", "example", "texts"),
  [
    (run_ner.Tagging, TaggedSentence("", list("abcde")), ["a b c d e"]),
    (run_ner.Tagging, TaggedSentence("", ["London", "1996"]), []),
    (
      run_squad.QuestionAnswering,
      SquadExample("", "Who?", [], context="I did."),
      ["Who?", "I did."],
    ),
    (run_swag.MultipleChoice, ChoiceExample("", "He", ["runs", "eats"]), ["He", "runs", "eats"]),
  ],
)
def test_each_task_tells_the_texts_of_its_examples(task_class, example, texts):
  item, _ = task_class.view(None, example)
  assert shared_texts.texts_of(item) == texts
