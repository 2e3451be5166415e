"""Steps of Beam's pipelines that kill their own process once, as a machine may die at any time."""

import os
import pathlib
import signal

from bert.clusters import attempts
from bert.predicting import beam as predicting_beam
from bert.pretraining import beam as pretraining_beam

# Environment variables that name files:
DIED = "BERT_TEST_DIED"  # it is there once a process has died
WRITTEN = "BERT_TEST_WRITTEN"  # has a line for each shard that was computed


def _die() -> None:
  os.kill(os.getpid(), signal.SIGKILL)


def _number_of(path: str) -> int | None:
  """The file's number on its disk, which is another one when it is written again."""
  return os.stat(path).st_ino if os.path.exists(path) else None


class MakeRecordsAndDie(pretraining_beam.MakeRecords):
  """`MakeRecords`, whose first process dies after its first record."""

  def process(self, element):
    """Records of one range; see `MakeRecords.process`."""
    died = pathlib.Path(os.environ[DIED])
    for record in super().process(element):
      yield record
      if not died.exists():
        died.touch()
        _die()


class WriteShardAndDie(predicting_beam.WriteShard):
  """`WriteShard`, whose first process to do so dies in its second shard, with half a file."""

  shards = 0  # that this process has begun

  def process(self, element):
    """Writes one shard; see `WriteShard.process`."""
    output, died = element[0], pathlib.Path(os.environ[DIED])
    before = _number_of(output)
    type(self).shards += before is None
    if self.shards > 1 and not died.exists():
      died.touch()
      with attempts.whole(output) as path:
        pathlib.Path(path).write_text("half a li")
        _die()
    super().process(element)
    if _number_of(output) != before:
      with open(os.environ[WRITTEN], "a", encoding="utf-8") as writer:
        writer.write(f"{os.path.basename(output)}\n")
