"""What a task of one's own is written with; docs/extending.md shows how.

  from bert import fine_tuning

  @fine_tuning.register
  class Relations(fine_tuning.Task):
    name = "relations"
    ...

  if __name__ == "__main__":
    fine_tuning.main(Relations)

Importing this package imports no TensorFlow.
"""

from bert.fine_tuning.engine import main, register, start
from bert.fine_tuning.task import LENGTH, DataSet, Task
from bert.io.tables import DataError
from bert.model.task_head import Batch, Head
from bert.scripts.run_settings import SplitSettings
from bert.scripts.settings import UsageError, setting
from bert.tasks.user_tables import TableRow

__all__ = [
  "LENGTH",
  "Batch",
  "DataError",
  "DataSet",
  "Head",
  "SplitSettings",
  "TableRow",
  "Task",
  "UsageError",
  "main",
  "register",
  "setting",
  "start",
]
