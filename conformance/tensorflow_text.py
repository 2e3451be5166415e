"""tensorflow/text: its tests of BERT's basic tokenizer, word pieces and normalizer.

TensorFlow Text has options that the original has not (other Unicode normal forms, pieces for
unknown characters, returning unknown words); those cases are skipped by name.
"""

import unicodedata
from collections.abc import Iterator
from typing import Any

from bert import tokenization
from conformance.cases import SKIPPED, Case, Context, compare, read_with
from conformance.python_data import PythonFile, Test
from conformance.tokenizers_beside import (
  full_tokenizer,
  original_module,
  pieces_of,
  step_by_step,
  with_special_pieces,
)

FOLDERS = ("text", "bert")
_TESTS = "tensorflow_text/python/ops"
_FILES = (
  "bert_tokenizer_test.py",
  "fast_bert_tokenizer_test.py",
  "fast_bert_normalizer_test.py",
  "wordpiece_tokenizer_test.py",
  "fast_wordpiece_tokenizer_test.py",
)
_NO_DATA = "tests TensorFlow's own types, shapes or formats; no tokens of its own"
_UNKNOWN = "this project has no rule for the test: newer than the commit that was tried?"
_NO_VALUES = "compares two parts of TensorFlow Text; no values"
_HASHED = "unknown words as hashed ids: no such option"
_COMPUTED = "computes its data while it runs"
_SAME_DATA = "the data of the case before, in another way"
_NOT_OURS = "ids to texts: transformers' tokenizers do that"
_SKIPPED = {
  "BertTokenizerTest.test_bert_tokenizer_outputs": _NO_DATA,
  "BertTokenizerTest.test_int32_row_splits": _NO_DATA,
  "FastBertTokenizerTest.test_fast_bert_tokenizer_outputs": _NO_DATA,
  "FastBertNormalizeTest.test_normal": _NO_VALUES,
  "FastBertNormalizeTest.test_one_string_ragged": _NO_VALUES,
  "FastBertNormalizeTest.test_lowercase_nfd_strip_accent_empty_string": _NO_VALUES,
  "FastBertTokenizerKerasModelTest.testKerasAndTflite": _NO_DATA,
  "FastBertNormalizerKerasModelTest.DISABELD_testKerasAndTflite": _NO_DATA,
  "FastWordpieceInKerasModelTest.testTfLiteWordpieceTokenizer": _NO_DATA,
  "WordpieceOpTest.testVocabSize": _NO_DATA,
  "FastWordpieceDetokenizeOpTest.testTokenizerBuiltFromConfig": _NOT_OURS,
  "WordpieceOpTest.testWordPieceOpWithIdReturned": _HASHED,
  "WordpieceOpTest.testWordPieceOpWithInt32IdReturned": _HASHED,
  "WordpieceOpTest.testDetokenizeIsReversable": _COMPUTED,
  "WordpieceOpTest.testDetokenizeFailsForSparseVocab": _COMPUTED,
  "FastWordpieceOpOriginalTest.testWordPieceOpWithIdReturned": _SAME_DATA,
  "FastWordpieceOpOriginalTest.testWordPieceOpWithInt32IdReturned": _SAME_DATA,
  **{
    f"FastWordpieceOpAdditionalTest.testTokenizerBuilt{how}": _SAME_DATA
    for how in (
      *("FromModel", "FromModelInTensor", "InsideTfFunctionFromConfig"),
      *("InsideTfFunctionFromModel", "OutsideTfFunctionFromConfig"),
      "OutsideTfFunctionFromModel",
    )
  },
}


def cases(context: Context) -> Iterator[Case]:
  """All parameters of all tests in five files."""
  folder = context.folder("text") / _TESTS
  for name in _FILES:
    yield from read_with(folder / name, lambda path: _file_cases(context, path))


def _file_cases(context: Context, path) -> Iterator[Case]:
  file = PythonFile(path)
  for test in file.tests():
    rule = _RULES.get(test.name)
    for number, arguments in enumerate(test.parameters or [{}]):
      name = f"{path.name}: {test.name}[{number}]"
      if rule is None:
        yield Case(name, SKIPPED, _SKIPPED.get(test.name, _UNKNOWN))
      else:
        yield from rule(context, file, test, name, {**test.defaults, **arguments})


# ---------------------------------------------------------------------------------------------
# One rule for each kind of test: the arguments of a run to cases.


