"""huggingface/tokenizers: its tests of BERT's normalizer, pre-tokenizer and word pieces.

Tests of its classes (pickling, attributes, padding, truncation of an Encoding) have no counterpart.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

from bert import tokenization
from conformance.cases import SKIPPED, Case, Context, SuiteError, compare, read_text, read_with
from conformance.python_data import PythonFile
from conformance.tokenizers_beside import original_module, step_by_step

FOLDERS = ("tokenizers", "bert")
_PYTHON = "bindings/python/tests"
_NEEDS_VOCAB = "needs the uncased vocabulary: WEIGHTS=FOLDER"
_NO_PART = "a method of its Encoding class; no counterpart here"
_SKIPPED = {
  "TestBertWordPieceTokenizer.test_train_from_iterator": "trains a vocabulary of its own; no ids",
  "TestEncoding.test_truncation": _NO_PART,
}


def cases(context: Context) -> Iterator[Case]:
  """Cases of three Python files and of the Rust pre-tokenizer."""
  folder = context.folder("tokenizers")
  files = [
    (f"{_PYTHON}/implementations/test_bert_wordpiece.py", _encodings),
    (f"{_PYTHON}/bindings/test_encoding.py", _encodings),
    (f"{_PYTHON}/bindings/test_normalizers.py", _normalizers),
    ("tokenizers/src/pre_tokenizers/bert.rs", _pre_tokenizers),
  ]
  for path, read in files:
    yield from read_with(folder / path, lambda path, read=read: read(context, path))


# ---------------------------------------------------------------------------------------------
# `assert output.ids == [...]` after `output = tokenizer.encode("a", "b")`.


class _Encoding:
  """Ours with the attributes of theirs: ids, tokens, offsets and segments of one text or two."""

  def __init__(self, tokenizer, text: str, pair: str | None, add_special_tokens: bool = True):
    self.tokens, self.offsets, self.type_ids, self.sequence_ids = [], [], [], []
    self.n_sequences = 1 if pair is None else 2
    if add_special_tokens:
      self._add("[CLS]", (0, 0), 0, None)
    for number, part in enumerate([text] if pair is None else [text, pair]):
      for span in tokenizer.tokenize_with_offsets(part):
        self._add(span.token, (span.start, span.end), number, number)
      if add_special_tokens:
        self._add("[SEP]", (0, 0), number, None)
    self.ids = tokenizer.convert_tokens_to_ids(self.tokens)
    if add_special_tokens:
      batch = tokenizer.encode_batch([text], None if pair is None else [pair])
      assert batch["input_ids"][0].tolist() == self.ids
      assert batch["segment_ids"][0].tolist() == self.type_ids

  def _add(self, token: str, offsets: tuple[int, int], segment: int, sequence: int | None) -> None:
    self.tokens.append(token)
    self.offsets.append(list(offsets))
    self.type_ids.append(segment)
    self.sequence_ids.append(sequence)

  def token_to_sequence(self, index: int) -> int | None:
    return self.sequence_ids[index] if index < len(self.tokens) else None

  def token_to_chars(self, index: int) -> list[int] | None:
    return self.offsets[index] if self.token_to_sequence(index) is not None else None


def _encodings(context: Context, path) -> Iterator[Case]:
  file = PythonFile(path)
  tokenizer = context.vocab and tokenization.FullTokenizer(str(context.vocab))
  shared = _encoded_in(file, file.tree, tokenizer)  # a fixture gives them to all tests
  for test in file.tests():
    own = {**_fixture_names(test.node, shared), **_encoded_in(file, test.node, tokenizer)}
    count = 0
    for number, (encoded, node) in enumerate(_asserts(test.node)):
      name = f"{path.name}: {test.name}[{number}]"
      count += 1
      reason = _SKIPPED.get(test.name, "" if tokenizer else _NEEDS_VOCAB)
      if reason:
        yield Case(name, SKIPPED, reason)
        continue
      encodings = own.get(encoded) or []
      encoding = _before(encodings, node.lineno)
      yield _asserted(file, name, encoding, node)
    if not count:
      yield Case(f"{path.name}: {test.name}", SKIPPED, "tests a class of its own; no tokens")


def _encoded_in(file, tree, tokenizer) -> dict[str, list[tuple[int, _Encoding]]]:
  """Name -> (line, encoding) for each `name = tokenizer.encode(...)`."""
  found: dict[str, list[tuple[int, _Encoding]]] = {}
  for node in ast.walk(tree):
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
      continue
    call = node.value
    if ast.unparse(call.func) != "tokenizer.encode" or not isinstance(node.targets[0], ast.Name):
      continue
    arguments = [file.value(each) for each in call.args]
    options = {each.arg: file.value(each.value) for each in call.keywords}
    if tokenizer is not None:
      pair = arguments[1] if len(arguments) > 1 else None
      encoding = _Encoding(tokenizer, arguments[0], pair, options.get("add_special_tokens", True))
      found.setdefault(node.targets[0].id, []).append((node.lineno, encoding))
  return found


def _fixture_names(node, shared) -> dict[str, Any]:
  """`single, pair = encodings`: the names of a fixture's results, in their order."""
  for inner in ast.walk(node):
    is_unpacked = isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Tuple)
    if is_unpacked and ast.unparse(inner.value) == "encodings":
      names = [each.id for each in inner.targets[0].elts]
      return dict(zip(names, shared.values(), strict=False))
  return {}


