"""huggingface/transformers.js: tokens and ids of BERT's and DistilBERT's tokenizers.

The uncased vocabulary is there in full (WEIGHTS has it), so ids count. Other models' vocabularies
are not, but the pieces of all of a model's cases are: the longest piece that the full vocabulary
has is among them, so a correct tokenizer finds the same ones. That checks everything before the
pieces: case, accents, control characters, Chinese characters and punctuation.
"""

from collections.abc import Iterator
from typing import Any

from bert import tokenization
from conformance.cases import SKIPPED, Case, Context, SuiteError, compare, read_text, read_with
from conformance.javascript_data import javascript_constants
from conformance.tokenizers_beside import (
  full_tokenizer,
  original_module,
  step_by_step,
  with_special_pieces,
)

FOLDERS = ("transformers.js", "bert")
_TESTS = "packages/transformers/tests/models"
_FILES = ("bert/test_tokenization_bert.js", "distilbert/test_tokenization_distilbert.js")

_LOWER, _CASED = True, False
# Models with BERT's tokenizer -> do_lower_case; _FULL: those with the uncased vocabulary.
_MODELS = {
  "Xenova/bert-base-uncased": _LOWER,
  "Xenova/bert-base-cased": _CASED,
  "google-bert/bert-base-cased": _CASED,
  "Xenova/bert-base-multilingual-cased-ner-hrl": _CASED,
  "Xenova/bert-base-multilingual-uncased-sentiment": _LOWER,
  "Xenova/bge-small-zh-v1.5": _CASED,  # as converted there
  "Xenova/bge-base-zh-v1.5": _LOWER,
  "Xenova/indobert-base-p1": _LOWER,
  "Xenova/spanbert-large-cased": _LOWER,  # as converted there
  "Xenova/UMLSBert_ENG": _LOWER,
  "Xenova/SapBERT-from-PubMedBERT-fulltext": _LOWER,
  "Xenova/rubert-base-cased": _CASED,
  "Xenova/scibert_scivocab_uncased": _LOWER,
  "Xenova/LaBSE": _CASED,
  "Xenova/ernie-gram-zh": _LOWER,
  "Xenova/distilbert-base-cased-distilled-squad": _CASED,
  "Xenova/distilbert-base-uncased-finetuned-sst-2-english": _LOWER,
  "Xenova/distiluse-base-multilingual-cased-v2": _CASED,
  "distilbert/distilbert-base-multilingual-cased": _CASED,
}
_FULL = {"Xenova/bert-base-uncased", "Xenova/distilbert-base-uncased-finetuned-sst-2-english"}
_OTHER_TOKENIZERS = {
  "Xenova/paraphrase-multilingual-MiniLM-L12-v2": "SentencePiece, not WordPiece",
  "Xenova/multilingual-e5-small": "SentencePiece, not WordPiece",
  "Xenova/kobert": "SentencePiece, not WordPiece",
  "Xenova/herbert-large-cased": "byte-pair encoding, not WordPiece",
  "onnx-community/language_detection-ONNX": "another normalizer than BERT's",
}


def cases(context: Context) -> Iterator[Case]:
  """All cases of `TEST_CONFIG` in both files."""
  folder = context.folder("transformers.js") / _TESTS
  for name in _FILES:
    yield from read_with(folder / name, lambda path: _file_cases(context, folder, path))


def _file_cases(context: Context, folder, path) -> Iterator[Case]:
  strings = folder / "test_strings.js"
  texts = javascript_constants(read_text(strings), path=strings)
  constants = javascript_constants(read_text(path), texts, path)
  if "TEST_CONFIG" not in constants:
    raise SuiteError(f"{path}: TEST_CONFIG was expected.")
  for model, tests in constants["TEST_CONFIG"].items():
    yield from _model_cases(context, f"{path.parent.name}: {model}", model, tests, path)


def _model_cases(context: Context, title: str, model: str, tests: dict, path) -> Iterator[Case]:
  if model not in _MODELS:
    reason = _OTHER_TOKENIZERS.get(model, "a model that this project does not know")
    yield from (Case(f"{title}: {name}", SKIPPED, reason) for name in tests)
    return
  for name, test in tests.items():
    if not {"text", "tokens", "ids"} <= set(test):
      raise SuiteError(f"{path}: {model}, {name}: text, tokens and ids were expected.")
  if model in _FULL and context.vocab is None:
    reason = "needs the uncased vocabulary: WEIGHTS=FOLDER"
    yield from (Case(f"{title}: {name}", SKIPPED, reason) for name in tests)
    return
  lower = _MODELS[model]
  if model in _FULL:
    full = tokenization.FullTokenizer(str(context.vocab), lower)
    pieces = list(full.vocab)
  else:
    pieces = with_special_pieces(dict.fromkeys(p for t in tests.values() for p in t["tokens"]))
    full = full_tokenizer(context, pieces, lower)
  original = original_module(context)
  judge = original and step_by_step(original, pieces, lower)
  for name, test in tests.items():
    yield _compared(f"{title}: {name}", test, full, judge, with_ids=model in _FULL)


def _compared(name: str, test: dict[str, Any], full, judge, with_ids: bool) -> Case:
  text, pair = test["text"], test.get("text_pair")
  texts = [text] if pair is None else [text, pair]
  tokens = [token for each in texts for token in full.tokenize(each)]
  expected = judge and [token for each in texts for token in judge(each)]
  case = compare(name, test["tokens"], tokens, expected, what=text)
  if not with_ids or case.outcome != "passed":
    return case
  ids = full.encode_batch([text], None if pair is None else [pair])["input_ids"][0].tolist()
  return compare(name, test["ids"], ids, what=text)
