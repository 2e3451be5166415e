"""The base of tokenizers that do not know where their tokens come from.

A subclass has `_tokenize`, `_convert_token_to_id`, `_convert_id_to_token`, `vocab_size` and
`get_vocab`; it can have `prepare_for_tokenization` and `convert_tokens_to_string`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert.transformers import tokenization_files
from bert.transformers.added_tokens import AddedToken, Finder
from bert.transformers.batch_encoding import BatchEncoding
from bert.transformers.tokenization_base import PreTrainedTokenizerBase
from bert.transformers.tokenization_options import LOGGER, Options


class PreTrainedTokenizer(PreTrainedTokenizerBase):
  """A slow tokenizer. See `PreTrainedTokenizerBase`."""

  def __init__(self, **kwargs: Any):
    """Adds the tokens of `added_tokens_decoder`, and special ones that were not added yet."""
    self._added_tokens_decoder: dict[int, AddedToken] = {
      index: AddedToken.of(token) for index, token in kwargs.pop("added_tokens_decoder", {}).items()
    }
    self._added_tokens_encoder = {
      token.content: index for index, token in self._added_tokens_decoder.items()
    }
    super().__init__(**kwargs)
    known = self._added_tokens_encoder
    # What was given as AddedToken goes before what a file says of the same token.
    special = self.all_special_tokens_extended
    tokens = [token for token in special if not isinstance(token, str) or token not in known]
    self._add_tokens(tokens, special_tokens=True)

  # -------------------------------------------------------------------------------------------
  # The vocabulary.

  @property
  def is_fast(self) -> bool:
    """False."""
    return False

  def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
    raise NotImplementedError

  def _convert_token_to_id(self, token: str) -> int:
    raise NotImplementedError

  def _convert_id_to_token(self, index: int) -> str:
    raise NotImplementedError

  def convert_tokens_to_string(self, tokens: list[str]) -> str:
    """Joins tokens to a text."""
    return " ".join(tokens)

  def __len__(self):
    return self.total_vocab_size

  @property
  def added_tokens_decoder(self) -> dict[int, AddedToken]:
    """Id -> added token, by id; may be set."""
    return dict(sorted(self._added_tokens_decoder.items()))

  @added_tokens_decoder.setter
  def added_tokens_decoder(self, value: Mapping[int, str | AddedToken]) -> None:
    for index, token in value.items():
      if not isinstance(index, int):
        raise TypeError(f"An id must be a whole number, not {index!r:.80}.")
      token = AddedToken.of(token)
      self._added_tokens_decoder[index] = token
      self._added_tokens_encoder[token.content] = index
    self._notice_added_tokens()

  def get_added_vocab(self) -> dict[str, int]:
    """Returns added token -> id."""
    return self._added_tokens_encoder

  def _add_tokens(self, new_tokens: Iterable[Any], special_tokens: bool = False) -> int:
    vocab = dict(self.get_vocab())
    size, count = len(vocab), 0
    for token in new_tokens:
      if isinstance(token, str):
        if not token or token in self._added_tokens_encoder:
          continue
        is_special = special_tokens or token in self.all_special_tokens
        token = AddedToken(token, normalized=not is_special, special=is_special)
      else:
        given, token = token, AddedToken.of(token)
        changes = {"special": True, "normalized": token.normalized} if special_tokens else {}
        token = token.copy(**changes)
        if not token.content:
          continue
        if special_tokens:
          self._replace_special(given, token)
      if not token.special and token.normalized and getattr(self, "do_lower_case", False):
        token = token.copy(content=token.content.lower())
      if token.content not in vocab:
        vocab[token.content] = size + count
        count += 1
      index = vocab[token.content]
      if token.special and token.content not in self.all_special_tokens:
        self._special_tokens_map["additional_special_tokens"].append(token)
      self._added_tokens_decoder[index] = token
      self._added_tokens_encoder[token.content] = index
    self._notice_added_tokens()
    return count

  def _replace_special(self, given: Any, token: AddedToken) -> None:
    """Has the attributes hold the token that was made special."""
    for name, value in self._special_tokens_map.items():
      if value is given:
        self._special_tokens_map[name] = token
      elif isinstance(value, list):
        self._special_tokens_map[name] = [token if each is given else each for each in value]

  def _notice_added_tokens(self) -> None:
    found_anywhere = {
      token.content: (index, AddedToken(token.content))
      for index, token in self._added_tokens_decoder.items()
    }
    self._finder = Finder(found_anywhere)
    self._update_total_vocab_size()

  def _update_total_vocab_size(self) -> None:
    self.total_vocab_size = len(self.get_vocab())

  def num_special_tokens_to_add(self, pair: bool = False) -> int:
    """Counts the special tokens of a row of one text, or of a pair."""
    return len(self.build_inputs_with_special_tokens([], [] if pair else None))

  def convert_tokens_to_ids(self, tokens: Any) -> Any:
    """Returns the id of a token, or those of several; that of `unk_token` for unknown ones."""
    if tokens is None:
      return None
    if isinstance(tokens, str):
      return self._id_of(tokens)
    return [self._id_of(token) for token in tokens]

  def _id_of(self, token: str | None) -> int | None:
    if token is None:
      return None
    found = self._added_tokens_encoder.get(token)
    return self._convert_token_to_id(token) if found is None else found

  def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
    """Returns the token of an id, or those of several."""
    if isinstance(ids, int):
      return self._token_of(ids)
    skipped = set(self.all_special_ids) if skip_special_tokens else ()
    return [self._token_of(index) for index in map(int, ids) if index not in skipped]

  def _token_of(self, index: int) -> str:
    added = self._added_tokens_decoder.get(index)
    return added.content if added else self._convert_id_to_token(index)

  # -------------------------------------------------------------------------------------------
  # Texts to ids.

  def prepare_for_tokenization(
    self, text: str, is_split_into_words: bool = False, **kwargs: Any
  ) -> tuple[str, dict[str, Any]]:
    """Changes a text before anything is looked for in it; returns it and unused arguments."""
    del is_split_into_words
    return text, kwargs

  def tokenize(
    self, text: str, pair: str | None = None, add_special_tokens: bool = False, **kwargs: Any
  ) -> list[str]:
    """Splits a text into tokens, without special ones around it.

    Args:
      text: the text.
      pair: of fast tokenizers, as the next.
      add_special_tokens: must be False.
      **kwargs: `split_special_tokens`, and those of `prepare_for_tokenization`.

    Raises:
      TypeError: `text` is no text, or there is more than one.
    """
    if pair is not None or add_special_tokens:
      raise TypeError(
        "A slow tokenizer splits one text, without special tokens: leave out pair and "
        "add_special_tokens, or use the class whose name ends in Fast."
      )
    if not isinstance(text, str):
      raise TypeError(f"A text must be str, not {type(text).__name__}: {text!r:.80}")
    splits = kwargs.pop("split_special_tokens", self.split_special_tokens)
    text, kwargs = self.prepare_for_tokenization(text, **kwargs)
    if kwargs:
      LOGGER.warning("The arguments %s are not known and have no effect.", kwargs)
    if getattr(self, "do_lower_case", False):
      text = self._lower_case(text)
    if splits:
      return self._tokenize(text)
    tokens: list[str] = []
    for part in self._parts(text):
      tokens += [part] if part in self._added_tokens_encoder else self._tokenize(part)
    return tokens

  def _lower_case(self, text: str) -> str:
    """Lower-cases all but special tokens and added ones, which are so already."""
    kept = [*self.all_special_tokens]
    added = self._added_tokens_decoder.values()
    kept += [token.content for token in added if not token.special and token.normalized]
    lowered = []
    # Odd parts are the tokens. Character by character, as a sigma stays like any other.
    for number, part in enumerate(re.split(f"({'|'.join(map(re.escape, kept)) or '(?!)'})", text)):
      is_token = number % 2
      lowered.append(part if is_token else part.lower() if part.isascii() else _lower(part))
    return "".join(lowered)

  def _parts(self, text: str) -> list[str]:
    """Cuts a text around added tokens, which may take white space beside them."""
    parts = [text[part.start : part.end] for part in self._finder.split(text)]
    for number, part in enumerate(parts):
      index = self._added_tokens_encoder.get(part)
      if index is None:
        continue
      token = self._added_tokens_decoder[index]
      left = parts[number - 1] if number else ""
      right = parts[number + 1] if number + 1 < len(parts) else ""
      if token.rstrip and right:
        parts[number + 1] = right.lstrip()
      if token.lstrip and left:
        parts[number - 1] = left.rstrip()
      if token.single_word and left and left[-1] != " ":
        parts[number - 1] += part
        parts[number] = ""
      elif token.single_word and right and right[0] != " ":
        parts[number + 1] = part + parts[number + 1]
        parts[number] = ""
    return [part for part in parts if part]

  def _encode_one(
    self, text: Any, text_pair: Any, options: Options, **kwargs: Any
  ) -> BatchEncoding:
    row, tokenizing = _split_arguments(kwargs)
    first, second = self._ids_of(text, tokenizing), None
    if text_pair is not None:
      second = self._ids_of(text_pair, tokenizing)
    return self.prepare_for_model(
      first, second, prepend_batch_axis=True, **_options_by_name(options), **row
    )

  def _encode_batch(self, batch: Sequence[Any], options: Options, **kwargs: Any) -> BatchEncoding:
    kwargs.pop("split_special_tokens", None)  # as in transformers: of a single text only
    row, tokenizing = _split_arguments(kwargs)
    return_tensors = row.pop("return_tensors", None)
    multiple, side = row.pop("pad_to_multiple_of", None), row.pop("padding_side", None)
    has_mask = row.pop("return_attention_mask", None)
    unpadded = {**_options_by_name(options), "padding": False, "return_attention_mask": False}
    rows: dict[str, list] = {}
    for each in batch:
      text, pair = _text_and_pair(each, tokenizing["is_split_into_words"])
      first = self._ids_of(text, tokenizing)
      second = None if pair is None else self._ids_of(pair, tokenizing)
      for name, value in self.prepare_for_model(first, second, **unpadded, **row).items():
        rows.setdefault(name, []).append(value)
    if not rows:
      return BatchEncoding({name: [] for name in self.model_input_names})
    padded = self.pad(
      rows,
      padding=options.padding,
      return_attention_mask=has_mask,
      verbose=False,
      max_length=options.max_length,
      pad_to_multiple_of=multiple,
      padding_side=side,
    )
    return BatchEncoding(padded.data, tensor_type=return_tensors)

  def _ids_of(self, text: Any, tokenizing: dict[str, Any]) -> list[int]:
    """Returns ids of a text, of words, of tokens or of ids."""
    options = dict(tokenizing)
    is_split = options.pop("is_split_into_words")
    if isinstance(text, str):
      return self.convert_tokens_to_ids(self.tokenize(text, **options))
    if isinstance(text, list | tuple) and all(isinstance(each, str) for each in text):
      if is_split:
        options["is_split_into_words"] = True
        tokens = [token for word in text for token in self.tokenize(word, **options)]
        return self.convert_tokens_to_ids(tokens)
      return self.convert_tokens_to_ids(list(text))
    if isinstance(text, list | tuple) and all(isinstance(each, int) for each in text):
      return list(text)
    raise ValueError(
      "A text must be str, a list of words or tokens (str), or a list of ids (int), not "
      f"{type(text).__name__}: {text!r:.80}"
    )

  # -------------------------------------------------------------------------------------------
  # Ids to texts, and files.

  def _decode(
    self,
    ids: Any,
    skip_special_tokens: bool,
    clean: bool | None,
    spaces_between_special_tokens: bool = True,
    **unused: Any,
  ) -> str:
    del unused
    tokens = self.convert_ids_to_tokens(ids, skip_special_tokens=skip_special_tokens)
    special = set(self.all_special_tokens)
    # These stand apart from what surrounds them.
    apart = set(self._added_tokens_encoder) - special
    more = self.additional_special_tokens
    apart |= {token for token in more if self.convert_tokens_to_ids(token) >= self.vocab_size}
    texts: list[str] = []
    run: list[str] = []
    for token in [tokens] if isinstance(tokens, str) else tokens:
      if skip_special_tokens and token in special:
        continue
      if token not in apart:
        run.append(token)
        continue
      if run and (text := self.convert_tokens_to_string(run)):
        texts.append(text)
      run = []
      texts.append(token)
    if run:
      texts.append(self.convert_tokens_to_string(run))
    return self._cleaned((" " if spaces_between_special_tokens else "").join(texts), clean)

  def _save_files(self, folder: str, prefix: str, legacy_format: bool | None) -> tuple[str, ...]:
    if legacy_format is False:
      raise ValueError("legacy_format=False writes a tokenizer.json, which needs a fast tokenizer.")
    added = tokenization_files.write_added_tokens(self, folder, prefix)
    files = self.save_vocabulary(folder, filename_prefix=prefix.removesuffix("-") or None)
    return (*files, added)


# Arguments that make a row; all others are for `tokenize`.
_OF_ROW = (
  *("add_special_tokens", "stride", "pad_to_multiple_of", "padding_side", "return_tensors"),
  *("return_token_type_ids", "return_attention_mask", "return_overflowing_tokens"),
  *("return_special_tokens_mask", "return_length", "verbose"),
)


def _split_arguments(kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
  """Returns the arguments that make a row, and those that make tokens."""
  if kwargs.pop("return_offsets_mapping", False):
    raise NotImplementedError(
      "A slow tokenizer does not know the offsets of its tokens (return_offsets_mapping): use the "
      "class whose name ends in Fast."
    )
  row = {name: kwargs.pop(name) for name in _OF_ROW if name in kwargs}
  kwargs.setdefault("is_split_into_words", False)
  return row, kwargs


def _options_by_name(options: Options) -> dict[str, Any]:
  return options._asdict()


def _text_and_pair(each: Any, is_split: bool) -> tuple[Any, Any]:
  if not isinstance(each, list | tuple):
    return each, None
  if is_split and not (each and isinstance(each[0], list | tuple)):
    return each, None
  if len(each) != 2:
    raise ValueError(
      f"A pair must have two texts, not {len(each)}: {each!r:.80} (words need "
      "is_split_into_words=True)."
    )
  return each[0], each[1]


def _lower(text: str) -> str:
  return "".join(map(str.lower, text))