def _basic(context, file, test: Test, name: str, run: dict[str, Any]) -> Iterator[Case]:
  form = None if run["lower_case"] else run.get("normalization_form")
  tokens = tokenization.BasicTokenizer(do_lower_case=run["lower_case"]).tokenize
  original = original_module(context)
  judge = original and original.BasicTokenizer(do_lower_case=run["lower_case"]).tokenize
  for number, (text, expected) in enumerate(
    zip(_texts(run["text_inputs"]), run["expected_tokens"], strict=True)
  ):
    each = f"{name}, text {number}"
    if form and not unicodedata.is_normalized(form, text):
      yield Case(each, SKIPPED, "another Unicode normal form: no such option")
      continue
    yield compare(each, _decoded(expected), tokens(text), judge and judge(text), what=text)


def _bert(context, file, test: Test, name: str, run: dict[str, Any]) -> Iterator[Case]:
  """Tokens of whole texts, and the characters that each came from."""
  vocab = with_special_pieces(_decoded(run.get("vocab") or file.names["_VOCAB"]))
  unused = [piece for piece in vocab if piece.startswith("[unused")]
  kept = unused if run["preserve_unused_token"] else []
  ours = full_tokenizer(context, vocab, run["lower_case"], kept)
  # The original splits `[unused1]`, always.
  original = None if kept else original_module(context)
  judge = original and step_by_step(original, vocab, run["lower_case"])
  sources = run.get("expected_extracted") or [None] * len(run["text_inputs"])
  rows = zip(_texts(run["text_inputs"]), run["expected"], sources, strict=True)
  for number, (text, expected, source) in enumerate(rows):
    each, expected = f"{name}, text {number}", _decoded(_joined(expected))
    yield compare(each, expected, ours.tokenize(text), judge and judge(text), what=text)
    spans = ours.tokenize_with_offsets(text)
    found = [text[span.start : span.end] for span in spans]
    stripped = [piece.removeprefix("##") for piece in expected]
    source = _decoded(_joined(source)) if source else stripped
    yield compare(f"{each}, sources", source, found, what=text)


def _fast_bert(context, file, test: Test, name: str, run: dict[str, Any]) -> Iterator[Case]:
  """Tokens, ids and bytes of whole texts."""
  vocab = _decoded(run.get("vocab") or file.names["_VOCAB"])
  lower = run["lower_case_nfd_strip_accents"]
  ours = full_tokenizer(context, with_special_pieces(vocab), lower)
  original = original_module(context)
  judge = original and step_by_step(original, vocab, lower)
  fields = ("expected_tokens", "expected_token_ids", "expected_starts", "expected_ends")
  depth = 2 if isinstance(run["text_inputs"][0], list) else 1
  columns = [_flattened(run[field], depth) for field in fields]
  rows = zip(_texts(run["text_inputs"]), *columns, strict=True)
  for number, (text, tokens, ids, starts, ends) in enumerate(rows):
    each, found = f"{name}, text {number}", ours.tokenize(text)
    yield compare(each, _decoded(tokens), found, judge and judge(text), what=text)
    yield compare(f"{each}, ids", ids, ours.text_to_ids(text), what=text)
    spans = [
      (len(text[: s.start].encode()), len(text[: s.end].encode()))
      for s in ours.tokenize_with_offsets(text)
    ]
    yield compare(f"{each}, bytes", list(zip(starts, ends, strict=True)), spans, what=text)


def _normalized(context, file, test: Test, name: str, run: dict[str, Any]) -> Iterator[Case]:
  """Words of the normalized text: neither we nor the original return that text itself."""
  lower = run["lower_case_nfd_strip_accents"]
  tokens = tokenization.BasicTokenizer(do_lower_case=lower).tokenize
  original = original_module(context)
  judge = original and original.BasicTokenizer(do_lower_case=lower).tokenize
  expected = _texts(run["expected_normalized_txt"])
  for number, (text, normal) in enumerate(zip(_texts(run["txt_input"]), expected, strict=True)):
    each = f"{name}, text {number}"
    yield compare(each, normal.split(), tokens(text), judge and judge(text), what=text)


def _pieces(context, file, test: Test, name: str, run: dict[str, Any]) -> Iterator[Case]:
  """Pieces of words that are given."""
  if run.get("unknown_token", "[UNK]") is None or run.get("split_unknown_characters"):
    yield Case(name, SKIPPED, "unknown words that stay, or pieces of them: no such option")
    return
  if run.get("max_chars_per_token") is not None and not test.name.startswith("Fast"):
    yield Case(name, SKIPPED, "a limit to the length of pieces: no such option")
    return
  vocab = _decoded(run["vocab"])
  vocab += [] if "[UNK]" in vocab else ["[UNK]"]
  settings = (vocab, "[UNK]", run.get("max_bytes_per_word", 200))
  with_ids = str(run.get("token_out_type", "")).startswith("dtypes.int")
  yield from _words(context, name, run["tokens"], run["expected_subwords"], settings, with_ids)


