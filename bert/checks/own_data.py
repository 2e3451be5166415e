"""The data of a task of one's own for `doctor.py`: what its run reads."""

from bert.checks.findings import note
from bert.checks.task_data import SPLITS, TaskData, Text, TextSet
from bert.tasks import kinds, user_tables


class OwnData(TaskData):
  """The examples of a task, as far as `Task.texts` says which texts they have."""

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
    said = [task.texts(example) for example in data.examples]
    if not said:
      raise ValueError(f"There is no example for {name}.")
    if None in said:
      yield note(f"Task.texts does not say the texts of {name}.", folder)
      return
    texts = []
    for number, (example, (words, labels)) in enumerate(zip(data.examples, said, strict=True)):
      where = getattr(example, "source", None) or f"{folder}, {name} example {number + 1}"
      known = tuple(map(str, labels)) if name != "test" else ()
      texts.append(Text(words[0], (*words, None)[1], known, where.replace(", line ", ":")))
    yield TextSet(name, folder, texts, task.labels or ())
