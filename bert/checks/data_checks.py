"""Checks whether a model can learn from texts and labels.

The checks of `doctor.py` that look at data: those of tasks, and plain text. The kind of a file is
recognised (`recognise`) or given by `--task_name`; the row of a task names what reads its files
(`task_data.py`). See `findings.py`.
"""

import collections
import itertools
import os
import re
import warnings
from collections.abc import Iterator, Sequence

from bert.checks import record_checks, task_data
from bert.checks.findings import (
  Finding,
  RunUnderCheck,
  error,
  finding_from_error,
  logged_warnings,
  note,
  ok,
  share,
  warning,
)
from bert.checks.task_data import Text, TextSet
from bert.io import filesystem, vocabulary_kind
from bert.io.wording import counted
from bert.tasks import kinds, shared_texts, user_tables
from bert.text import unknown_tokens

# Above these shares a finding is a warning and not a note.
_MANY_CUT = 0.25
_MANY_REPEATED = 0.05
_MANY_PIECES = 3.5  # for a word; English in its own vocabulary has 1.2
_LONGEST_WORDS = 15  # on average: longer ones are of a language without blanks
_TEXTS_SPLIT = 1000
_ONE_SIDED = 0.95

# Kind of task -> endings of its files, whatever they hold.
_ENDINGS = {
  "sentences": (".csv",),
  "squad": (".json", ".json.gz"),
  "ner": (".conll", ".bio", ".conllu", ".bmes"),
}
_TAG = re.compile(r"(O|[BIESLUMW](-\S+)?)$")

# Parts of warnings of a run for which there is a finding here.
_SAID_BY_DOCTOR = (
  *("texts are empty", "No training example has the label", "Could not find answer"),
)


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
  known = kinds.registered()
  named = known.get(subject.task_name or "", known["sentences"])
  sets: Iterator[TextSet | Finding]
  if subject.task_name and subject.data_dir and named.name != "squad":
    sets = _of_folder(subject, named)
  else:
    by_kind = collections.defaultdict(list)
    for path in _files_of(subject):
      by_kind[recognise(path)].append(path)
    if tables := by_kind["sentences"]:
      yield note("Tables are read as --task_name=csv; for a task of GLUE give its --task_name.")
      if not subject.data_dir and len(tables) > 1:
        raise ValueError("Tables are checked together: give the --data_dir of train, dev and test.")
      subject.data_dir = subject.data_dir or tables[0]
      sets = _of_folder(subject, known["sentences"])
    else:
      of_tasks = ((known[name], by_kind[name]) for name in ("squad", "ner"))
      sets = itertools.chain(*(task_data.sets_of_files(subject, *each) for each in of_tasks))
      yield from record_checks.check_record_files(subject, by_kind["records"])
      if by_kind["text"]:
        yield from _check_corpus(subject, by_kind["text"])
  text_sets = []
  for found in _with_warnings(sets, bool(subject.settings.get("skip_bad_rows"))):
    if isinstance(found, Finding):
      yield found
    else:
      text_sets.append(found)
      yield from _check_set(subject, found)
  yield from _shared(text_sets)


def _of_folder(subject: RunUnderCheck, kind: kinds.Kind) -> Iterator[TextSet | Finding]:
  """Reads the splits of `--data_dir`, or one table."""
  folder = subject.data_dir or ""
  is_own = kind.name != "sentences" or (subject.task_name or "csv").lower() == "csv"
  is_one = is_own and user_tables.is_table(folder)
  if not is_one and not filesystem.is_folder(folder):
    raise ValueError(f"--data_dir={folder} is not a folder: give the one with train, dev and test.")
  if is_one:
    yield note("A run divides this table into train, dev and test; here it is whole.", folder)
  yield from task_data.sets_of_folder(
    subject, kind, task_data.SPLITS[:1] if is_one else task_data.SPLITS
  )


