"""SQuAD's files for `doctor.py`: questions with their paragraphs."""

import re

from bert.checks.findings import error, warning
from bert.checks.task_data import TaskData, Text, TextSet, split_of
from bert.tasks import squad
from bert.text import text_files

_MAX_QUERY_LENGTH = 64  # the default of run_squad.py
_MANY_LOST = 0.01


class SquadData(TaskData):
  """Questions; labels say whether they have an answer."""

  endings = (".json", ".json.gz")

  @classmethod
  def looks_like(cls, head):
    """Looks for the first key of a file, or for those of JSON Lines."""
    keys = ('"context"', '"question"', '"answers"')
    return re.match(r'\s*\{\s*"(data|version)"', head) is not None or all(k in head for k in keys)

  def read(self, name):
    """Reads a file, and counts answers that are not where it says, if they are to train on."""
    self.subject.facts["task_name"] = "squad"
    with text_files.open_bytes(name) as reader:
      content = reader.read()
    questions, answered = content.count(b'"question"'), content.count(b'"answer_start"') > 0
    answered = answered and self._trains_on(name)
    has_negative = re.search(rb'"is_impossible"|"text":\s*\[\s*\]', content) is not None
    examples = squad.read_squad_examples(name, answered, has_negative)
    if lost := questions - len(examples):
      # Few are in the official file, too; many are a fault of the program that wrote it.
      yield (error if lost > _MANY_LOST * questions else warning)(
        f"The answers of {lost} of {questions} questions are not where the file says.",
        name,
        "Training skips such questions. Correct their answer_start.",
      )
    labels = ("answered", "impossible")
    texts = [
      Text(
        example.question_text,
        " ".join(example.doc_tokens),
        (labels[bool(example.is_impossible)],) if has_negative and answered else (),
        f"{name}, question {example.qas_id}",
      )
      for example in examples
    ]
    known = labels if has_negative and answered else ()
    cut = (_MAX_QUERY_LENGTH, "--max_query_length")
    yield TextSet(split_of(name), name, texts, known, is_whole=False, longest_first=cut)

  def _trains_on(self, name: str) -> bool:
    """Whether the answers in a file are to be learned, and not merely compared with."""
    get = self.subject.settings.get
    files = {job: (get(f"{job}_file") or "").split(",") for job in ("train", "predict")}
    if name in files["train"]:
      return True
    return name not in files["predict"] and split_of(name) not in ("dev", "test")
