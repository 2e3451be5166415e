"""The content of a tokenizer.json: what tokenizers, transformers and transformers.js read.

  whole(vocab_file, do_lower_case=True)     # of a model's vocabulary, with its special tokens

That of a byte-level BPE is `io/byte_pair_files.py`'s. No library is needed.
"""

import base64
import os
import struct
from typing import Any, NamedTuple

from absl import logging

from bert.io import protobuf_fields, vocabulary_kind
from bert.text import sentence_pieces, vocabulary_file
from bert.text.vocabulary_file import VocabularyError

_PREFIX = "##"
_MAX_WORD_CHARS = 100  # a longer word is one unknown token
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4  # kinds of pieces
_UNIGRAM = 1  # kind of model
_LESS_LIKELY = 100  # for pieces that end in a comma after a digit: the number stays apart


class _Steps(NamedTuple):
  """The entries of a tokenizer.json that depend on the kind of vocabulary."""

  added: list[dict[str, Any]]
  normalizer: dict[str, Any]
  pre_tokenizer: dict[str, Any]
  decoder: dict[str, Any]
  model: dict[str, Any]
  ids: dict[str, int]  # token -> id


def whole(vocab_file: str | os.PathLike, do_lower_case: bool) -> dict[str, Any]:
  """Makes the content for a vocab.txt or a sentencepiece model, with the special tokens of a row.

  Raises:
    VocabularyError: the file cannot be used, or is of another algorithm than ALBERT's.
  """
  is_model = vocabulary_kind.is_sentencepiece_file(vocab_file)
  steps = (_of_sentence_pieces if is_model else _of_word_pieces)(vocab_file, do_lower_case)
  cls, sep = vocabulary_kind.ends_and_mask(steps.ids)[:2]
  first = [_special(cls, 0), {"Sequence": {"id": "A", "type_id": 0}}, _special(sep, 0)]
  return {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": steps.added,
    "normalizer": steps.normalizer,
    "pre_tokenizer": steps.pre_tokenizer,
    "post_processor": {
      "type": "TemplateProcessing",
      "single": first,
      "pair": [*first, {"Sequence": {"id": "B", "type_id": 1}}, _special(sep, 1)],
      "special_tokens": {
        token: {"id": token, "ids": [steps.ids[token]], "tokens": [token]} for token in (cls, sep)
      },
    },
    "decoder": steps.decoder,
    "model": steps.model,
  }


def _special(token: str, segment: int) -> dict[str, Any]:
  return {"SpecialToken": {"id": token, "type_id": segment}}


def _added(index: int, token: str, special: bool = True) -> dict[str, Any]:
  how = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
  return {"id": index, "content": token, **how, "special": special}


def _of_word_pieces(vocab_file: str | os.PathLike, do_lower_case: bool) -> _Steps:
  tokens = vocabulary_file.read_tokens(vocab_file)
  ids = {token: index for index, token in enumerate(tokens)}
  stated = vocabulary_file.supported_settings(vocab_file)
  return _Steps(
    added=[_added(index, tokens[index]) for index in sorted(vocabulary_kind.special_ids(ids))],
    normalizer={
      "type": "BertNormalizer",
      "clean_text": True,
      "handle_chinese_chars": stated.tokenize_chinese_chars,
      "strip_accents": stated.strip_accents,
      "lowercase": do_lower_case,
    },
    pre_tokenizer={"type": "BertPreTokenizer"},
    decoder={"type": "WordPiece", "prefix": _PREFIX, "cleanup": True},
    model={
      "type": "WordPiece",
      "unk_token": "[UNK]",
      "continuing_subword_prefix": _PREFIX,
      "max_input_chars_per_word": _MAX_WORD_CHARS,
      "vocab": ids,
    },
    ids=ids,
  )


def _of_sentence_pieces(model_file: str | os.PathLike, do_lower_case: bool) -> _Steps:
  model = _read_model(model_file)
  if model.algorithm != _UNIGRAM:
    raise VocabularyError(f"{model_file} is no unigram model, as ALBERT's is.")
  if model.byte_fallback:
    logging.warning("%s falls back to bytes, which the fast tokenizer does not.", model_file)
  spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
  return _Steps(
    added=[
      _added(index, text, kind == _CONTROL)
      for index, (text, _, kind) in enumerate(model.pieces)
      if kind in (_CONTROL, _USER_DEFINED)
    ],
    normalizer={"type": "Sequence", "normalizers": _normalizers(model.charsmap, do_lower_case)},
    pre_tokenizer=spaces,
    decoder=spaces,
    model={
      "type": "Unigram",
      "unk_id": model.unk_id,
      "vocab": [[text, _score(text, score)] for text, score, _ in model.pieces],
      "byte_fallback": False,
    },
    ids={text: index for index, (text, _, _) in enumerate(model.pieces)},
  )


class _PieceModel(NamedTuple):
  """What is needed of a `sentencepiece.ModelProto`."""

  pieces: list[tuple[str, float, int]]  # text, score and kind, in the order of ids
  algorithm: int
  unk_id: int
  byte_fallback: bool  # whether unknown characters become bytes
  charsmap: bytes  # the table of its normalization


def _read_model(model_file: str | os.PathLike) -> _PieceModel:
  data = sentence_pieces.read_model(model_file)
  pieces: list[tuple[str, float, int]] = []
  trainer: dict[int, Any] = {}
  charsmap = b""
  try:
    for number, value in protobuf_fields.fields(data):
      if number == 1:
        piece = dict(protobuf_fields.fields(value))
        [score] = struct.unpack("<f", piece.get(2, bytes(4)))
        pieces.append((piece[1].decode(), score, piece.get(3, _NORMAL)))
      elif number == 2:
        trainer = dict(protobuf_fields.fields(value))
      elif number == 3:
        charsmap = dict(protobuf_fields.fields(value)).get(2, b"")
  except (ValueError, KeyError, TypeError, struct.error) as error:
    raise VocabularyError(f"{model_file} is damaged: {error}. Fetch it again.") from None
  algorithm, unk_id = trainer.get(3, _UNIGRAM), trainer.get(40, 0)
  return _PieceModel(pieces, algorithm, unk_id, bool(trainer.get(35, 0)), charsmap)


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
