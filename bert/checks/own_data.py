"""The data of a task of one's own for `doctor.py`: what its run reads."""

from bert.checks.findings import note
from bert.checks.task_data import SPLITS, TaskData, Text, TextSet
from bert.tasks import kinds, shared_texts, user_tables


class OwnData(TaskData):
  """The examples of a task, as far as `Task.view` tells their texts."""

  reads_folder = True

  def sets(self, names):
    """Reads the splits of `--task_name`."""
    task_class = kinds.find(self.subject.task_name).task_class()
    self.task = task_class(self.subject.settings, self.subject.config)
    is_one = user_tables.is_table(self.subject.data_dir)  # which a run divides
    yield from super().sets(SPLITS[:1] if is_one else SPLITS)

  def read(self, name):
    """Reads a split; that of training shows the labels."""
    task, folder = self.task, self.subject.data_dir
    self.subject.facts |= task.facts()
    data = task.data_sets(name)[0]
    if data.is_training:
      task.prepare(data)
      self.subject.facts |= task.facts()
    if not data.examples:
      raise ValueError(f"There is no example for {name}.")
    texts = []
    for number, example in enumerate(data.examples):
      try:
        item, gold = task.view(example)
      except AttributeError as error:
        yield note(f"Task.view does not tell the texts of {name} ({error}).", folder)
        return
      words = shared_texts.texts_of(item) or [""]
      where = getattr(example, "source", None) or f"{folder}, {name} example {number + 1}"
      labels = (str(gold),) if task.labels and gold is not None and name != "test" else ()
      texts.append(Text(words[0], " ".join(words[1:]), labels, where.replace(", line ", ":")))
    yield TextSet(name, folder, texts, task.labels or ())
