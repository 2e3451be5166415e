"""What slow and fast tokenizers share: calls, padding, decoding, settings.

  tokenizer("It rains.", "Does it?", truncation="only_second", max_length=64)
  tokenizer.pad([{"input_ids": [101, 102]}, ...], return_tensors="np")
  tokenizer.decode([101, 2009, 102])

Subclasses make ids of texts (`_encode_batch`, `_encode_one`) and texts of ids (`_decode`).
"""

import contextlib
import copy
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from bert.transformers import tokenization_files
from bert.transformers.added_tokens import AddedToken
from bert.transformers.batch_encoding import BatchEncoding
from bert.transformers.tokenization_options import (
  NO_LIMIT,
  Options,
  PaddingStrategy,
  TruncationStrategy,
  check_side,
)
from bert.transformers.tokenization_rows import RowsMixin, as_list
from bert.transformers.tokenization_special import SpecialTokensMixin

# What decoding joins again, if asked to.
_JOINED = (
  *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't")),
  *((" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)


class PreTrainedTokenizerBase(RowsMixin, SpecialTokensMixin):
  """Texts to ids and back. See `BertTokenizer` and `BertTokenizerFast`.

  Attributes:
    vocab_files_names: argument of the constructor -> name of its file in a folder.
    model_input_names: what a model of this family takes; the first is the ids.
    padding_side: "right" or "left".
    truncation_side: "right" or "left".
    model_max_length: the longest row of the model, in tokens.
    clean_up_tokenization_spaces: whether decoding drops spaces before punctuation.
    split_special_tokens: whether special tokens in texts are text like any other.
    init_kwargs: the arguments, which `save_pretrained` writes.
  """

  vocab_files_names: dict[str, str] = {}
  pretrained_vocab_files_map: dict[str, dict[str, str]] = {}  # nothing is known by name here
  model_input_names: list[str] = ["input_ids", "token_type_ids", "attention_mask"]
  padding_side = "right"
  truncation_side = "right"
  reads_tokenizer_json = False  # whether a slow class takes one as its vocabulary
  slow_tokenizer_class: "type[PreTrainedTokenizerBase] | None" = None

  def __init__(self, **kwargs: Any):
    """Keeps settings; raises a ValueError or TypeError if one cannot be."""
    self.init_inputs: tuple = ()
    for name in kwargs:
      if callable(getattr(type(self), name, None)):
        raise AttributeError(f"{name!r} cannot be set: it is a method of {type(self).__name__}.")
    self.init_kwargs = copy.deepcopy(kwargs)
    self.name_or_path = kwargs.pop("name_or_path", "")
    limit = kwargs.pop("model_max_length", kwargs.pop("max_len", None))
    self.model_max_length = NO_LIMIT if limit is None else limit
    for name in ("padding_side", "truncation_side"):
      setattr(self, name, check_side(name, kwargs.pop(name, getattr(self, name))))
    self.model_input_names = kwargs.pop("model_input_names", self.model_input_names)
    self.clean_up_tokenization_spaces = kwargs.pop("clean_up_tokenization_spaces", False)
    self.split_special_tokens = kwargs.pop("split_special_tokens", False)
    self.deprecation_warnings: dict[str, bool] = {}  # what was warned of
    self.chat_template = kwargs.pop("chat_template", None)
    more = kwargs.pop("extra_special_tokens", None) or {}
    super().__init__(**kwargs)
    self.extra_special_tokens = more
    self.SPECIAL_TOKENS_ATTRIBUTES = [*self.SPECIAL_TOKENS_ATTRIBUTES, *more]
    for name, token in more.items():
      self._special_tokens_map[name] = token if isinstance(token, str) else AddedToken.of(token)

  # -------------------------------------------------------------------------------------------
  # What subclasses have.

  @property
  def is_fast(self) -> bool:
    """Whether it knows where its tokens come from."""
    raise NotImplementedError

  @property
  def vocab_size(self) -> int:
    """Number of tokens without added ones; `len(tokenizer)` counts these, too."""
    raise NotImplementedError

  @property
  def added_tokens_decoder(self) -> dict[int, AddedToken]:
    """Id -> added token, by id."""
    raise NotImplementedError

  @property
  def added_tokens_encoder(self) -> dict[str, int]:
    """Added token -> id, by id."""
    return {token.content: index for index, token in self.added_tokens_decoder.items()}

  def get_vocab(self) -> dict[str, int]:
    """Returns token -> id, of all tokens."""
    raise NotImplementedError

  def get_added_vocab(self) -> dict[str, int]:
    """Returns added token -> id."""
    return self.added_tokens_encoder

  def tokenize(
    self, text: str, pair: str | None = None, add_special_tokens: bool = False, **kwargs: Any
  ) -> list[str]:
    """Splits a text into tokens."""
    raise NotImplementedError

  def convert_tokens_to_ids(self, tokens: Any) -> Any:
    """Returns the id of a token, or those of several; that of `unk_token` for unknown ones."""
    raise NotImplementedError

  def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
    """Returns the token of an id, or those of several."""
    raise NotImplementedError

  def convert_tokens_to_string(self, tokens: list[str]) -> str:
    """Joins tokens to a text."""
    raise NotImplementedError

  def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple:
    """Writes the files of the vocabulary, and returns their paths."""
    raise NotImplementedError

  def _encode_one(self, text: Any, text_pair: Any, options: Options, **kwargs: Any):
    raise NotImplementedError

  def _encode_batch(self, batch: Sequence[Any], options: Options, **kwargs: Any):
    raise NotImplementedError

  def _decode(self, ids: Any, skip_special_tokens: bool, clean: bool | None, **kwargs: Any) -> str:
    raise NotImplementedError

  def __repr__(self):
    added = "\n\t".join(
      f"{index}: {token!r}," for index, token in self.added_tokens_decoder.items()
    )
    names = ("name_or_path", "vocab_size", "model_max_length", "is_fast", "padding_side")
    shown = [f"{name}={getattr(self, name)!r}" for name in (*names, "truncation_side")]
    shown.append(f"special_tokens={self.special_tokens_map}")
    shown.append(f"clean_up_tokenization_spaces={self.clean_up_tokenization_spaces}")
    settings = ", ".join(shown)
    return f"{type(self).__name__}({settings}, added_tokens_decoder={{\n\t{added}\n}}\n)"

  @property
  def max_len_single_sentence(self) -> int:
    """The longest text, in tokens."""
    return self.model_max_length - self.num_special_tokens_to_add(pair=False)

  @property
  def max_len_sentences_pair(self) -> int:
    """The longest pair of texts, in tokens."""
    return self.model_max_length - self.num_special_tokens_to_add(pair=True)

  # -------------------------------------------------------------------------------------------
  # Texts to ids.

  def __call__(
    self,
    text: Any = None,
    text_pair: Any = None,
    text_target: Any = None,
    text_pair_target: Any = None,
    add_special_tokens: bool = True,
    padding: bool | str | PaddingStrategy = False,
    truncation: bool | str | TruncationStrategy | None = None,
    max_length: int | None = None,
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
    **kwargs: Any,
  ) -> BatchEncoding:
    """Encodes a text, a pair, or several of them.

    Args:
      text: a text or a list of texts; with `is_split_into_words` a list of words, or several.
      text_pair: the second text of each, in the same form.
      text_target: texts whose ids become `labels`.
      text_pair_target: the second text of each of these.
      add_special_tokens: whether to add `[CLS]`, `[SEP]` and the like.
      padding: True or "longest", "max_length", False.
      truncation: True or "longest_first", "only_first", "only_second", False.
      max_length: in tokens, with special ones; by default `model_max_length`.
      stride: the number of tokens by which rows overlap, with `return_overflowing_tokens`.
      is_split_into_words: whether texts are lists of words.
      pad_to_multiple_of: pad to a multiple of this.
      padding_side: "right" or "left", instead of the tokenizer's.
      return_tensors: "tf", "np" or "pt"; None for lists.
      return_token_type_ids: whether to return segments; by default if the model has them.
      return_attention_mask: whether to return the mask of tokens; by default if the model has it.
      return_overflowing_tokens: return what was cut off, too: of a fast tokenizer as more rows,
        with `overflow_to_sample_mapping`; of a slow one as `overflowing_tokens`.
      return_special_tokens_mask: return 1 for each special token.
      return_offsets_mapping: return start and end of each token in its text; fast tokenizers only.
      return_length: return the number of tokens of each row.
      verbose: whether to log what is odd.
      **kwargs: `split_special_tokens`, and of slow tokenizers those of `tokenize`.

    Returns:
      `input_ids` and what was asked for: lists `[S]` for one text, `[B][S]` for several, or tensors
      `[B, S]`.

    Raises:
      ValueError: an argument cannot be, no text was given, or rows form no tensor.
      TypeError: texts are of another type.
      NotImplementedError: a slow tokenizer was asked for offsets.
    """
    if text is None and text_target is None:
      raise ValueError("There is neither text nor text_target to encode.")
    options = {
      "add_special_tokens": add_special_tokens,
      "padding": padding,
      "truncation": truncation,
      "max_length": max_length,
      "stride": stride,
      "is_split_into_words": is_split_into_words,
      "pad_to_multiple_of": pad_to_multiple_of,
      "padding_side": padding_side,
      "return_tensors": return_tensors,
      "return_token_type_ids": return_token_type_ids,
      "return_attention_mask": return_attention_mask,
      "return_overflowing_tokens": return_overflowing_tokens,
      "return_special_tokens_mask": return_special_tokens_mask,
      "return_offsets_mapping": return_offsets_mapping,
      "return_length": return_length,
      "verbose": verbose,
      **kwargs,
    }
    encoded = None if text is None else self._encode_any(text, text_pair, options)
    if text_target is None:
      assert encoded is not None
      return encoded
    target = self._encode_any(text_target, text_pair_target, options)
    if encoded is None:
      return target
    encoded["labels"] = target["input_ids"]
    return encoded

  def _encode_any(self, text: Any, text_pair: Any, options: dict[str, Any]) -> BatchEncoding:
    is_split = options["is_split_into_words"]
    _check_texts("text", text)
    if text_pair is not None:
      _check_texts("text_pair", text_pair)
    several = isinstance(text, list | tuple)
    if several and is_split:
      several = bool(text) and isinstance(text[0], list | tuple)
    if not several:
      return self.encode_plus(text, text_pair, **options)
    if text_pair is None:
      return self.batch_encode_plus(text, **options)
    if isinstance(text_pair, str):
      raise TypeError(f"There are {len(text)} texts, but text_pair is a single one.")
    if len(text) != len(text_pair):
      raise ValueError(f"There are {len(text)} texts, but {len(text_pair)} in text_pair.")
    return self.batch_encode_plus(list(zip(text, text_pair, strict=True)), **options)

  def encode_plus(self, text: Any, text_pair: Any = None, **kwargs: Any) -> BatchEncoding:
    """Encodes one text or pair; arguments as of a call, see `__call__`."""
    return self._encode_one(text, text_pair, self._options(kwargs), **kwargs)

  def batch_encode_plus(self, batch_text_or_text_pairs: Any, **kwargs: Any) -> BatchEncoding:
    """Encodes several texts, or pairs of two; arguments as of a call, see `__call__`."""
    if not isinstance(batch_text_or_text_pairs, list | tuple):
      kind = type(batch_text_or_text_pairs).__name__
      raise TypeError(f"batch_text_or_text_pairs must be a list or a tuple of texts, not {kind}.")
    return self._encode_batch(batch_text_or_text_pairs, self._options(kwargs), **kwargs)

  def encode(self, text: Any, text_pair: Any = None, **kwargs: Any) -> Any:
    """Returns the ids of a text or a pair; arguments as of a call, see `__call__`."""
    return self.encode_plus(text, text_pair, **kwargs)["input_ids"]

  @contextlib.contextmanager
  def as_target_tokenizer(self) -> Iterator[None]:
    """Deprecated: pass `text_target`."""
    warnings.warn("as_target_tokenizer() changes nothing: pass text_target.", stacklevel=3)
    yield

  # -------------------------------------------------------------------------------------------
  # Ids to texts.

  def decode(
    self,
    token_ids: Any,
    skip_special_tokens: bool = False,
    clean_up_tokenization_spaces: bool | None = None,
    **kwargs: Any,
  ) -> str:
    """Joins ids to a text.

    Args:
      token_ids: a list, an array or a tensor `[S]`; or one id.
      skip_special_tokens: whether to leave out special tokens.
      clean_up_tokenization_spaces: whether to drop spaces before punctuation; by default the
        tokenizer's.
      **kwargs: of slow tokenizers `spaces_between_special_tokens`.
    """
    ids = as_list(token_ids)
    return self._decode(ids, skip_special_tokens, clean_up_tokenization_spaces, **kwargs)

  def batch_decode(
    self,
    sequences: Any,
    skip_special_tokens: bool = False,
    clean_up_tokenization_spaces: bool | None = None,
    **kwargs: Any,
  ) -> list[str]:
    """Joins rows of ids to texts, see `decode`; a list, an array or a tensor `[B, S]`."""
    return [
      self.decode(ids, skip_special_tokens, clean_up_tokenization_spaces, **kwargs)
      for ids in sequences
    ]

  @staticmethod
  def clean_up_tokenization(out_string: str) -> str:
    """Drops spaces before punctuation and English endings.

    Example:
      >>> PreTrainedTokenizerBase.clean_up_tokenization("do n't stop , please !")
      "don't stop, please!"
    """
    for spaced, joined in _JOINED:
      out_string = out_string.replace(spaced, joined)
    return out_string

  def _cleaned(self, text: str, clean: bool | None) -> str:
    clean = self.clean_up_tokenization_spaces if clean is None else clean
    return self.clean_up_tokenization(text) if clean else text

  # -------------------------------------------------------------------------------------------
  # Files.

  @classmethod
  def from_pretrained(
    cls, pretrained_model_name_or_path: str | os.PathLike, *init_inputs: Any, **kwargs: Any
  ):
    """Reads a tokenizer.

    Args:
      pretrained_model_name_or_path: a folder; or the name of a released model, which is downloaded.
      *init_inputs: first arguments of the constructor.
      **kwargs: `cache_dir`, `subfolder`; the rest are arguments of the constructor, which go before
        what the files say.

    Raises:
      OSError: there is no such folder and no such model, or it has no vocabulary.
      ValueError: a file is bad.
    """
    return tokenization_files.load(cls, pretrained_model_name_or_path, *init_inputs, **kwargs)

  def save_pretrained(
    self,
    save_directory: str | os.PathLike,
    legacy_format: bool | None = None,
    filename_prefix: str | None = None,
    **kwargs: Any,
  ) -> tuple[str, ...]:
    """Writes the files that `from_pretrained` reads, here and in transformers.

    Args:
      save_directory: a folder, which is made.
      legacy_format: of a fast tokenizer: True leaves out tokenizer.json, False the vocabulary.
      filename_prefix: goes before the names of files, with "-".
      **kwargs: without effect.

    Returns:
      The paths.

    Raises:
      ValueError: `push_to_hub` was asked for; or `save_directory` is a file.
    """
    if kwargs.get("push_to_hub"):
      raise ValueError("push_to_hub is not supported: upload the folder yourself.")
    return tokenization_files.save(self, save_directory, legacy_format, filename_prefix)

  def _save_files(self, folder: str, prefix: str, legacy_format: bool | None) -> tuple[str, ...]:
    raise NotImplementedError


def _check_texts(name: str, texts: Any) -> None:
  if isinstance(texts, str):
    return
  if isinstance(texts, list | tuple):
    first = texts[0] if texts else ""
    if isinstance(first, list | tuple):
      first = first[0] if first else ""
      if isinstance(first, list | tuple):
        first = first[0] if first else ""
    if isinstance(first, str):
      return
  raise ValueError(
    f"{name} must be a text, a list of texts, or lists of words with is_split_into_words=True, not "
    f"{type(texts).__name__}: {texts!r:.80}"
  )
