"""What a report is about: the values that its caller has read, found and computed."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bert.reports.words import Contribution
from bert.tasks.shown import Case, Shown


@dataclasses.dataclass
class Examples:
  """Examples that were answered for the report.

  Attributes:
    shown: how the task shows them.
    gold: what is right for each, None where it is unknown.
    cases: each with its answer.
    numbers: their places in the file, from 1.
    lengths: tokens of the longest sequence of each.
    unknown: the share of unknown tokens of each.
    total: how many examples the set has.
    source: the name of the set.
    scores: of the answers, by name; empty where examples are a sample, or cannot be scored.
    contributions: number of a case, from 0 -> what its words contributed; of some cases.
    label_counts: examples of each class in the whole set; empty where there are no classes.
  """

  shown: Shown
  gold: Sequence[Any]
  cases: Sequence[Case]
  numbers: Sequence[int]
  lengths: Sequence[int]
  unknown: Sequence[float]
  total: int
  source: str = "dev"
  scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
  contributions: Mapping[int, Contribution] = dataclasses.field(default_factory=dict)
  label_counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Subject:
  """A run.

  Attributes:
    folder: as its user names it.
    task: what the data are: a public task by its name, else the kind of task and the file.
    results: name -> number as `eval_results.txt` spells it, in its order.
    headline: the result that counts.
    failure: why the model counts as failed, or None.
    command: the command line that made the run; "" where it is unknown.
    flags: of the run.
    versions: of Python and libraries.
    facts: more about model and run, name -> words.
    curves: a `figures.event_files.Run`, or None.
    findings: `checks.findings.Finding`s about the data.
    evaluated: the number of examples of which the results are; None where it is unknown.
    examples: that were answered, or None.
    missing: what the report lacks, sentences.
    usage: name of a language -> code with which the model is used.
  """

  folder: str
  task: str
  results: Mapping[str, str]
  headline: str
  failure: str | None = None
  command: str = ""
  flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
  facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
  curves: Any = None
  findings: Sequence[Any] = ()
  evaluated: int | None = None
  examples: Examples | None = None
  missing: Sequence[str] = ()
  usage: Mapping[str, str] = dataclasses.field(default_factory=dict)
