"""RoBERTa's tokenizers, slow and fast: a byte-level BPE, for which `tokenizers` must be installed.

tokenizer = RobertaTokenizerFast.from_pretrained("roberta-base")
tokenizer(" It rains.").tokens()             # ["<s>", "ĠIt", "Ġrains", ".", "</s>"]
"""

import json
import os
from typing import Any

from bert.io import atomic_files, byte_pair_files, json_files
from bert.text.vocabulary_file import VocabularyError
from bert.transformers import tokenization_files
from bert.transformers.added_tokens import AddedToken
from bert.transformers.encodings import Spaces, Template
from bert.transformers.fast_backends import Backend, LibraryBackend
from bert.transformers.tokenization_fast import PreTrainedTokenizerFast
from bert.transformers.tokenization_rows import RowsMixin
from bert.transformers.tokenization_slow import PreTrainedTokenizer

VOCAB_FILES_NAMES = {"vocab_file": "vocab.json", "merges_file": "merges.txt"}


def _read_files(
  vocab_file: str | os.PathLike | None, merges_file: str | os.PathLike | None
) -> tuple[dict[str, int], list[tuple[str, str]]]:
  """Reads token -> id, and the pairs to merge.

  Raises:
    VocabularyError: a file is missing or cannot be used.
  """
  for path, name in ((vocab_file, "vocab.json"), (merges_file, "merges.txt")):
    if path is None or not os.path.isfile(path):
      raise VocabularyError(
        f"No {name} is at {path!r}. Give both files of the model, or read its folder with "
        "from_pretrained."
      )
  assert vocab_file is not None
  assert merges_file is not None
  if os.fsdecode(vocab_file) == os.fsdecode(merges_file):
    model = tokenization_files.vocabulary_in(vocab_file, "BPE")
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"])
    return model["vocab"], [(first, second) for first, second in pairs]
  try:
    vocab = json_files.read_object(os.fsdecode(vocab_file))
    merges = byte_pair_files.read_merges(os.fsdecode(merges_file))
  except ValueError as error:
    raise VocabularyError(str(error)) from None
  return vocab, merges


def _byte_level(add_prefix_space: bool) -> dict[str, Any]:
  return {
    "type": "ByteLevel",
    "add_prefix_space": add_prefix_space,
    "trim_offsets": True,
    "use_regex": True,
  }


def _content(
  vocab: dict[str, int], merges: list[tuple[str, str]], add_prefix_space: bool
) -> dict[str, Any]:
  """Makes the content of a tokenizer.json without special tokens."""
  return {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": _byte_level(add_prefix_space),
    "post_processor": None,
    "decoder": _byte_level(True),
    "model": {
      "type": "BPE",
      "dropout": None,
      "unk_token": None,
      "continuing_subword_prefix": "",
      "end_of_word_suffix": "",
      "fuse_unk": False,
      "byte_fallback": False,
      "ignore_merges": False,
      "vocab": vocab,
      "merges": [list(pair) for pair in merges],
    },
  }


def _mask_token(token: Any) -> Any:
  """The mask takes the white space on its left."""
  return AddedToken(token, lstrip=True, normalized=False) if isinstance(token, str) else token


class _WithoutSegments(RowsMixin):
  """Rows of a family without segments."""

  def create_token_type_ids_from_sequences(
    self, token_ids_0: list[int], token_ids_1: list[int] | None = None
  ) -> list[int]:
    """Returns zeros: RoBERTa has no segments."""
    return [0] * len(self.build_inputs_with_special_tokens(token_ids_0, token_ids_1))


