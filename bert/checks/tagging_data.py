"""CoNLL files for `doctor.py`: sentences and the labels of their words."""

import re

from bert.checks.findings import warning
from bert.checks.sentence_data import malformed_rows
from bert.checks.task_data import TaskData, Text, TextSet, split_of
from bert.tasks import conll_files, label_counts, label_schemes

_LABEL = re.compile(r"(O|[BIESLUMW](-\S+)?)$")
_FORMAT = ("separator", "token_column", "label_column", "label_scheme", "comment_prefix")


class TaggingData(TaskData):
  """Sentences; the labels of words are counted by their types."""

  # Whatever they hold: a wrong line is reported by its number.
  endings = (".conll", ".bio", ".conllu", ".bmes")

  @classmethod
  def looks_like(cls, head):
    """Looks for labels at the ends of most lines; one without is reported later."""
    lines = [line.split() for line in head.split("\n")[:200] if line.strip()]
    return sum(len(line) > 1 and bool(_LABEL.match(line[-1])) for line in lines) > 0.5 * len(lines)

  def read(self, name):
    """Reads a file; that of training has the labels of the model."""
    facts, split = self.subject.facts, split_of(name)
    conll_format = self._format()
    facts["task_name"] = "ner"
    skip = bool(self.subject.settings.get("skip_bad_rows"))
    found = conll_files.read_conll(name, conll_format, "", split != "test", skip_bad_rows=True)
    words = sum(len(e.words) for e in found.examples)
    yield from malformed_rows(found.bad_rows, name, words, skip)
    if split == "train":
      facts["labels"] = self.subject.settings.get("labels") or label_schemes.model_labels(
        found.types(), label_schemes.scheme_to_learn(conll_format.scheme)
      )
    for text in label_counts.about_nearly_equal(sorted(found.types()), "types"):
      yield warning(text, name)
    texts = [
      Text(" ".join(e.words), None, tuple(e.labels or ()), f"{name}:{e.lines[0] + 1}")
      for e in found.examples
    ]
    yield TextSet(split, name, texts, is_whole=False, counted_as=_type_of)

  def _format(self) -> conll_files.ConllFormat:
    given = {flag: self.subject.settings.get(flag) for flag in _FORMAT}
    if (column := given["label_column"]) is not None:  # in a table it may be a name
      given["label_column"] = int(column) if str(column).lstrip("-").isdecimal() else None
    given = {flag.replace("label_scheme", "scheme"): value for flag, value in given.items()}
    return conll_files.ConllFormat(**{n: value for n, value in given.items() if value is not None})


def _type_of(label: str) -> str:
  return label.partition("-")[2] or label
