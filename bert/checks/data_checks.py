"""Whether a model can learn from texts and labels.

The checks of `doctor.py` that look at data: tables of GLUE or the user's own, SQuAD, CoNLL, plain
text. The kind of a file is recognised (`recognise`) or given by `--task_name`. See `findings.py`.
"""

import collections
import itertools
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert.checks import record_checks
from bert.checks.findings import (
  Finding,
  RunUnderCheck,
  error,
  finding_from_error,
  note,
  ok,
  share,
  warning,
)
from bert.io import filesystem, vocabulary_kind
from bert.io.wording import counted

_SPLITS = ("train", "dev", "test")
_TABLES = ("tsv", "csv", "jsonl")
_CONLL_ENDINGS = (".conll", ".bio")
_CONLL_LABEL = re.compile(r"(O|[BIESLU]-\S+)$")
_MAX_QUERY_LENGTH = 64  # the default of run_squad.py

# Above these shares a finding is a warning and not a note.
_MANY_CUT = 0.25
_MANY_REPEATED = 0.05
_MANY_SHARED = 0.02
_MANY_LOST = 0.01
_MANY_UNKNOWN = 0.05
_ONE_SIDED = 0.95


class Text(NamedTuple):
  """One example, whatever the task.

  Attributes:
    first: the text, or the question.
    second: the second text, or the paragraph, or None.
    labels: none, one or several.
    where: file:line.
  """

  first: str
  second: str | None
  labels: tuple[str, ...]
  where: str


class TextSet(NamedTuple):
  """The examples of one split, and the file they are from.

  Attributes:
    split: train, dev, test or another name.
    path: of the file.
    texts: the examples.
    known_labels: all labels of the model; [] if labels are not classes.
    kind: of `KINDS`.
  """

  split: str
  path: str
  texts: list[Text]
  known_labels: Sequence[str] = ()
  kind: str = "table"


# ---------------------------------------------------------------------------------------------
# Kinds of data.


def check_data(subject: RunUnderCheck) -> Iterator[Finding]:
  """Recognises the data of `--data_dir` or `--input_file`, and checks them."""
  if not (subject.data_dir or subject.input_file):
    yield note("Without --data_dir or --input_file, data are not checked.")
    return
  if subject.data_dir == "download":
    yield note("The data would be downloaded; they are not checked.")
    return
  by_kind = collections.defaultdict(list)
  is_task = bool(subject.task_name and subject.data_dir)
  for path in () if is_task else _files_of(subject):
    by_kind[recognise(path)].append(path)
  if is_task or by_kind["table"]:
    if not is_task:
      yield note("Tables are read as --task_name=csv; for a task of GLUE give its --task_name.")
    sets = _read_task(subject)
  else:
    sets = itertools.chain(
      _read_each(subject, by_kind["squad"], _read_squad),
      _read_each(subject, by_kind["conll"], _read_conll),
    )
    yield from record_checks.check_record_files(subject, by_kind["records"])
    if by_kind["text"]:
      yield from _check_corpus(subject, by_kind["text"])
  text_sets = []
  for found in sets:
    if isinstance(found, Finding):
      yield found
    else:
      text_sets.append(found)
      yield from _check_set(subject, found)
  yield from _shared(text_sets)


def _files_of(subject: RunUnderCheck) -> list[str]:
  from bert.text import text_files

  if subject.input_file:
    return text_files.find_input_files(subject.input_file)
  folder = subject.data_dir
  if not filesystem.is_folder(folder):
    raise NotADirectoryError(20, "--data_dir is not a folder", folder)
  names = (name for name in filesystem.list_folder(folder) if not name.startswith("."))
  files = list(filter(filesystem.is_file, (os.path.join(folder, name) for name in names)))
  if not files:
    raise ValueError(f"--data_dir={folder} holds no file.")
  return files


def recognise(path: str) -> str:
  """The kind of a file: records, squad, conll, table or text."""
  from bert.text import text_files

  if record_checks.are_records(path):
    return "records"
  if path.endswith((".csv", ".jsonl")):
    return "table"
  if path.endswith(_CONLL_ENDINGS):  # whatever it holds: a wrong line is reported by its number
    return "conll"
  with text_files.open_bytes(path) as reader:
    head = reader.read(1 << 16).decode("utf-8-sig", "replace")
  if path.endswith((".json", ".json.gz")) or re.match(r'\s*\{\s*"(data|version)"', head):
    return "squad"
  lines = [line.split() for line in head.split("\n")[:200] if line.strip()]
  tagged = sum(len(line) > 1 and bool(_CONLL_LABEL.match(line[-1])) for line in lines)
  if tagged > 0.5 * len(lines):  # a line without a label is reported later
    return "conll"
  return "table" if path.endswith(".tsv") else "text"