def _asserts(node) -> Iterator[tuple[str, ast.Compare]]:
  """The asserted equations whose left side is about an encoding, with its name."""
  for inner in ast.walk(node):
    if isinstance(inner, ast.Assert) and isinstance(inner.test, ast.Compare):
      left = inner.test.left
      left = left.func if isinstance(left, ast.Call) else left
      of_name = isinstance(left, ast.Attribute) and isinstance(left.value, ast.Name)
      if of_name and left.value.id in ("output", "single", "pair"):
        yield left.value.id, inner.test


def _before(encodings: list, line: int):
  """The last one that was made before a line; a fixture's may stand anywhere."""
  earlier = [encoding for made, encoding in encodings if made < line]
  return earlier[-1] if earlier else None


def _asserted(file, name: str, encoding: _Encoding | None, node: ast.Compare) -> Case:
  left = node.left
  attribute = (left.func if isinstance(left, ast.Call) else left).attr
  if encoding is None:
    raise file.error(node, "no `tokenizer.encode` was found before it")
  if not hasattr(encoding, attribute):
    return Case(name, SKIPPED, _NO_PART)
  found = getattr(encoding, attribute)
  if isinstance(left, ast.Call):
    found = found(*(file.value(each) for each in left.args))
  return compare(name, file.value(node.comparators[0]), found, what=ast.unparse(left))


# ---------------------------------------------------------------------------------------------
# The normalizer's options are steps of our BasicTokenizer.

_STEPS = {
  "strip_accents": "_run_strip_accents",
  "handle_chinese_chars": "_tokenize_chinese_chars",
  "clean_text": "_clean_text",
}


def _normalizers(context: Context, path) -> Iterator[Case]:
  file = PythonFile(path)
  tests = [test for test in file.tests() if test.name.startswith("TestBertNormalizer.")]
  for test in tests:
    name = f"{path.name}: {test.name}"
    values = {
      ast.unparse(node.targets[0]): node.value
      for node in ast.walk(test.node)
      if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    }
    if "output" not in values:
      yield Case(name, SKIPPED, "tests a class of its own; no tokens")
      continue
    options = {each.arg: file.value(each.value) for each in values["normalizer"].keywords}
    steps = [option for option, is_on in options.items() if is_on]
    if len(steps) != 1 or steps[0] not in _STEPS:
      yield Case(name, SKIPPED, "lower case with accents kept: no such option")
      continue
    text = file.value(values["output"].args[0])
    [expected] = [
      node.test.comparators[0] for node in ast.walk(test.node) if isinstance(node, ast.Assert)
    ]
    original = original_module(context)
    ours, judge = (
      module and getattr(module.BasicTokenizer(), _STEPS[steps[0]])(text)
      for module in (tokenization, original)
    )
    yield compare(name, file.value(expected), ours, judge, what=text)


# ---------------------------------------------------------------------------------------------
# Rust: a text, then a list of (word, (first byte, byte after the last)).

_FUNCTION = re.compile(r"fn (\w+)\(\) \{(.*?)\n    \}", re.DOTALL)
_INPUT = re.compile(r'(?:= |from\()"((?:[^"\\]|\\.)*)"')
_WORD = re.compile(r'\("((?:[^"\\]|\\.)*)", \((\d+), (\d+)\)\)')


def _pre_tokenizers(context: Context, path) -> Iterator[Case]:
  tests = read_text(path).partition("#[cfg(test)]")[2]
  for name, body in _FUNCTION.findall(tests):
    text, words = _INPUT.search(body), _WORD.findall(body)
    if not text or not words:
      raise SuiteError(f"{path}: {name}: a text and its words were expected.")
    text = text[1]
    expected = [word for word, _, _ in words]
    original = original_module(context)
    ours, judge = (
      module and step_by_step(module, expected, do_lower_case=False)(text)
      for module in (tokenization, original)
    )
    yield compare(f"{path.name}: {name}", expected, ours, judge, what=text)
    # Each word's bytes: where ours says that the word lies.
    places = [[word, int(first), int(end)] for word, first, end in words]
    yield compare(f"{path.name}: {name}, bytes", places, _places(text), what=text)


def _places(text: str) -> list[list]:
  from bert.text.offsets import words_with_spans

  found = []
  for word, spans in words_with_spans(tokenization.BasicTokenizer(do_lower_case=False), text):
    first, end = spans[0][0], spans[-1][1]
    found.append([word, len(text[:first].encode()), len(text[:end].encode())])
  return found