def _with_warnings(
  sets: Iterator[TextSet | Finding], skips_bad_rows: bool
) -> Iterator[TextSet | Finding]:
  """Yields the sets, and before them what the run would warn of when it reads them."""
  failure = None
  found: list[TextSet | Finding] = []
  with logged_warnings() as said:
    try:
      found += sets
    except (ValueError, OSError) as error:
      failure = finding_from_error(error)
  for text in dict.fromkeys(said):
    is_known = any(words in text for words in _SAID_BY_DOCTOR)
    if not (is_known or (not skips_bad_rows and "malformed row(s)" in text)):
      yield warning(text)
  yield from found
  if failure:
    yield failure


def _files_of(subject: RunUnderCheck) -> list[str]:
  from bert.text import text_files

  if subject.input_file:
    return text_files.find_input_files(subject.input_file, takes_records=True)
  folder = subject.data_dir
  if filesystem.is_file(folder):
    return [folder]
  if not filesystem.is_folder(folder):
    raise NotADirectoryError(20, "--data_dir is not a folder", folder)
  names = (name for name in filesystem.list_folder(folder) if not name.startswith("."))
  files = list(filter(filesystem.is_file, (os.path.join(folder, name) for name in names)))
  if not files:
    raise ValueError(f"--data_dir={folder} holds no file.")
  return files


def recognise(path: str) -> str:
  """Returns the kind of a file: `records`, `text`, or that of a task."""
  from bert.text import text_files

  if record_checks.are_records(path):
    return "records"
  known = (name for name, endings in _ENDINGS.items() if path.endswith(endings))
  if name := next(known, None):
    return name
  with text_files.open_bytes(path) as file:
    head = file.read(1 << 16).decode("utf-8-sig", "replace")
  keys = ('"context"', '"question"', '"answers"')
  if re.match(r'\s*\{\s*"(data|version)"', head) or all(key in head for key in keys):
    return "squad"
  lines = [line.split() for line in head.split("\n")[:200] if line.strip()]
  # One without a label is reported later.
  if sum(len(line) > 1 and bool(_TAG.match(line[-1])) for line in lines) > 0.5 * len(lines):
    return "ner"
  return "sentences" if path.endswith((".tsv", ".jsonl")) else "text"


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
  if not text_set.is_whole:  # labels of words are counted by their types
    counts = collections.Counter(each.partition("-")[2] or each for each in counts.elements())
  total = sum(counts.values())
  if not total:
    return
  shares = ", ".join(f"{label!r} {share(n, total)}" for label, n in counts.most_common(10))
  shares += f", and {len(counts) - 10} others" if len(counts) > 10 else ""
  missing = [label for label in text_set.known_labels if label not in counts]
  most, number = counts.most_common(1)[0]
  remedy = "Look at precision and recall, not at accuracy; or balance the examples."
  if missing and text_set.split == "train" and text_set.is_whole:
    what = f"No example for train has the label {', '.join(map(repr, missing))}."
    yield warning(what, text_set.path, "The model cannot learn it. Check file and --labels.")
  elif not text_set.is_whole and len(counts) == 1:
    yield warning(f"Every label is {most!r}.", text_set.path, "Check --label_column.")
  elif text_set.is_whole and number > _ONE_SIDED * total:
    what = f"{share(number, total)} of the examples for {text_set.split} are {most!r}."
    yield warning(what, text_set.path, remedy)
  yield ok(f"Labels of {text_set.split}: {shares}.", text_set.path)


def _repeated(text_set: TextSet) -> Iterator[Finding]:
  """Examples that occur twice, and those of them with different labels."""
  first: dict[int, Text] = {}
  repeated, disagreeing = [], []
  for text in filter(_has_words, text_set.texts):
    other = first.setdefault(_key(text), text)
    if other is not text:
      repeated.append((text, other))
      if text.labels != other.labels:
        disagreeing.append((text, other))
  for pairs, said, remedy in (
    (repeated, "repeat", "Remove the duplicates."),
    (disagreeing, "repeat, with other labels,", "Keep the one with the right label."),
  ):
    if not pairs:
      continue
    text, other = pairs[0]
    what = (
      f"{len(pairs)} example(s) of {text_set.split} {said} an earlier one, such as {other.where}."
    )
    many = len(pairs) > _MANY_REPEATED * len(text_set.texts)
    yield (warning if many else note)(what, text.where, remedy)