def _ids(context, file, test: Test, name: str, run: dict[str, Any]) -> Iterator[Case]:
  """Ids of words, with the unknown piece and the limit that the file names."""
  limit, unknown = file.names["_TEST_MAX_BYTES_PER_WORD"], file.names["_TEST_UNKNOWN_TOKEN"]
  settings = (file.names["_TEST_VOCAB"], unknown, limit)
  yield from _words(context, name, run["text_inputs"], run["expected_outputs"], settings, True)


def _ids_of_texts(context, file, test: Test, name: str, run: dict[str, Any]) -> Iterator[Case]:
  """Ids of texts: split into words first."""
  limit, unknown = file.names["_TEST_MAX_BYTES_PER_WORD"], file.names["_TEST_UNKNOWN_TOKEN"]
  vocab, original = file.names["_TEST_VOCAB"], original_module(context)
  tokens = step_by_step(tokenization, vocab, False, unknown, limit)
  judge = original and step_by_step(original, vocab, False, unknown, limit)
  for number, (text, ids) in enumerate(_pairs(run["text_inputs"], run["expected_outputs"])):
    each, expected = f"{name}, text {number}", [vocab[index] for index in ids]
    yield compare(each, expected, tokens(text), judge and judge(text), what=text)


def _words(context, name: str, words, expected, settings: tuple, with_ids: bool) -> Iterator[Case]:
  vocab, original = settings[0], original_module(context)
  ours = pieces_of(tokenization, *settings)
  judge = original and pieces_of(original, *settings)
  for number, (word, pieces) in enumerate(_pairs(words, expected)):
    pieces = [vocab[index] for index in pieces] if with_ids else _decoded(pieces)
    each = f"{name}, word {number}"
    yield compare(each, pieces, ours(word), judge and judge(word), what=word)


_RULES = {
  "BertTokenizerTest.test_basic_tokenize": _basic,
  "BertTokenizerTest.test_bert_tokenizer": _bert,
  "FastBertTokenizerTest.test_fast_bert_tokenizer": _fast_bert,
  "FastBertNormalizeWithOffsetsMapTest.test_tensor_input": _normalized,
  "WordpieceOpTest.testWordPieceOpAndVerifyOffsets": _pieces,
  "WordpieceOpTest.testWordPieceOpWithMultipleRaggedRank": _pieces,
  "WordpieceOpTest.testTensors": _pieces,
  "FastWordpieceOpOriginalTest.testWordPieceOpAndVerifyOffsets": _pieces,
  "FastWordpieceOpOriginalTest.testWordPieceOpWithMultipleRaggedRank": _pieces,
  "FastWordpieceOpOriginalTest.testTensors": _pieces,
  "FastWordpieceOpAdditionalTest.testTokenizerBuiltFromConfig": _ids,
  "EndToEndFastWordpieceOpTest.testTokenizerBuiltFromConfig": _ids_of_texts,
}

# ---------------------------------------------------------------------------------------------
# Nested lists of texts.


def _decoded(pieces: list) -> list[str]:
  return [piece.decode() if isinstance(piece, bytes) else piece for piece in pieces]


def _joined(lists: list) -> list:
  return [item for inner in lists for item in inner]


def _flattened(nested: list, depth: int) -> list:
  return nested if depth == 1 else [row for inner in nested for row in inner]


def _texts(nested) -> list[str]:
  """All texts of nested lists, in order.

  Example:
    >>> _texts([["a", b"b"], [], "c"])
    ['a', 'b', 'c']
  """
  if isinstance(nested, (str, bytes)):
    return _decoded([nested])
  return [text for inner in nested for text in _texts(inner)]


def _pairs(texts, values) -> list[tuple[str, list]]:
  """Each text with its list of values, of lists that are nested alike.

  Example:
    >>> _pairs([["a"], ["b"]], [[[1]], [[2, 3]]])
    [('a', [1]), ('b', [2, 3])]
  """
  if isinstance(texts, (str, bytes)):
    return [(_decoded([texts])[0], values)]
  return [pair for one, two in zip(texts, values, strict=True) for pair in _pairs(one, two)]
