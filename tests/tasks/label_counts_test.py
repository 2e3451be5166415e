"""Tests of bert/tasks/label_counts.py."""

import pytest

from bert.tasks import label_counts
from bert.tasks.classification import InputExample


def messages_about(caplog, values, labels=None, problem_type="classification", set_name="train"):
  caplog.set_level("INFO", logger="absl")
  examples = [InputExample(str(i), "x", None, value) for i, value in enumerate(values)]
  labels = sorted(set(values)) if labels is None else labels
  label_counts.log_labels(examples, labels, set_name, problem_type)
  return caplog.messages


def test_counts_come_in_order(caplog):
  values = ["food"] * 3 + ["sport"] * 2 + [" x"]
  assert messages_about(caplog, values, set_name="dev") == [
    "Labels of 6 dev examples: food 3, sport 2, ' x' 1."
  ]


def test_many_labels_fit_one_line(caplog):
  values = [f"label {i}" for i in range(30) for _ in range(30 - i)]
  (message,) = messages_about(caplog, values)
  assert message.startswith("Labels of 465 train examples: label 0 30, label 1 29, ")
  assert message.endswith(", label 11 19, and 18 others with 18 to 1 each.")


@pytest.mark.parametrize(
  "names",
  [
    ("sport", "Sport", " sport"),
    ("1", "1.0"),
    ("1", "true", "1.0"),
    ("new york", "New  York", "newyork"),
    ("caf\u00e9", "cafe\u0301"),
    ("pos", "pos\u00a0"),
  ],
)
def test_labels_that_are_nearly_equal_are_named(caplog, names):
  _, warning = messages_about(caplog, [*names, "food"])
  assert all(f"{name!r} (1)" in warning for name in names)
  assert f"are {len(names)} classes" in warning


@pytest.mark.parametrize("letter", ["\u200b", "\ufeff", "\u200d", "\u00ad"])
@pytest.mark.parametrize("problem_type", ["classification", "multi_label"])
def test_labels_with_invisible_letters_are_named(caplog, letter, problem_type):
  label = f"pos{letter}"
  values = ["neg", label, "pos", label]
  values = [(value,) for value in values] if problem_type == "multi_label" else values
  _, warning, equal = messages_about(caplog, values, ["neg", "pos", label], problem_type)
  assert warning.startswith(f"The label {label!r} of 2 train examples contains the invisible U+")
  assert f"U+{ord(letter):04X}, first in 1." in warning
  assert "are 2 classes" in equal
  assert "Did you mean 'pos'" in label_counts.unknown_label(label, ["neg", "pos"])


def test_a_single_class_and_a_class_without_examples(caplog):
  assert messages_about(caplog, ["a", "a"], ["a", "b", "c"])[1:] == [
    "No training example has the label 'b', 'c'.",
    "All training examples have the label 'a': nothing can be learned.",
  ]


@pytest.mark.parametrize("missing", ["nan", "None", "N/A", " null"])
def test_a_label_that_is_a_missing_value(caplog, missing):
  _, warning = messages_about(caplog, [missing, "a"])
  assert warning == f"The label {missing!r} of 1 examples may be a missing value."


def test_nothing_is_said_of_good_labels_and_of_other_sets(caplog):
  assert len(messages_about(caplog, ["a", "b"])) == 1
  caplog.clear()
  assert len(messages_about(caplog, ["a", "A"], set_name="dev")) == 1
  caplog.clear()
  assert messages_about(caplog, [None, None], ["0"]) == []
  assert messages_about(caplog, [], ["0"]) == []


def test_several_labels(caplog):
  values = [("a", "b"), (), ("a",)]
  labels = ["a", "b"]
  assert messages_about(caplog, values, labels, "multi_label") == [
    "Labels of 3 train examples: a 2, b 1, no label at all 1."
  ]


def test_a_label_of_a_list_that_holds_the_separator(caplog):
  labels = ["price, shipping", "a"]
  counts, warning = messages_about(caplog, [tuple(labels)], labels, "multi_label")
  assert "'price, shipping' 1, a 1." in counts
  assert "--label_separator=, stands in it" in warning


@pytest.mark.parametrize(
  ("label", "said"), [("a; b", "--label_separator"), ("['a'", "without brackets")]
)
def test_labels_that_are_several_in_one(caplog, label, said):
  _, warning = messages_about(caplog, [(label,), ("b",)], [label, "b"], "multi_label")
  assert said in warning
  assert repr(label) in warning


def test_scores(caplog):
  assert messages_about(caplog, [1.0, 4.0], ["score"], "regression") == [
    "Labels of 2 train examples: from 1 to 4, mean 2.5."
  ]
  caplog.clear()
  assert "nothing to learn" in messages_about(caplog, [2.0, 2.0], ["score"], "regression")[1]


def test_an_unknown_label_that_is_nearly_known():
  assert label_counts.unknown_label("neg", ["Pos", "Neg"]).endswith("Did you mean 'Neg'?")
  assert "mean" not in label_counts.unknown_label("x", ["Pos", "Neg"])


def test_types_of_entities_that_are_nearly_equal():
  (warning,) = label_counts.about_nearly_equal(["LOC", "ORG", "org"], "types")
  assert warning.startswith("The types 'ORG', 'org' are 2 classes")