def _has_words(text: Text) -> bool:
  """Empty texts, which have a finding of their own, are not duplicates of each other."""
  return bool(text.first.strip() or (text.second or "").strip())


def _key(text: Text) -> int:
  return shared_texts.key((text.first, text.second or ""))


def _shared(text_sets: Sequence[TextSet]) -> Iterator[Finding]:
  """Examples of dev or test that the model has seen in training."""
  train = {_key(t): t for s in text_sets if s.split == "train" for t in s.texts}
  for text_set in text_sets:
    if text_set.split == "train" or not train:
      continue
    seen = [text for text in text_set.texts if _has_words(text) and _key(text) in train]
    if seen:
      what = (
        f"{len(seen)} of {len(text_set.texts)} examples of {text_set.split} are in train, too: "
      )
      what += f"this one at {train[_key(seen[0])].where}."
      many = len(seen) > shared_texts.MANY_SHARED * len(text_set.texts)
      remedy = "Remove them from train: scores would be too high."
      found = (warning if many else note)(what, seen[0].where, remedy)
      yield found._replace(leaks=text_set.split)


def _pieces(subject: RunUnderCheck, text_set: TextSet) -> Iterator[Finding]:
  """Checks lengths in word pieces, and unknown words."""
  tokenizer = _tokenizer(subject)
  texts = text_set.texts[: subject.max_examples]
  firsts = tokenizer.texts_to_ids(text.first for text in texts)
  seconds = tokenizer.texts_to_ids(text.second or "" for text in texts)
  yield from _unknown(tokenizer, text_set, texts, firsts, seconds)
  lengths = [len(a) + len(b) + (3 if b else 2) for a, b in zip(firsts, seconds, strict=True)]
  if text_set.longest_first:
    limit, flag = text_set.longest_first
    cut = sum(len(first) > limit for first in firsts)
    yield from _cut(text_set, cut, len(texts), f"{limit} pieces ({flag})")
    return
  subject.longest = max(subject.longest or 0, min(max(lengths), _most(subject)))
  length = subject.max_seq_length
  if not length:
    yield note(f"The longest example of {text_set.split} has {max(lengths)} pieces.", text_set.path)
  elif text_set.is_whole:
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
  if unknown > unknown_tokens.MANY * total:
    first = next(text for text, count in zip(texts, counts, strict=True) if count)
    words = unknown_tokens.unknown_words(tokenizer, f"{first.first} {first.second or ''}")
    what = f"{what} Words such as {', '.join(words)} are unknown."
    yield warning(what, first.where, unknown_tokens.REMEDY)
    return
  pieces = sum(map(len, firsts[:_TEXTS_SPLIT])) + sum(map(len, seconds[:_TEXTS_SPLIT]))
  words = _words(texts[:_TEXTS_SPLIT])
  rate = pieces / max(1, len(words))
  what = f"{what} A word has {rate:.1f} pieces on average"
  if rate > _MANY_PIECES and sum(map(len, words)) <= _LONGEST_WORDS * len(words):
    yield warning(f"{what}: {unknown_tokens.UNSUITED}", text_set.path, unknown_tokens.REMEDY)
  else:
    yield ok(f"{what}.", text_set.path)


def _words(texts) -> list[str]:
  """Returns words, of which punctuation and each Chinese character is one."""
  from bert.tokenization import BasicTokenizer

  split = BasicTokenizer(do_lower_case=False).tokenize
  return [word for text in texts for word in split(f"{text.first} {text.second or ''}")]


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
  place = paths[0] if len(paths) == 1 else ""  # of several files none is meant
  for text in statistics.warnings():
    yield warning(text, place)
  if not statistics.tokens:
    yield error("There is no text.", place)
  yield ok(
    f"{len(paths)} file(s) of text: {statistics.documents} documents, {statistics.sentences} "
    f"sentences, {statistics.tokens} tokens, {share(statistics.unknown_tokens, statistics.tokens)} "
    f"[UNK]; the longest sentence has {longest} tokens.",
    place,
  )
