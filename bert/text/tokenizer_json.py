"""The content of a tokenizer.json: what tokenizers, transformers and transformers.js read.

  whole(vocab_file, do_lower_case=True)     # of a model's vocabulary, with its special tokens

That of a byte-level BPE is `io/byte_pair_files.py`'s. No library is needed.
"""

import base64
import os
from typing import Any

from bert.io import vocabulary_kind
from bert.text import piece_file, sentence_pieces, vocabulary_file
from bert.text.vocabulary_file import VocabularyError

_PREFIX = "##"
_MAX_WORD_CHARS = 100  # a longer word is one unknown token, as in transformers
_LESS_LIKELY = 100  # for pieces that end in a comma after a digit: the number stays apart


def whole(vocab_file: str | os.PathLike, do_lower_case: bool) -> dict[str, Any]:
  """Makes the content for a vocab.txt or a sentencepiece model, with the special tokens of a row.

  Raises:
    VocabularyError: the file cannot be used.
  """
  if vocabulary_kind.is_sentencepiece_file(vocab_file):
    parts = _of_sentence_pieces(vocab_file, do_lower_case)
    ids = {piece: index for index, (piece, _) in enumerate(parts["model"]["vocab"])}
  else:
    ids = {token: i for i, token in enumerate(vocabulary_file.read_tokens(vocab_file))}
    parts = _of_word_pieces(vocab_file, ids, do_lower_case)
  cls, sep = vocabulary_kind.ends_and_mask(ids)[:2]
  return {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    **parts,
    "post_processor": _template(cls, sep, ids),
  }


def _template(cls: str, sep: str, ids: dict[str, int]) -> dict[str, Any]:
  """Makes the `post_processor` of BERT's rows of one text and of two."""

  def special(token, type_id):
    return {"SpecialToken": {"id": token, "type_id": type_id}}

  def text(name, type_id):
    return {"Sequence": {"id": name, "type_id": type_id}}

  single = [special(cls, 0), text("A", 0), special(sep, 0)]
  return {
    "type": "TemplateProcessing",
    "single": single,
    "pair": [*single, text("B", 1), special(sep, 1)],
    "special_tokens": {
      token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (cls, sep)
    },
  }


def _added(index: int, content: str, is_special: bool) -> dict[str, Any]:
  """Describes a token that stays whole in a text."""
  flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
  return {"id": index, "content": content, **flags, "special": is_special}


def _of_word_pieces(
  vocab_file: str | os.PathLike, ids: dict[str, int], do_lower_case: bool
) -> dict[str, Any]:
  names = {index: token for token, index in ids.items()}
  stated = vocabulary_file.supported_settings(vocab_file)
  return {
    "added_tokens": [
      _added(index, names[index], True) for index in sorted(vocabulary_kind.special_ids(ids))
    ],
    "normalizer": {
      "type": "BertNormalizer",
      "clean_text": True,
      "handle_chinese_chars": stated.tokenize_chinese_chars,
      "strip_accents": stated.strip_accents,
      "lowercase": do_lower_case,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "decoder": {"type": "WordPiece", "prefix": _PREFIX, "cleanup": True},
    "model": {
      "type": "WordPiece",
      "unk_token": "[UNK]",
      "continuing_subword_prefix": _PREFIX,
      "max_input_chars_per_word": _MAX_WORD_CHARS,
      "vocab": ids,
    },
  }


def _of_sentence_pieces(model_file: str | os.PathLike, do_lower_case: bool) -> dict[str, Any]:
  try:
    model = piece_file.read(sentence_pieces.read_model(model_file))
  except ValueError as error:
    raise VocabularyError(f"{model_file} is damaged: {error}. Fetch it again.") from None
  if model.algorithm != piece_file.UNIGRAM:
    raise VocabularyError(f"{model_file} is no unigram model, as ALBERT's is.")
  spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
  return {
    "added_tokens": [
      _added(index, each.text, each.kind == piece_file.CONTROL)
      for index, each in enumerate(model.pieces)
      if each.kind in (piece_file.CONTROL, piece_file.USER_DEFINED)
    ],
    "normalizer": {"type": "Sequence", "normalizers": _normalizers(model.charsmap, do_lower_case)},
    "pre_tokenizer": spaces,
    "decoder": spaces,
    "model": {
      "type": "Unigram",
      "unk_id": model.unk_id,
      "vocab": [[each.text, _score(each.text, each.score)] for each in model.pieces],
      "byte_fallback": False,
    },
  }


def _score(piece: str, score: float) -> float:
  ends_in_number = len(piece) >= 2 and piece[-1] == "," and piece[-2].isdigit()
  return score - _LESS_LIKELY if ends_in_number else score


def _normalizers(charsmap: bytes, do_lower_case: bool) -> list[dict[str, Any]]:
  steps = [_replacing({"String": "``"}, '"'), _replacing({"String": "''"}, '"')]
  steps += [{"type": "NFKD"}, {"type": "StripAccents"}]
  if do_lower_case:
    steps.append({"type": "Lowercase"})
  if charsmap:
    encoded = base64.b64encode(charsmap).decode()
    steps.append({"type": "Precompiled", "precompiled_charsmap": encoded})
  return [*steps, _replacing({"Regex": " {2,}"}, " ")]


def _replacing(pattern: dict[str, str], content: str) -> dict[str, Any]:
  return {"type": "Replace", "pattern": pattern, "content": content}