class RobertaTokenizer(_WithoutSegments, PreTrainedTokenizer):
  """Text to the tokens of a byte-level BPE: the slow tokenizer.

  Attributes:
    encoder: token -> id.
    decoder: id -> token.
    byte_encoder: byte -> the character that stands for it.
    byte_decoder: such a character -> its byte.
    bpe_ranks: pair of tokens -> its place among the merges.
    add_prefix_space: whether a space goes before a text.
    errors: what `bytes.decode` does with bytes that are no characters.
  """

  vocab_files_names = VOCAB_FILES_NAMES
  reads_tokenizer_json = True
  model_input_names = ["input_ids", "attention_mask"]

  def __init__(
    self,
    vocab_file: str | os.PathLike,
    merges_file: str | os.PathLike,
    errors: str = "replace",
    bos_token: Any = "<s>",
    eos_token: Any = "</s>",
    sep_token: Any = "</s>",
    cls_token: Any = "<s>",
    unk_token: Any = "<unk>",
    pad_token: Any = "<pad>",
    mask_token: Any = "<mask>",
    add_prefix_space: bool = False,
    **kwargs: Any,
  ):
    """Reads the vocabulary.

    Args:
      vocab_file: `vocab.json`.
      merges_file: `merges.txt`.
      errors: see the class.
      bos_token: the token before a text.
      eos_token: the token after a text.
      sep_token: the token between texts.
      cls_token: the token for a whole row.
      unk_token: the token of what the vocabulary does not have.
      pad_token: the token of padding.
      mask_token: the token of a masked word.
      add_prefix_space: see the class.
      **kwargs: `model_max_length`, `padding_side`, ...; see `PreTrainedTokenizerBase`.

    Raises:
      VocabularyError: a file is missing or cannot be used.
      MissingExtraError: the library is not installed.
    """
    self.encoder, merges = _read_files(vocab_file, merges_file)
    self.decoder = {index: token for token, index in self.encoder.items()}
    self.byte_decoder = _bytes_of_characters()
    self.byte_encoder = {byte: char for char, byte in self.byte_decoder.items()}
    self.bpe_ranks = {pair: rank for rank, pair in enumerate(merges)}
    self.errors = errors
    self.add_prefix_space = add_prefix_space
    # Tokens without an id keep their spelling, so the library gets a vocabulary that has all.
    known = [*byte_pair_files.byte_characters(), *("".join(pair) for pair in merges)]
    every = {token: index for index, token in enumerate(dict.fromkeys(known))}
    self._library = LibraryBackend(_content(every, merges, False), f"{vocab_file}")
    added = [_as_added(each) for each in (bos_token, eos_token, sep_token, cls_token)]
    super().__init__(
      errors=errors,
      bos_token=added[0],
      eos_token=added[1],
      sep_token=added[2],
      cls_token=added[3],
      unk_token=_as_added(unk_token),
      pad_token=_as_added(pad_token),
      mask_token=_mask_token(mask_token),
      add_prefix_space=add_prefix_space,
      **kwargs,
    )

  @property
  def vocab_size(self) -> int:
    """Number of tokens without added ones."""
    return len(self.encoder)

  def get_vocab(self) -> dict[str, int]:
    """Returns token -> id, of all tokens."""
    return {**self.encoder, **self.added_tokens_encoder}

  def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
    del kwargs
    return self._library.encode(text).details[0]

  def bpe(self, token: str) -> str:
    """Merges the characters of a word that is spelled as in the vocabulary; with spaces between."""
    return " ".join(piece.value for piece in self._library.library.model.tokenize(token))

  def _convert_token_to_id(self, token: str) -> int:
    found = self.encoder.get(token)
    return self.encoder.get(self.unk_token) if found is None else found

  def _convert_id_to_token(self, index: int) -> str:
    return self.decoder.get(index)

  def convert_tokens_to_string(self, tokens: list[str]) -> str:
    """Joins tokens to a text; a KeyError if one has a character that stands for no byte."""
    return bytes(self.byte_decoder[char] for char in "".join(tokens)).decode(
      "utf-8", errors=self.errors
    )

  def build_inputs_with_special_tokens(
    self, token_ids_0: list[int], token_ids_1: list[int] | None = None
  ) -> list[int]:
    """Joins ids as `<s> a </s>` or `<s> a </s></s> b </s>`."""
    row = [self.cls_token_id, *token_ids_0, self.sep_token_id]
    return row if token_ids_1 is None else [*row, row[-1], *token_ids_1, row[-1]]

  def prepare_for_tokenization(
    self, text: str, is_split_into_words: bool = False, **kwargs: Any
  ) -> tuple[str, dict[str, Any]]:
    """Puts a space before a word that stands alone, and before texts if that is wanted."""
    wanted = kwargs.pop("add_prefix_space", self.add_prefix_space) or is_split_into_words
    if wanted and text and not text[0].isspace():
      text = f" {text}"
    return text, kwargs

  def save_vocabulary(
    self, save_directory: str, filename_prefix: str | None = None
  ) -> tuple[str, ...]:
    """Writes vocab.json and merges.txt into a folder, and returns their paths."""
    prefix = f"{filename_prefix}-" if filename_prefix else ""
    paths = tuple(os.path.join(save_directory, f"{prefix}{n}") for n in VOCAB_FILES_NAMES.values())
    vocab = json.dumps(self.encoder, indent=2, sort_keys=True, ensure_ascii=False)
    atomic_files.write_text(paths[0], vocab + "\n")
    merges = sorted(self.bpe_ranks, key=self.bpe_ranks.__getitem__)
    lines = ["#version: 0.2", *(f"{first} {second}" for first, second in merges)]
    atomic_files.write_text(paths[1], "\n".join(lines) + "\n")
    return paths


