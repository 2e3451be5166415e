"""A step of the Beam pipeline that kills its own process once, as a machine may die at any time."""

import os
import pathlib
import signal

from bert.pretraining import beam

DIED = "BERT_TEST_DIED"  # names the file that says that it happened


class MakeRecordsAndDie(beam.MakeRecords):
  """`MakeRecords`, whose first process dies after its first record."""

  def process(self, element):
    """Records of one range; see `MakeRecords.process`."""
    died = pathlib.Path(os.environ[DIED])
    for record in super().process(element):
      yield record
      if not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
