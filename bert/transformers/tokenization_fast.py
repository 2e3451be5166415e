"""The base of tokenizers that know where their tokens come from: offsets, words, overflow."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert.io import json_files
from bert.text.sequence_layout import Layout
from bert.transformers import tokenization_files, vocabulary_training
from bert.transformers.added_tokens import AddedToken
from bert.transformers.batch_encoding import BatchEncoding
from bert.transformers.encodings import Encoding, Pieces, Run, Template
from bert.transformers.fast_backends import Backend, LibraryBackend, WordPieceBackend
from bert.transformers.tokenization_base import PreTrainedTokenizerBase
from bert.transformers.tokenization_options import (
  Options,
  PaddingStrategy,
  TruncationStrategy,
  longer_by_multiple,
)

_KEPT_LENGTHS = Layout(second_stays_longer=True).kept_lengths


class PreTrainedTokenizerFast(PreTrainedTokenizerBase):
  """A fast tokenizer; itself, it reads any tokenizer.json.

  Attributes:
    add_prefix_space: whether a space goes before a text, of a byte-level BPE.
  """

  vocab_files_names = {"tokenizer_file": "tokenizer.json"}
  slow_tokenizer_class: type[PreTrainedTokenizerBase] | None = None

  def __init__(self, *args: Any, **kwargs: Any):
    """Reads `tokenizer_file` if it was given, else the vocabulary.

    Args:
      *args: of `_from_vocabulary`.
      **kwargs: settings; `tokenizer_file`, or a `tokenizer_object` of the library; `from_slow`
        prefers the vocabulary.

    Raises:
      ValueError: neither was given, or a file is bad.
    """
    if kwargs.pop("gguf_file", None) is not None:
      raise ValueError("gguf_file is not supported; pass tokenizer_file='tokenizer.json'.")
    path, from_slow = kwargs.pop("tokenizer_file", None), kwargs.pop("from_slow", False)
    given = kwargs.pop("tokenizer_object", None)
    path = path if given is None else given
    added = kwargs.pop("added_tokens_decoder", {})
    self.add_prefix_space = kwargs.get("add_prefix_space", False)
    self._backend: Backend
    if path is not None and not from_slow:
      self._backend = _read(path, kwargs)
    else:
      self._backend = self._from_vocabulary(*args, **kwargs)
    super().__init__(**kwargs)
    self._add_missing(added)
    if isinstance(self._backend, LibraryBackend):
      self._backend.set_prefix_space(self.add_prefix_space)
    if path is None or from_slow:
      self._template = self._own_template()

  @property
  def _template(self) -> Template:
    return self._backend.template

  @_template.setter
  def _template(self, value: Template) -> None:
    self._backend.template = value

  @staticmethod
  def _reads_vocabulary(tokenizer_file: Any, kwargs: Mapping[str, Any]) -> bool:
    has_content = tokenizer_file is not None or kwargs.get("tokenizer_object") is not None
    return not has_content or bool(kwargs.get("from_slow"))

  def _from_vocabulary(self, *args: Any, **kwargs: Any) -> Backend:
    """Makes the backend of the files of a vocabulary."""
    raise ValueError(f"{type(self).__name__} needs a tokenizer_file, such as 'tokenizer.json'.")

  def _own_template(self) -> Template:
    """Says where special tokens stand if no tokenizer.json does."""
    return Template.of_ends(
      (self.cls_token, self.cls_token_id), (self.sep_token, self.sep_token_id), is_roberta=False
    )

  def _add_missing(self, added: dict[int, AddedToken]) -> None:
    """Adds the tokens of `added`, then special ones that are not among added ones yet."""
    known = set(self._backend.added.values())
    tokens: list[Any] = [
      AddedToken.of(token)
      for _, token in sorted(added.items())
      if AddedToken.of(token) not in known
    ]
    names = {*self.added_tokens_encoder, *map(str, tokens)}
    for name, value in self.special_tokens_map_extended.items():
      is_list = isinstance(value, list | tuple)
      self._special_tokens_map[name] = (
        list(map(_as_special, value)) if is_list else _as_special(value)
      )
    # What was given as AddedToken goes before what a file says of the same token.
    special_ones = self.all_special_tokens_extended
    tokens += [each for each in special_ones if not isinstance(each, str) or each not in names]
    special = set(self.all_special_tokens)
    made = []
    for token in tokens:
      is_special = str(token) in special or (isinstance(token, AddedToken) and token.special)
      if isinstance(token, str):
        made.append(AddedToken(token, special=is_special))
      else:
        made.append(token.copy(special=is_special))
    self._backend.add(made)

  # -------------------------------------------------------------------------------------------
  # The vocabulary.

  @property
  def is_fast(self) -> bool:
    """True."""
    return True

  @property
  def can_save_slow_tokenizer(self) -> bool:
    """Whether `save_vocabulary` can write the files of the slow class."""
    if self.vocab_files_names.get("vocab_file", "").endswith(".model"):
      path = getattr(self, "vocab_file", None)
      return bool(path) and os.path.isfile(path)
    return True

  @property
  def backend_tokenizer(self) -> Backend:
    """What splits texts; its `content()` is that of a tokenizer.json."""
    return self._backend

  @property
  def vocab_size(self) -> int:
    """Number of tokens without added ones; `len(tokenizer)` counts these, too."""
    return self._backend.base_size

  @property
  def vocab(self) -> dict[str, int]:
    """Token -> id, of all tokens."""
    return self.get_vocab()

  def get_vocab(self) -> dict[str, int]:
    """Returns token -> id, of all tokens."""
    return {**self._backend.base_vocab, **self.added_tokens_encoder}

  def __len__(self):
    return len(self.get_vocab())

  def __bool__(self):
    return True

  @property
  def added_tokens_decoder(self) -> dict[int, AddedToken]:
    """Id -> added token, by id."""
    return self._backend.added

  def _add_tokens(self, new_tokens: Iterable[Any], special_tokens: bool = False) -> int:
    tokens = [AddedToken.of(token) for token in new_tokens]
    if special_tokens:
      tokens = [token.copy(special=True) for token in tokens]
    return self._backend.add(tokens)

  def num_special_tokens_to_add(self, pair: bool = False) -> int:
    """Counts the special tokens of a row of one text, or of a pair."""
    return self._template.num_special(pair)

  def convert_tokens_to_ids(self, tokens: Any) -> Any:
    """Returns the id of a token, or those of several; that of `unk_token` for unknown ones."""
    if isinstance(tokens, str):
      found = self._backend.token_to_id(tokens)
      if found is None and self.unk_token is not None:
        found = self._backend.token_to_id(self.unk_token)
      return found
    return [self.convert_tokens_to_ids(token) for token in tokens]

  def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
    """Returns the token of an id, or those of several; None for an id without one."""
    if isinstance(ids, int):
      return self._backend.id_to_token(ids)
    skipped = set(self.all_special_ids) if skip_special_tokens else ()
    id_to_token = self._backend.id_to_token
    return [id_to_token(index) for index in map(int, ids) if index not in skipped]

  def convert_tokens_to_string(self, tokens: list[str]) -> str:
    """Joins tokens to a text."""
    return self._backend.decode_tokens(tokens)

  # -------------------------------------------------------------------------------------------
  # Texts to ids.

  def tokenize(
    self, text: str, pair: str | None = None, add_special_tokens: bool = False, **kwargs: Any
  ) -> list[str]:
    """Splits a text, or two, into tokens.

    Args:
      text: the text.
      pair: another one.
      add_special_tokens: whether to add `[CLS]`, `[SEP]` and the like.
      **kwargs: see `__call__`.
    """
    return self.encode_plus(text, pair, add_special_tokens=add_special_tokens, **kwargs).tokens()

  def _encode_one(
    self, text: Any, text_pair: Any, options: Options, **kwargs: Any
  ) -> BatchEncoding:
    batch = self._encode_batch([(text, text_pair) if text_pair else text], options, **kwargs)
    if kwargs.get("return_tensors") is not None or kwargs.get("return_overflowing_tokens"):
      return batch
    row = {
      name: values[0] if values and isinstance(values[0], list) else values
      for name, values in batch.items()
    }
    return BatchEncoding(row, batch.encodings)

  def _encode_batch(  # type: ignore[override] # it names what it takes
    self,
    batch: Sequence[Any],
    options: Options,
    *,
    add_special_tokens: bool = True,
    stride: int = 0,
    is_split_into_words: bool = False,
    pad_to_multiple_of: int | None = None,
    padding_side: str | None = None,
    return_tensors: str | None = None,
    return_token_type_ids: bool | None = None,
    return_attention_mask: bool | None = None,
    return_overflowing_tokens: bool = False,
    return_special_tokens_mask: bool = False,
    return_offsets_mapping: bool = False,
    return_length: bool = False,
    verbose: bool = True,
    split_special_tokens: bool | None = None,
  ) -> BatchEncoding:
    splits = self.split_special_tokens if split_special_tokens is None else split_special_tokens
    if options.truncates:
      self._check_stride(options, stride)
    rows: list[Encoding] = []
    for each in batch:
      texts = [
        Encoding([Run.whole(self._backend.encode(text, splits), sequence)])
        for sequence, text in enumerate(_texts_of(each, is_split_into_words))
      ]
      if options.truncates:
        texts = self._truncated(texts, options, stride, add_special_tokens)
      rows.append(self._template.join(texts, add_special_tokens))
    if options.pads:
      rows = self._all_padded(rows, options, pad_to_multiple_of, padding_side)
    samples = [
      number
      for number, row in enumerate(rows)
      for _ in range(1 + (len(row.overflowing) if return_overflowing_tokens else 0))
    ]
    if return_overflowing_tokens:
      rows = [each for row in rows for each in (row, *row.overflowing)]
    values: dict[str, Any] = {"input_ids": [row.ids for row in rows]}
    if self._returns("token_type_ids", return_token_type_ids):
      values["token_type_ids"] = [row.type_ids for row in rows]
    if self._returns("attention_mask", return_attention_mask):
      values["attention_mask"] = [row.attention_mask for row in rows]
    if return_special_tokens_mask:
      values["special_tokens_mask"] = [row.special_tokens_mask for row in rows]
    if return_offsets_mapping:
      values["offset_mapping"] = [row.offsets for row in rows]
    if return_length:
      values["length"] = [len(row) for row in rows]
    if return_overflowing_tokens:
      values["overflow_to_sample_mapping"] = samples
    for ids in values["input_ids"]:
      self._warn_if_too_long(ids, options.max_length, verbose)
    return BatchEncoding(values, rows, tensor_type=return_tensors)

  def _check_stride(self, options: Options, stride: int) -> None:
    assert options.max_length is not None
    room = options.max_length - self.num_special_tokens_to_add(False)
    if 0 <= room < stride:
      raise ValueError(
        f"stride is {stride}, but max_length={options.max_length} leaves room for {room} tokens of "
        "a text; stride must be smaller."
      )

  def _truncated(
    self, texts: list[Encoding], options: Options, stride: int, add_special_tokens: bool
  ) -> list[Encoding]:
    """Cuts the texts of a row, so that it fits with its special tokens."""
    assert options.max_length is not None
    num_special = self.num_special_tokens_to_add(len(texts) > 1) if add_special_tokens else 0
    room = options.max_length - num_special
    lengths = [len(text) for text in texts]
    excess = sum(lengths) - room
    if room < 0 or excess <= 0:  # the library leaves alone what not even special tokens fit into
      return texts
    side = self.truncation_side
    if room == 0:
      return [text.truncated(0, stride, side) for text in texts]
    if options.truncation is TruncationStrategy.LONGEST_FIRST:
      kept = list(_KEPT_LENGTHS(lengths[0], lengths[1], room)) if len(texts) > 1 else [room]
    else:
      number = int(options.truncation is TruncationStrategy.ONLY_SECOND)
      if number >= len(texts):
        raise ValueError("truncation='only_second' needs a second text (text_pair).")
      if lengths[number] <= excess:
        raise ValueError(
          f"truncation={options.truncation.value!r}: {excess} tokens must go, but the text that is "
          f"cut has only {lengths[number]}. Choose another truncation or a larger max_length."
        )
      kept = [*lengths]
      kept[number] -= excess
    return [text.truncated(keep, stride, side) for text, keep in zip(texts, kept, strict=True)]

  def _all_padded(
    self,
    rows: list[Encoding],
    options: Options,
    multiple: int | None,
    side: str | None,
  ) -> list[Encoding]:
    is_longest = options.padding is PaddingStrategy.LONGEST
    length = max(map(len, rows), default=0) if is_longest else options.max_length
    assert length is not None
    length = longer_by_multiple(length, multiple)
    pad = Pieces.special([self.pad_token_id], [self.pad_token])
    type_id = self.pad_token_type_id
    return [row.padded(length, side or self.padding_side, pad, type_id) for row in rows]

  # -------------------------------------------------------------------------------------------
  # Ids to texts, and files.

  def _decode(self, ids: Any, skip_special_tokens: bool, clean: bool | None, **unused: Any) -> str:
    del unused
    ids = [ids] if isinstance(ids, int) else ids
    return self._cleaned(self._backend.decode(ids, skip_special_tokens), clean)

  def save_vocabulary(
    self, save_directory: str, filename_prefix: str | None = None
  ) -> tuple[str, ...]:
    """Writes the files of the vocabulary, and returns their paths."""
    prefix = f"{filename_prefix}-" if filename_prefix else ""
    return self._backend.save_vocabulary(save_directory, prefix)  # type: ignore[attr-defined]

  def _save_files(self, folder: str, prefix: str, legacy_format: bool | None) -> tuple[str, ...]:
    paths: tuple[str, ...] = ()
    has_slow = self.slow_tokenizer_class is not None
    if legacy_format and not has_slow:
      raise ValueError(f"{type(self).__name__} has no slow class, so no legacy_format.")
    if legacy_format is not False and has_slow and self.can_save_slow_tokenizer:
      added = tokenization_files.write_added_tokens(self, folder, prefix)
      paths += (*self.save_vocabulary(folder, prefix.removesuffix("-") or None), added)
    if not legacy_format:
      path = os.path.join(folder, f"{prefix}tokenizer.json")
      self._backend.save(path)
      paths += (path,)
    return paths

  def train_new_from_iterator(
    self,
    text_iterator: Iterable[Any],
    vocab_size: int,
    length: int | None = None,
    new_special_tokens: Sequence[Any] | None = None,
    special_tokens_map: Mapping[str, str] | None = None,
    **kwargs: Any,
  ) -> "PreTrainedTokenizerFast":
    """Makes a tokenizer like this one, with a new vocabulary. It needs the library `tokenizers`.

    Args:
      text_iterator: texts, or lists of texts.
      vocab_size: number of tokens, at most.
      length: number of texts, for the bar that shows the progress.
      new_special_tokens: more special tokens.
      special_tokens_map: old special token -> new one.
      **kwargs: of the library's trainer.

    Raises:
      MissingExtraError: the library is not installed.
    """
    return vocabulary_training.train_new(
      self, text_iterator, vocab_size, length, new_special_tokens, special_tokens_map, **kwargs
    )


def _as_special(token: str | AddedToken) -> str | AddedToken:
  return token if isinstance(token, str) else token.copy(special=True)


def _read(source: Any, kwargs: dict[str, Any]) -> Backend:
  """Reads a tokenizer.json; its padding and truncation become defaults in `kwargs`.

  Its content, and a `Tokenizer` of the library, are taken, too.
  """
  path = os.fsdecode(source) if isinstance(source, str | os.PathLike) else "the tokenizer_object"
  if hasattr(source, "to_str"):
    content = json.loads(source.to_str())
  else:
    content = source if isinstance(source, Mapping) else json_files.read_object(path)
  if "model" not in content:
    raise ValueError(f"{path} is no tokenizer.json: it has no 'model'.")
  truncation, padding = content.get("truncation"), content.get("padding")
  if truncation:
    kwargs.setdefault("truncation_side", truncation.get("direction", "Right").lower())
  if padding:
    kwargs.setdefault("padding_side", padding.get("direction", "Right").lower())
    kwargs.setdefault("pad_token", padding["pad_token"])
  template = Template.of(content.get("post_processor"))
  backend = WordPieceBackend.of(content) or LibraryBackend(content, path)
  backend.template = template
  return backend


def _texts_of(each: Any, is_split: bool) -> list[Any]:
  """Returns one text or two: strings, or lists of words; raises a TypeError for anything else."""
  if not is_split:
    texts = list(each) if isinstance(each, list | tuple) else [each]
    is_text_or_pair = isinstance(each, str) or len(texts) == 2
    if is_text_or_pair and all(isinstance(text, str) for text in texts):
      return texts
    raise TypeError(
      "Each text must be str, or a pair of two; lists of words need is_split_into_words=True. Got "
      f"{type(each).__name__}: {each!r:.80}"
    )
  is_pair = bool(each) and isinstance(each, list | tuple) and isinstance(each[0], list | tuple)
  texts = list(each) if is_pair else [each]
  for words in texts:
    is_words = isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
    if not is_words or len(texts) > 2:
      raise TypeError(
        "With is_split_into_words=True, each text must be a list of words, or a pair of two. Got "
        f"{type(each).__name__}: {each!r:.80}"
      )
  return texts
