"""The content of a tokenizer.json: what tokenizers, transformers and transformers.js read.

  of_word_pieces({"[UNK]": 0, "it": 1}, Normalization())["model"]["type"]       # "WordPiece"
  of_sentence_pieces("spiece.model", do_lower_case=True, keep_accents=False)
  whole(vocab_file, do_lower_case=True)     # of a model's vocabulary, with its special tokens

That of a byte-level BPE is `io/byte_pair_files.py`'s. No library is needed.
"""

import base64
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bert.io import vocabulary_kind
from bert.text import piece_file, sentence_pieces, vocabulary_file
from bert.text.added_tokens import AddedToken
from bert.text.library_words import MAX_WORD_CHARS, Normalization
from bert.text.vocabulary_file import VocabularyError

PREFIX = "##"

LOGGER = logging.getLogger("transformers.tokenization")  # so that users' settings for it hold
_LESS_LIKELY = 100  # for pieces that end in a comma after a digit: the number stays apart


# ---------------------------------------------------------------------------------------------
# How texts become a row.


class Special(NamedTuple):
  """Special tokens at one place of a row."""

  tokens: tuple[str, ...]
  ids: tuple[int, ...]
  type_id: int


class Text(NamedTuple):
  """The place of a text in a row."""

  sequence: int  # 0 or 1
  type_id: int


def places_of_ends(
  cls_token: Sequence, sep_token: Sequence
) -> tuple[tuple[Special | Text, ...], tuple[Special | Text, ...]]:
  """Makes BERT's rows of one text and of two; each token comes with its id."""
  first, end = (Special((token,), (index,), 0) for token, index in (cls_token, sep_token))
  single = (first, Text(0, 0), end)
  return single, (*single, Text(1, 1), end._replace(type_id=1))


def template(single: Sequence[Special | Text], pair: Sequence[Special | Text]) -> dict[str, Any]:
  """Makes the `post_processor` of rows of one text and of two."""
  special: dict[str, Any] = {}
  places: dict[str, list] = {}
  for name, row in (("single", single), ("pair", pair)):
    for place in row:
      if isinstance(place, Text):
        key, index = "Sequence", "AB"[place.sequence]
      else:
        key, index = "SpecialToken", place.tokens[0]
        special[index] = {"id": index, "ids": list(place.ids), "tokens": list(place.tokens)}
      places.setdefault(name, []).append({key: {"id": index, "type_id": place.type_id}})
  return {"type": "TemplateProcessing", **places, "special_tokens": special}


def whole(vocab_file: str | os.PathLike, do_lower_case: bool) -> dict[str, Any]:
  """Makes the content for a vocab.txt or a sentencepiece model, with the special tokens of a row.

  Raises:
    VocabularyError: the file cannot be used.
  """
  if vocabulary_kind.is_sentencepiece_file(vocab_file):
    content = of_sentence_pieces(vocab_file, do_lower_case, keep_accents=False)
    ids = {piece: index for index, (piece, _) in enumerate(content["model"]["vocab"])}
  else:
    ids = {token: i for i, token in enumerate(vocabulary_file.read_tokens(vocab_file))}
    names = {index: token for token, index in ids.items()}
    added = [
      {"id": index, **AddedToken(names[index], normalized=False, special=True).settings()}
      for index in sorted(vocabulary_kind.special_ids(ids))
    ]
    stated = vocabulary_file.supported_settings(vocab_file)
    how = Normalization(stated.tokenize_chinese_chars, stated.strip_accents, do_lower_case)
    content = of_word_pieces(ids, how, added)
  ends = [(token, ids[token]) for token in vocabulary_kind.ends_and_mask(ids)[:2]]
  return {**content, "post_processor": template(*places_of_ends(*ends))}


def of_word_pieces(
  vocab: Mapping[str, int],
  normalization: Normalization,
  added: Iterable[Mapping[str, Any]] = (),
  unk_token: str = "[UNK]",
  max_chars: int = MAX_WORD_CHARS,
  cleanup: bool = True,
) -> dict[str, Any]:
  """Makes the content for word pieces; the arguments are those of `LibraryWordPieces`."""
  return {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": list(added),
    "normalizer": {"type": "BertNormalizer", "clean_text": True, **normalization._asdict()},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": None,
    "decoder": {"type": "WordPiece", "prefix": PREFIX, "cleanup": cleanup},
    "model": {
      "type": "WordPiece",
      "unk_token": unk_token,
      "continuing_subword_prefix": PREFIX,
      "max_input_chars_per_word": max_chars,
      "vocab": dict(vocab),
    },
  }


def of_sentence_pieces(
  model_file: str | os.PathLike | None, do_lower_case: bool, keep_accents: bool
) -> dict[str, Any]:
  """Makes the content of a tokenizer.json of a sentencepiece model.

  Raises:
    VocabularyError: the file cannot be used, or is of another algorithm than ALBERT's.
  """
  if model_file is None:
    raise VocabularyError("No spiece.model was given (vocab_file).")
  try:
    model = piece_file.read(sentence_pieces.read_model(model_file))
  except ValueError as error:
    raise VocabularyError(f"{model_file} is damaged: {error}. Fetch it again.") from None
  if model.algorithm != piece_file.UNIGRAM:
    raise VocabularyError(f"{model_file} is no unigram model, as ALBERT's is.")
  if model.byte_fallback:
    LOGGER.warning("%s falls back to bytes, which the fast tokenizer does not.", model_file)
  pieces = [[each.text, _score(each.text, each.score)] for each in model.pieces]
  added = [
    {"id": index, **_whole(each.text, each.kind == piece_file.CONTROL).settings()}
    for index, each in enumerate(model.pieces)
    if each.kind in (piece_file.CONTROL, piece_file.USER_DEFINED)
  ]
  spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
  return {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": added,
    "normalizer": {
      "type": "Sequence",
      "normalizers": _normalizers(model.charsmap, do_lower_case, keep_accents),
    },
    "pre_tokenizer": spaces,
    "post_processor": None,
    "decoder": spaces,
    "model": {
      "type": "Unigram",
      "unk_id": model.unk_id,
      "vocab": pieces,
      "byte_fallback": False,
    },
  }


def _whole(piece: str, special: bool) -> AddedToken:
  return AddedToken(piece, normalized=False, special=special)


def _score(piece: str, score: float) -> float:
  ends_in_number = len(piece) >= 2 and piece[-1] == "," and piece[-2].isdigit()
  return score - _LESS_LIKELY if ends_in_number else score


def _normalizers(charsmap: bytes, do_lower_case: bool, keep_accents: bool) -> list[dict[str, Any]]:
  steps = [_replacing({"String": "``"}, '"'), _replacing({"String": "''"}, '"')]
  if not keep_accents:
    steps += [{"type": "NFKD"}, {"type": "StripAccents"}]
  if do_lower_case:
    steps.append({"type": "Lowercase"})
  if charsmap:
    encoded = base64.b64encode(charsmap).decode()
    steps.append({"type": "Precompiled", "precompiled_charsmap": encoded})
  return [*steps, _replacing({"Regex": " {2,}"}, " ")]


def _replacing(pattern: dict[str, str], content: str) -> dict[str, Any]:
  return {"type": "Replace", "pattern": pattern, "content": content}