# ---------------------------------------------------------------------------------------------
# Reading. A set that cannot be read is a finding; the others are still checked.


def _read_task(subject: RunUnderCheck) -> Iterator[TextSet | Finding]:
  """The splits of a GLUE task, or of the user's own tables."""
  from bert.tasks import glue, processors

  if not subject.data_dir:
    raise ValueError("Tables are checked together: give the --data_dir of train, dev and test.")
  folder = subject.data_dir
  if not filesystem.is_folder(folder):
    raise ValueError(f"--data_dir={folder} is not a folder: give the one with train, dev and test.")
  name = subject.task_name or "csv"
  subject.facts = {"task_name": name.lower()}  # known, even if its files cannot be read
  options = dict(subject.table_options)
  if name.lower() == "csv":
    options["data_dir"] = folder
  processor = glue.create_processor(name, **options)
  has_classes = processor.problem_type != "regression"
  labels = processor.get_labels() if has_classes else []
  subject.facts = processors.task_facts(name, processor, labels or processor.get_labels())
  found: list[TextSet | Finding] = []
  absent: list[Finding] = []
  # Without labels there is no training example, and the other splits cannot be read.
  for split in _SPLITS if labels or not has_classes else _SPLITS[:1]:
    try:
      examples = getattr(processor, f"get_{split}_examples")(folder)
    except (ValueError, OSError) as failure:
      file = getattr(failure, "file", None) or ""
      is_absent = getattr(failure, "line", 0) is None and not filesystem.is_file(file)
      finding = finding_from_error(failure)
      if is_absent:
        absent.append(finding)
      else:
        found.append(finding)
      continue
    texts = [_text_of(example, split != "test") for example in examples]
    found.append(TextSet(split, re.sub(r":\d+$", "", texts[0].where), texts, labels))
  yield from found
  for finding in absent:
    yield finding if not found else finding._replace(level="note")


def _text_of(example, has_label: bool) -> Text:
  label = example.label if has_label else ()
  labels = label if isinstance(label, tuple) else (label,)
  where = (getattr(example, "source", None) or str(example.guid)).replace(", line ", ":")
  return Text(example.text_a, example.text_b, tuple(map(str, labels)), where)


def _read_each(subject: RunUnderCheck, paths, read) -> Iterator[TextSet | Finding]:
  for path in paths:
    try:
      yield from read(subject, path)
    except (ValueError, OSError) as failure:
      yield finding_from_error(failure, path)


def _read_squad(subject: RunUnderCheck, path: str) -> Iterator[TextSet | Finding]:
  from bert.tasks import squad
  from bert.text import text_files

  subject.facts = {"task_name": "squad"}
  with text_files.open_bytes(path) as reader:
    content = reader.read()
  questions, answered = content.count(b'"question"'), content.count(b'"answer_start"') > 0
  has_negative = b'"is_impossible"' in content
  examples = squad.read_squad_examples(path, answered, has_negative)
  if lost := questions - len(examples):
    # Few are in the official file, too; many are a fault of the program that wrote it.
    yield (error if lost > _MANY_LOST * questions else warning)(
      f"The answers of {lost} of {questions} questions are not where the file says.",
      path,
      "Training skips such questions. Correct their answer_start.",
    )
  labels = ("answered", "impossible")
  texts = [
    Text(
      example.question_text,
      " ".join(example.doc_tokens),
      (labels[bool(example.is_impossible)],) if has_negative else (),
      f"{path}, question {example.qas_id}",
    )
    for example in examples
  ]
  yield TextSet(_split_of(path), path, texts, labels if has_negative else (), "squad")


def _read_conll(subject: RunUnderCheck, path: str) -> Iterator[TextSet]:
  from bert.tasks import conll_files, label_schemes

  split = _split_of(path)
  conll_format = conll_files.ConllFormat(**subject.conll_options)
  subject.facts |= {"task_name": "ner"}
  found = conll_files.read_conll(path, conll_format, needs_labels=split != "test")
  if split == "train":
    subject.facts["labels"] = subject.table_options.get("labels") or label_schemes.model_labels(
      found.types(), label_schemes.scheme_to_learn(conll_format.scheme)
    )
  texts = [
    Text(" ".join(e.words), None, tuple(e.labels or ()), f"{path}:{e.lines[0] + 1}")
    for e in found.examples
  ]
  yield TextSet(split, path, texts, kind="conll")


