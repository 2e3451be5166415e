"""A tokenizer that is called like those of the transformers library, on top of our own.

  tokenizer = BertTokenizer.from_pretrained("bert-base-uncased")
  inputs = tokenizer(["How nice!", "No."], padding=True, truncation=True, max_length=128,
                     return_tensors="np")
  model(**inputs)

Its tokens are the original's. Those of transformers differ in rare cases: words of 100 to 200
characters, and some symbols.
"""

import os
from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from bert.checkpoints import model_files, model_source, transformers_folder
from bert.io import tokenizer_settings, vocabulary_kind
from bert.keras3.encoding import Encoding
from bert.tokenization import load_tokenizer

_CASED_NAMES = ("cased_L-", "multi_cased_L-", "wwm_cased_L-")

_RETURN_TENSORS = (None, "np", "tf", "pt")


class BertTokenizer:
  """Texts to ids and back.

  Attributes:
    tokenizer: the `FullTokenizer` below, or the `SentencePieceTokenizer` of an ALBERT, or the
      `BytePairTokenizer` of a RoBERTa.
    model_max_length: the default of `max_length`.
  """

  def __init__(
    self, vocab_file: str | os.PathLike, do_lower_case: bool = True, model_max_length: int = 512
  ):
    """Reads a vocabulary.

    Args:
      vocab_file: file with one token per line, a sentencepiece model, or the `tokenizer.json` of a
        byte-level BPE.
      do_lower_case: True for uncased models; a byte-level BPE keeps the case.
      model_max_length: longest sequence of the model, in tokens.
    """
    vocab = load_tokenizer(vocab_file, do_lower_case).vocab
    cls, sep, mask = vocabulary_kind.ends_and_mask(vocab)
    self._special = {
      "unk": vocabulary_kind.unknown_token(vocab),
      "sep": sep,
      "pad": vocabulary_kind.padding_token(vocab),
      "cls": cls,
      "mask": mask,
    }
    special = [token for token in self._special.values() if token in vocab]
    # [MASK] in a text is the mask token: a position to predict.
    self.tokenizer = load_tokenizer(vocab_file, do_lower_case, special)
    self.do_lower_case = do_lower_case and not vocabulary_kind.is_of_byte_pairs(vocab)
    self.model_max_length = model_max_length

  @classmethod
  def from_pretrained(
    cls,
    name_or_path: str | os.PathLike,
    do_lower_case: bool | None = None,
    cache_dir: str | os.PathLike | None = None,
  ) -> "BertTokenizer":
    """Reads the tokenizer of a model.

    Args:
      name_or_path: a folder with `vocab.txt`, `spiece.model` or a RoBERTa's `tokenizer.json`, a
        checkpoint in one, or the name of a released model here or in transformers
        (`bert-base-uncased`), which is downloaded.
      do_lower_case: by default as the files of transformers in the folder state it, or as implied
        by the name.
      cache_dir: folder of downloads.

    Raises:
      ValueError: the model does not exist.
    """
    path = model_source.local_path(name_or_path, cache_dir)
    if do_lower_case is None:
      do_lower_case = _lower_case_of(model_files.folder_of(path))
    return cls(model_files.need_vocabulary(path), do_lower_case)

  def save_pretrained(self, folder: str | os.PathLike) -> None:
    """Writes the files that `from_pretrained` reads, here and in transformers."""
    os.makedirs(folder, exist_ok=True)
    transformers_folder.write_tokenizer(
      folder, self.tokenizer.vocab_file, self.do_lower_case, self.model_max_length
    )

  # -------------------------------------------------------------------------------------------
  # Texts to ids.

  def __call__(
    self,
    text: str | Sequence[str],
    text_pair: str | Sequence[str] | None = None,
    padding: bool | str = False,
    truncation: bool | str = False,
    max_length: int | None = None,
    return_tensors: str | None = None,
  ) -> Encoding:
    """Encodes one or several texts, each optionally with a second text.

    Args:
      text: one text, or several.
      text_pair: the second text of each.
      padding: True or `longest`: to the longest row; `max_length`: to `max_length`; False: none.
      truncation: whether to truncate rows to `max_length`; of a pair, the longer text first.
      max_length: in tokens; `model_max_length` by default.
      return_tensors: `np`, `tf` or `pt` for arrays or tensors of that library; None for lists.

    Returns:
      A dictionary of `input_ids`, `token_type_ids` and `attention_mask`, `[B, S]` each; for a
      single text without `return_tensors` lists `[S]`. Its values are also attributes.

    Raises:
      ValueError: rows of different lengths cannot form an array; or an argument is unknown.
    """
    self._check(padding, return_tensors)
    if text is None:
      raise ValueError("The text is None; pass a text or a list of texts.")
    single = isinstance(text, str)
    texts: list[Any] = [text] if single else list(text)
    pairs: Any = text_pair and [text_pair] if single else text_pair
    length = max_length or self.model_max_length
    encoded = self.tokenizer.encode_batch(
      texts,
      list(pairs) if pairs else None,
      max_seq_length=length if truncation else None,
      pad_to_longest=True,
    )
    rows = {
      "input_ids": encoded["input_ids"],
      "token_type_ids": encoded["segment_ids"],
      "attention_mask": encoded["input_mask"],
    }
    if padding == "max_length":
      fill = {"input_ids": self.tokenizer.layout.pad_id}
      rows = {name: _pad(array, length, fill.get(name, 0)) for name, array in rows.items()}
    if return_tensors is None:
      return Encoding(self._as_lists(rows, bool(padding), single))
    if not padding and not encoded["input_mask"].all():
      raise ValueError("The rows have different lengths; pass padding=True.")
    return Encoding((name, _as_tensor(array, return_tensors)) for name, array in rows.items())

  def _check(self, padding, return_tensors):
    if padding not in (False, True, "longest", "max_length"):
      raise ValueError(f"padding is {padding!r}; known: True, False, 'longest', 'max_length'.")
    if return_tensors not in _RETURN_TENSORS:
      raise ValueError(f"return_tensors is {return_tensors!r}; known: None, 'np', 'tf', 'pt'.")

  def _as_lists(self, rows, padded: bool, single: bool) -> dict:
    lengths = rows["attention_mask"].sum(axis=1)
    lists = {
      name: [
        row.tolist() if padded else row[:length].tolist()
        for row, length in zip(array, lengths, strict=True)
      ]
      for name, array in rows.items()
    }
    return {name: rows[0] for name, rows in lists.items()} if single else lists

  def tokenize(self, text: str) -> list[str]:
    """Splits a text into tokens, without `[CLS]` and `[SEP]`."""
    return self.tokenizer.tokenize(text)

  def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> int | list[int]:
    """Returns ids of tokens, or the id of a token."""
    vocab = self.tokenizer.vocab
    unknown = vocab[self._special["unk"]]
    if isinstance(tokens, str):
      return vocab.get(tokens, unknown)
    return [vocab.get(token, unknown) for token in tokens]

  # -------------------------------------------------------------------------------------------
  # Ids to texts.

  def convert_ids_to_tokens(self, ids) -> str | list[str]:
    """Returns tokens of ids, which may be a tensor of any backend; or the token of an id."""
    ids = np.asarray(ids)
    if ids.ndim == 0:
      return self.tokenizer.inv_vocab[int(ids)]
    return self.tokenizer.convert_ids_to_tokens(ids.tolist())

  def decode(self, ids, skip_special_tokens: bool = False) -> str:
    """Joins ids to a text; what tokenization lost, such as case, is not restored."""
    if vocabulary_kind.is_of_byte_pairs(self.tokenizer.vocab):
      return self.tokenizer.decode(np.atleast_1d(np.asarray(ids)).tolist(), skip_special_tokens)
    tokens = self.convert_ids_to_tokens(np.atleast_1d(np.asarray(ids)))
    if skip_special_tokens:
      tokens = [token for token in tokens if token not in self._special.values()]
    if vocabulary_kind.is_of_model(self.tokenizer.vocab):
      return _join_sentencepieces(tokens, self._special.values())
    return " ".join(tokens).replace(" ##", "")

  def batch_decode(self, sequences, skip_special_tokens: bool = False) -> list[str]:
    """Joins several rows of ids to texts, a list or a tensor `[B, S]`."""
    return [self.decode(ids, skip_special_tokens) for ids in sequences]

  @property
  def vocab_size(self) -> int:
    """Number of tokens."""
    return len(self.tokenizer.vocab)

  def __getattr__(self, name: str):
    """Returns `mask_token`, `pad_token`, ... and the ids `mask_token_id`, `pad_token_id`, ..."""
    special = self.__dict__.get("_special", {})
    token = special.get(name.removesuffix("_id").removesuffix("_token"))
    if token and name.endswith("_token"):
      return token
    if token and name.endswith("_token_id"):
      return self.tokenizer.vocab[token]
    raise AttributeError(f"BertTokenizer has no attribute {name!r}.")


def _join_sentencepieces(tokens: Iterable[str], special: Container[str]) -> str:
  """Joins a sentencepiece model's tokens; special tokens are words of their own.

  Example:
    >>> _join_sentencepieces(["[CLS]", "▁it", "▁rain", "s", ".", "[SEP]"], ["[CLS]", "[SEP]"])
    '[CLS] it rains. [SEP]'
  """
  spaced = (f"▁{token}▁" if token in special else token for token in tokens)
  return " ".join("".join(spaced).replace("▁", " ").split())


def _lower_case_of(folder: str) -> bool:
  stated = tokenizer_settings.in_folder(folder).do_lower_case
  name = os.path.basename(os.path.abspath(folder))
  return not name.startswith(_CASED_NAMES) if stated is None else stated


def _pad(array: np.ndarray, length: int, value: int) -> np.ndarray:
  missing = max(0, length - array.shape[1])
  return np.pad(array, ((0, 0), (0, missing)), constant_values=value)


def _as_tensor(array: np.ndarray, kind: str):
  if kind == "tf":
    import tensorflow as tf

    return tf.constant(array)
  if kind == "pt":
    import torch

    return torch.from_numpy(array.astype("int64"))
  return array


AutoTokenizer = BertTokenizer
