"""Tests of bert/fine_tuning/engine.py: the steps of a run that computes nothing."""

import pytest

from bert.fine_tuning import engine
from bert.fine_tuning.task import DataSet, Task
from bert.scripts.run_settings import SplitSettings
from bert.tokenization import FullTokenizer
from tests.kit.tokenizer_definition import write_vocab


class TinyRun(engine.FineTuning):
  """Notes its steps instead of taking them."""

  def __init__(self, tmp_path, **values):
    defaults = dict.fromkeys(("do_train", "do_eval", "do_predict"), False)
    values = {"output_dir": str(tmp_path), "shows_examples": True, **defaults, **values}
    super().__init__(Task, SplitSettings(**values), None, None)
    self.taken = []

  def _evaluate(self, checkpoint_path):
    self.taken.append(("evaluated", checkpoint_path))

  def _predict(self, checkpoint_path):
    self.taken.append(("predicted", checkpoint_path))


@pytest.mark.parametrize(
  ("values", "expected"),
  [
    ({}, []),
    ({"do_eval": True}, [("evaluated", "best")]),
    ({"do_predict": True}, [("predicted", "best")]),
    ({"do_eval": True, "do_predict": True}, [("evaluated", "best"), ("predicted", "best")]),
  ],
)
def test_what_flags_ask_for_is_done_with_the_best_weights(tmp_path, values, expected):
  run = TinyRun(tmp_path, **values)
  run.use("best")
  assert run.taken == expected


def test_one_example_is_shown_and_only_if_wanted(tmp_path):
  run = TinyRun(tmp_path)
  assert [run._shown_examples() for _ in range(3)] == [1, 0, 0]
  assert not TinyRun(tmp_path, shows_examples=False)._shown_examples()


class Texts(Task):
  """Records of one sequence, and nothing else."""

  name = "texts"

  def records(self, data, num_shown):
    """See base class."""
    return ({**self.sequence(example), "label_ids": 0} for example in data.examples)


def test_every_task_warns_when_it_writes_its_records(tmp_path, caplog):
  vocab_file = write_vocab(tmp_path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n")
  values = {"output_dir": str(tmp_path), "max_seq_length": 8, "use_tpu": False}
  values |= {"do_train": True, "shows_examples": False}
  run = engine.FineTuning(Texts, SplitSettings(**values), None, FullTokenizer(vocab_file))
  for split, text in (("train", "кот"), ("dev", "the the")):
    run._write(DataSet(split, [text]))
    run._write(DataSet(split, [text]))
  assert [message.partition(" are")[0] for message in caplog.messages] == [
    "100% of the tokens of train"
  ]