def _split_of(path: str) -> str:
  """The split in a file's name, else the name.

  Example:
    >>> _split_of("squad/train-v1.1.json"), _split_of("ner/wnut17_dev.conll"), _split_of("a.txt")
    ('train', 'dev', 'a.txt')
  """
  name = os.path.basename(path)
  words = re.split(r"[^a-z]+", name.lower())
  return next((split for split in _SPLITS if split in words), name)


# ---------------------------------------------------------------------------------------------
# Checks of one split.


def _check_set(subject: RunUnderCheck, text_set: TextSet) -> Iterator[Finding]:
  yield ok(f"{counted(len(text_set.texts), 'example')} for {text_set.split}.", text_set.path)
  yield from _labels(text_set)
  yield from _repeated(text_set)
  empty = [text for text in text_set.texts if not text.first.strip()]
  if empty:
    yield warning(
      f"{counted(len(empty), 'example')} of {text_set.split} without text.",
      empty[0].where,
      "Remove them.",
    )
  if subject.vocab:
    yield from _pieces(subject, text_set)


def _labels(text_set: TextSet) -> Iterator[Finding]:
  """How often each label occurs."""
  counts = collections.Counter(label for text in text_set.texts for label in text.labels)
  if text_set.kind == "conll":
    counts = collections.Counter(label.partition("-")[2] or label for label in counts.elements())
  elif not text_set.known_labels:
    return
  total = sum(counts.values())
  if not total:
    return
  shares = ", ".join(f"{label!r} {share(n, total)}" for label, n in counts.most_common(10))
  missing = [label for label in text_set.known_labels if label not in counts]
  most, number = counts.most_common(1)[0]
  remedy = "Look at precision and recall, not at accuracy; or balance the examples."
  if missing and text_set.split == "train" and text_set.kind == "table":
    what = f"No example for train has the label {', '.join(map(repr, missing))}."
    yield warning(what, text_set.path, "The model cannot learn it. Check file and --labels.")
  elif text_set.kind == "conll" and len(counts) == 1:
    yield warning(f"Every label is {most!r}.", text_set.path, "Check --label_column.")
  elif text_set.kind == "table" and number > _ONE_SIDED * total:
    what = f"{share(number, total)} of the examples for {text_set.split} are {most!r}."
    yield warning(what, text_set.path, remedy)
  yield ok(f"Labels of {text_set.split}: {shares}.", text_set.path)


def _repeated(text_set: TextSet) -> Iterator[Finding]:
  """Examples that occur twice, and those of them with different labels."""
  first: dict[tuple, Text] = {}
  repeated, disagreeing = [], []
  for text in text_set.texts:
    other = first.setdefault(_key(text), text)
    if other is not text:
      repeated.append((text, other))
      if text.labels != other.labels:
        disagreeing.append((text, other))
  for pairs, said in ((repeated, "repeat"), (disagreeing, "repeat, with other labels,")):
    if not pairs:
      continue
    text, other = pairs[0]
    what = (
      f"{len(pairs)} example(s) of {text_set.split} {said} an earlier one, such as {other.where}."
    )
    many = len(pairs) > _MANY_REPEATED * len(text_set.texts)
    yield (warning if many else note)(what, text.where, "Remove the duplicates.")


def _key(text: Text) -> tuple[str, str]:
  return " ".join(text.first.split()), " ".join((text.second or "").split())


def _shared(text_sets: Sequence[TextSet]) -> Iterator[Finding]:
  """Examples of dev or test that the model has seen in training."""
  train = {_key(t): t for s in text_sets if s.split == "train" for t in s.texts}
  for text_set in text_sets:
    if text_set.split == "train" or not train:
      continue
    seen = [text for text in text_set.texts if _key(text) in train]
    if seen:
      what = (
        f"{len(seen)} of {len(text_set.texts)} examples of {text_set.split} are in train, too: "
      )
      what += f"this one at {train[_key(seen[0])].where}."
      many = len(seen) > _MANY_SHARED * len(text_set.texts)
      remedy = "Remove them from train: scores would be too high."
      yield (warning if many else note)(what, seen[0].where, remedy)


