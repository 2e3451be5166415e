"""ALBERT's tokenizers: the slow one needs `sentencepiece`, the fast one `tokenizers`.

  tokenizer = AlbertTokenizer.from_pretrained("albert-base-v2")
  tokenizer.tokenize("It rains.")              # ["▁it", "▁rains", "."]

A fast tokenizer is made of a tokenizer.json, or of a sentencepiece model.
"""

import os
from typing import Any

from bert.io import atomic_files
from bert.text import sentence_pieces, tokenizer_json
from bert.text.vocabulary_file import VocabularyError
from bert.transformers.added_tokens import AddedToken
from bert.transformers.fast_backends import Backend, LibraryBackend
from bert.transformers.tokenization_fast import PreTrainedTokenizerFast
from bert.transformers.tokenization_rows import ClsSepRows
from bert.transformers.tokenization_slow import PreTrainedTokenizer

VOCAB_FILES_NAMES = {"vocab_file": "spiece.model"}


def _mask_token(token: Any) -> Any:
  """The mask takes the white space on its left."""
  return AddedToken(token, lstrip=True, normalized=False) if isinstance(token, str) else token


class AlbertTokenizer(ClsSepRows, PreTrainedTokenizer):
  """Text to the pieces of a sentencepiece model: the slow tokenizer.

  Attributes:
    sp_model: the library's `SentencePieceProcessor`.
    vocab_file: path of the model.
    do_lower_case: whether text is lower-cased.
    remove_space: whether blanks become one space, and none at the ends.
    keep_accents: whether accents stay.
    sp_model_kwargs: arguments of `sp_model`.
  """

  vocab_files_names = VOCAB_FILES_NAMES

  def __init__(
    self,
    vocab_file: str | os.PathLike,
    do_lower_case: bool = True,
    remove_space: bool = True,
    keep_accents: bool = False,
    bos_token: Any = "[CLS]",
    eos_token: Any = "[SEP]",
    unk_token: Any = "<unk>",
    sep_token: Any = "[SEP]",
    pad_token: Any = "<pad>",
    cls_token: Any = "[CLS]",
    mask_token: Any = "[MASK]",
    sp_model_kwargs: dict[str, Any] | None = None,
    **kwargs: Any,
  ):
    """Reads the model.

    Args:
      vocab_file: `spiece.model`.
      do_lower_case: see the class, as the next two.
      remove_space: whether blanks become one space.
      keep_accents: whether accents stay.
      bos_token: the token before a text.
      eos_token: the token after a text.
      unk_token: the token of unknown characters.
      sep_token: the token after each text.
      pad_token: the token of padding.
      cls_token: the token before a text.
      mask_token: the token of a masked word.
      sp_model_kwargs: of the library's processor, such as `enable_sampling`.
      **kwargs: `model_max_length`, `padding_side`, ...; see `PreTrainedTokenizerBase`.

    Raises:
      VocabularyError: the file is missing or cannot be used.
      MissingExtraError: the library is not installed.
    """
    self.sp_model_kwargs = sp_model_kwargs or {}
    self.do_lower_case = do_lower_case
    self.remove_space = remove_space
    self.keep_accents = keep_accents
    self.vocab_file = vocab_file
    self._pieces = _pieces(vocab_file)
    self._set_processor()
    super().__init__(
      do_lower_case=do_lower_case,
      remove_space=remove_space,
      keep_accents=keep_accents,
      bos_token=bos_token,
      eos_token=eos_token,
      unk_token=unk_token,
      sep_token=sep_token,
      pad_token=pad_token,
      cls_token=cls_token,
      mask_token=_mask_token(mask_token),
      sp_model_kwargs=self.sp_model_kwargs,
      **kwargs,
    )

  def _set_processor(self) -> None:
    if self.sp_model_kwargs:
      processor = type(self._pieces.processor)(**self.sp_model_kwargs)
      processor.LoadFromSerializedProto(self._pieces.model)
      self._pieces.processor = processor

  def __setstate__(self, state: dict[str, Any]):
    self.__dict__.update(state)
    self._set_processor()

  @property
  def sp_model(self) -> Any:
    """The library's processor; may be replaced."""
    return self._pieces.processor

  @sp_model.setter
  def sp_model(self, value: Any) -> None:
    self._pieces.processor = value

  @property
  def vocab_size(self) -> int:
    """Number of tokens without added ones."""
    return len(self._pieces.vocab)

  def get_vocab(self) -> dict[str, int]:
    """Returns token -> id, of all tokens."""
    added = self._added_tokens_decoder
    vocab = {
      added[index].content if index in added else piece: index
      for piece, index in self._pieces.vocab.items()
    }
    return {**vocab, **self.added_tokens_encoder}

  def preprocess_text(self, inputs: str) -> str:
    """Prepares a text as the model was trained on it."""
    text = " ".join(inputs.split()) if self.remove_space else inputs
    text = text.replace("``", '"').replace("''", '"')
    if self.keep_accents:
      return text.lower() if self.do_lower_case else text
    return sentence_pieces.preprocess_text(text, remove_space=False, lower=self.do_lower_case)

  def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
    del kwargs
    return self._pieces.tokenize(self.preprocess_text(text))

  def _convert_token_to_id(self, token: str) -> int:
    return self._pieces.vocab.get(token, self._pieces.unk_id)

  def _convert_id_to_token(self, index: int) -> str:
    try:
      return self._pieces.inv_vocab[index]
    except KeyError:
      raise IndexError(f"{index} is not an id of {self.vocab_size} pieces.") from None

  def convert_tokens_to_string(self, tokens: list[str]) -> str:
    """Joins tokens to a text."""
    special = set(self.all_special_tokens)
    text, run, after_special = "", [], False
    for token in tokens:
      if token not in special:
        run.append(token)
        after_special = False
        continue
      text += ("" if after_special else " ") + self.sp_model.decode(run) + token
      run, after_special = [], True
    return (text + self.sp_model.decode(run)).strip()

  def save_vocabulary(
    self, save_directory: str, filename_prefix: str | None = None
  ) -> tuple[str, ...]:
    """Writes spiece.model into a folder, and returns its path."""
    return _save_model(self._pieces.model, save_directory, filename_prefix)