def _as_added(token: Any) -> Any:
  return AddedToken(token, normalized=True) if isinstance(token, str) else token


def _bytes_of_characters() -> dict[str, int]:
  return {char: byte for byte, char in enumerate(byte_pair_files.byte_characters())}


class RobertaTokenizerFast(_WithoutSegments, PreTrainedTokenizerFast):
  """Text to the tokens of a byte-level BPE, with offsets and words.

  See `RobertaTokenizer` for the arguments; `tokenizer_file` goes before the other files.
  """

  vocab_files_names = {**VOCAB_FILES_NAMES, "tokenizer_file": "tokenizer.json"}
  model_input_names = ["input_ids", "attention_mask"]
  slow_tokenizer_class = RobertaTokenizer

  def __init__(
    self,
    vocab_file: str | os.PathLike | None = None,
    merges_file: str | os.PathLike | None = None,
    tokenizer_file: str | os.PathLike | None = None,
    errors: str = "replace",
    bos_token: Any = "<s>",
    eos_token: Any = "</s>",
    sep_token: Any = "</s>",
    cls_token: Any = "<s>",
    unk_token: Any = "<unk>",
    pad_token: Any = "<pad>",
    mask_token: Any = "<mask>",
    add_prefix_space: bool = False,
    trim_offsets: bool = True,
    **kwargs: Any,
  ):
    """Reads the vocabulary; `trim_offsets` leaves spaces out of offsets.

    Raises:
      VocabularyError: no file was given, or one cannot be used.
      MissingExtraError: the library is not installed.
    """
    tokens = {
      **{"bos_token": bos_token, "eos_token": eos_token, "sep_token": sep_token},
      **{"cls_token": cls_token, "unk_token": unk_token, "pad_token": pad_token},
    }
    if self._reads_vocabulary(tokenizer_file, kwargs):
      tokens = {name: _as_added(token) for name, token in tokens.items()}
    super().__init__(
      vocab_file,
      merges_file,
      tokenizer_file=tokenizer_file,
      errors=errors,
      **tokens,
      mask_token=_mask_token(mask_token),
      add_prefix_space=add_prefix_space,
      trim_offsets=trim_offsets,
      **kwargs,
    )
    if self._template.spaces:
      spaces = Spaces(trim_offsets, add_prefix_space)
      self._template = self._template._replace(spaces=spaces)

  def _from_vocabulary(self, *args: Any, **kwargs: Any) -> Backend:
    vocab, merges = _read_files(*args)
    content = _content(vocab, merges, kwargs["add_prefix_space"])
    return LibraryBackend(content, f"{args[0]}")

  def _own_template(self) -> Template:
    cls, sep = (
      (token, self.convert_tokens_to_ids(token)) for token in (self.cls_token, self.sep_token)
    )
    return Template.of_ends(cls, sep, is_roberta=True, spaces=Spaces())

  def _encode_batch(self, *args: Any, **kwargs: Any):
    if kwargs.get("is_split_into_words") and not self.add_prefix_space:
      raise ValueError(
        f"Words need a space before each: make the tokenizer with add_prefix_space=True, as "
        f"{type(self).__name__}.from_pretrained(..., add_prefix_space=True)."
      )
    return super()._encode_batch(*args, **kwargs)

  def build_inputs_with_special_tokens(
    self, token_ids_0: list[int], token_ids_1: list[int] | None = None
  ) -> list[int]:
    """Joins ids as `<s> a </s>` or `<s> a </s></s> b </s>`."""
    row = [self.bos_token_id, *token_ids_0, self.eos_token_id]
    return row if token_ids_1 is None else [*row, row[-1], *token_ids_1, row[-1]]