def _pieces(subject: RunUnderCheck, text_set: TextSet) -> Iterator[Finding]:
  """Checks lengths in word pieces, and unknown words."""
  tokenizer = _tokenizer(subject)
  texts = text_set.texts[: subject.max_examples]
  firsts = tokenizer.texts_to_ids(text.first for text in texts)
  seconds = tokenizer.texts_to_ids(text.second or "" for text in texts)
  yield from _unknown(tokenizer, text_set, texts, firsts, seconds)
  lengths = [len(a) + len(b) + (3 if b else 2) for a, b in zip(firsts, seconds, strict=True)]
  if text_set.kind == "squad":
    cut = sum(len(question) > _MAX_QUERY_LENGTH for question in firsts)
    yield from _cut(text_set, cut, len(texts), f"{_MAX_QUERY_LENGTH} pieces (--max_query_length)")
    return
  subject.longest = max(subject.longest or 0, min(max(lengths), _most(subject)))
  length = subject.max_seq_length
  if not length:
    yield note(f"The longest example of {text_set.split} has {max(lengths)} pieces.", text_set.path)
  elif text_set.kind == "table":
    cut = sum(each > length for each in lengths)
    yield from _cut(
      text_set, cut, len(texts), f"--max_seq_length={length}, the longest {max(lengths)}"
    )
    padding = 1 - sum(min(each, length) for each in lengths) / (length * len(lengths))
    yield ok(
      f"{padding:.0%} would be padding at length {length}; batches are cut to their "
      "longest example.",
      text_set.path,
    )


def _most(subject: RunUnderCheck) -> int:
  return subject.config.longest_sequence if subject.config else 512


def _tokenizer(subject: RunUnderCheck):
  from bert.tokenization import VocabularyWarning, load_tokenizer

  with warnings.catch_warnings():
    warnings.simplefilter("ignore", VocabularyWarning)  # reported by model_checks.py
    return load_tokenizer(subject.vocab_file, subject.do_lower_case)


def _cut(text_set: TextSet, cut: int, total: int, limit: str) -> Iterator[Finding]:
  what = f"{share(cut, total)} of the texts of {text_set.split} are longer than {limit}."
  if cut > _MANY_CUT * total:
    remedy = "They are cut. Raise --max_seq_length, or use --long_text=windows."
    yield warning(what, text_set.path, remedy)
  else:
    yield ok(what, text_set.path)


def _unknown(tokenizer, text_set: TextSet, texts, firsts, seconds) -> Iterator[Finding]:
  unknown_token = vocabulary_kind.unknown_token(tokenizer.vocab)
  unknown_id = tokenizer.vocab.get(unknown_token, -1)
  counts = [a.count(unknown_id) + b.count(unknown_id) for a, b in zip(firsts, seconds, strict=True)]
  unknown, total = sum(counts), sum(map(len, firsts)) + sum(map(len, seconds))
  what = f"{share(unknown, total)} of the tokens of {text_set.split} are {unknown_token}."
  if unknown <= _MANY_UNKNOWN * total:
    yield ok(what, text_set.path)
    return
  first = next(text for text, count in zip(texts, counts, strict=True) if count)
  words = dict.fromkeys(f"{first.first} {first.second or ''}".split())
  examples = [word for word in words if unknown_id in tokenizer.text_to_ids(word)][:3]
  yield warning(
    f"{what} Words such as {', '.join(examples)} are unknown.",
    first.where,
    "Check --do_lower_case, or take the vocabulary of a model for this language.",
  )


# ---------------------------------------------------------------------------------------------
# Plain text.


def _check_corpus(subject: RunUnderCheck, paths: Sequence[str]) -> Iterator[Finding]:
  """Text for `create_pretraining_data.py`: documents, duplicates, unknown words."""
  from bert.text import corpus, corpus_statistics

  if not subject.vocab:
    yield note("Without --vocab_file text is not checked.", paths[0])
    return
  max_tokens = (subject.max_seq_length or 512) - 3
  statistics = corpus_statistics.TextStatistics(logs_progress=False, max_tokens=max_tokens)
  longest = sentences = 0
  for sentence in corpus.read_sentences(paths, _tokenizer(subject), statistics):
    if sentence is not None:
      sentences += 1
      longest = max(longest, len(sentence))
    if sentences == subject.max_examples:
      break
  for text in statistics.warnings():
    yield warning(text, paths[0])
  if not statistics.tokens:
    yield error("It contains no text.", paths[0])
  yield ok(
    f"{len(paths)} file(s) of text: {statistics.documents} documents, {statistics.sentences} "
    f"sentences, {statistics.tokens} tokens, {share(statistics.unknown_tokens, statistics.tokens)} "
    f"[UNK]; the longest sentence has {longest} tokens.",
    paths[0],
  )