def _pieces(vocab_file: str | os.PathLike | None) -> sentence_pieces.SentencePieceTokenizer:
  if vocab_file is None:
    raise VocabularyError("No spiece.model was given (vocab_file).")
  return sentence_pieces.SentencePieceTokenizer(vocab_file, preprocess=False, intended_numbers=True)


def _save_model(model: bytes, folder: str, prefix: str | None) -> tuple[str]:
  path = os.path.join(folder, f"{prefix}-spiece.model" if prefix else "spiece.model")
  atomic_files.write_bytes(path, model)
  return (path,)


class AlbertTokenizerFast(ClsSepRows, PreTrainedTokenizerFast):
  """Text to the pieces of a sentencepiece model, with offsets and words.

  See `AlbertTokenizer` for the arguments; `tokenizer_file` goes before `vocab_file`.
  """

  vocab_files_names = {**VOCAB_FILES_NAMES, "tokenizer_file": "tokenizer.json"}
  slow_tokenizer_class = AlbertTokenizer

  def __init__(
    self,
    vocab_file: str | os.PathLike | None = None,
    tokenizer_file: str | os.PathLike | None = None,
    do_lower_case: bool = True,
    remove_space: bool = True,
    keep_accents: bool = False,
    bos_token: Any = "[CLS]",
    eos_token: Any = "[SEP]",
    unk_token: Any = "<unk>",
    sep_token: Any = "[SEP]",
    pad_token: Any = "<pad>",
    cls_token: Any = "[CLS]",
    mask_token: Any = "[MASK]",
    **kwargs: Any,
  ):
    """Reads the model.

    Raises:
      VocabularyError: no file was given, or it cannot be used.
      MissingExtraError: a library is not installed.
    """
    if self._reads_vocabulary(tokenizer_file, kwargs):
      kwargs.setdefault("sp_model_kwargs", {})
    super().__init__(
      vocab_file,
      tokenizer_file=tokenizer_file,
      do_lower_case=do_lower_case,
      remove_space=remove_space,
      keep_accents=keep_accents,
      bos_token=bos_token,
      eos_token=eos_token,
      unk_token=unk_token,
      sep_token=sep_token,
      pad_token=pad_token,
      cls_token=cls_token,
      mask_token=_mask_token(mask_token),
      **kwargs,
    )
    self.do_lower_case = do_lower_case
    self.remove_space = remove_space
    self.keep_accents = keep_accents
    self.vocab_file = vocab_file

  def _from_vocabulary(self, *args: Any, **kwargs: Any) -> Backend:
    content = tokenizer_json.of_sentence_pieces(
      args[0], kwargs["do_lower_case"], kwargs["keep_accents"]
    )
    backend = LibraryBackend(content, f"{args[0]}")
    model = content["model"]
    import tokenizers

    # Once more, as numbers: from text the library reads them but for the last bit.
    vocab = [(piece, score) for piece, score in model["vocab"]]
    backend.library.model = tokenizers.models.Unigram(vocab, model["unk_id"], False)
    return backend

  def save_vocabulary(
    self, save_directory: str, filename_prefix: str | None = None
  ) -> tuple[str, ...]:
    """Writes spiece.model into a folder, and returns its path.

    Raises:
      ValueError: the tokenizer was made of a tokenizer.json alone, or the model is gone.
    """
    if not self.can_save_slow_tokenizer:
      raise ValueError("There is no spiece.model to save: this tokenizer is of a tokenizer.json.")
    assert self.vocab_file is not None
    model = sentence_pieces.read_model(self.vocab_file)
    return _save_model(model, save_directory, filename_prefix)
