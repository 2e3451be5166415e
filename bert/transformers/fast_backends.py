"""What a fast tokenizer does with a text, without the special tokens around it.

  backend = WordPieceBackend(vocab)
  backend.add([AddedToken("[MASK]", special=True)])
  backend.encode("to [MASK]").ids

`WordPieceBackend` is for BERT, DistilBERT and ELECTRA, and needs no library. `LibraryBackend` is
for all else that a tokenizer.json may hold, and needs `tokenizers`. Both answer the same questions.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from bert.io import atomic_files, installation, tokenizer_settings
from bert.text import tokenizer_json
from bert.text.tokenizer_json import PREFIX
from bert.text.vocabulary_file import VocabularyError, write_tokens
from bert.transformers.added_tokens import AddedToken, Finder
from bert.transformers.encodings import Details, Pieces, Template
from bert.transformers.library_characters import WORDS
from bert.transformers.library_words import (
  MAX_WORD_CHARS,
  UNCASED,
  LibraryWordPieces,
  Normalization,
)

_SURROGATES = re.compile("[\ud800-\udfff]")
_CLEANED_UP = (
  *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't")),
  *((" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)


class Backend(Protocol):
  """What both classes have.

  Attributes:
    template: where special tokens stand; for the file only, `encode` adds none.
  """

  template: Template

  @property
  def added(self) -> dict[int, AddedToken]:
    """Id -> added token, by id."""

  @property
  def base_vocab(self) -> dict[str, int]:
    """Token -> id, without added tokens."""

  @property
  def base_size(self) -> int:
    """Number of tokens, without added ones."""

  def encode(self, text: str | Sequence[str], split_special_tokens: bool = False) -> Pieces:
    """Splits a text, or words that each are a text, into tokens."""

  def add(self, tokens: Iterable[AddedToken]) -> int:
    """Adds tokens that stay whole, and counts those that are new."""

  def token_to_id(self, token: str) -> int | None:
    """Returns the id of a token."""

  def id_to_token(self, index: int) -> str | None:
    """Returns the token of an id."""

  def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
    """Joins ids to a text."""

  def decode_tokens(self, tokens: Sequence[str]) -> str:
    """Joins tokens to a text."""

  def content(self) -> dict[str, Any]:
    """Returns the content of a tokenizer.json."""

  def save(self, path: str, pretty: bool = True) -> None:
    """Writes a tokenizer.json."""


class _Saving:
  """The part of both classes that writes the file."""

  def save(self: Backend, path: str, pretty: bool = True) -> None:
    """Writes a tokenizer.json, indented if `pretty`."""
    write_content(path, self.content(), pretty)


class PreTokenizer:
  """Cuts a text into words, by the library's name."""

  def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
    """Returns the words of a normalized text, with their places in it.

    Example:
      >>> PreTokenizer().pre_tokenize_str("it rains.")
      [('it', (0, 2)), ('rains', (3, 8)), ('.', (8, 9))]
    """
    return [(match.group(), match.span()) for match in WORDS.finditer(sequence)]


class _Words:
  """Encodes words that each are a text: their offsets count from their own beginnings."""

  def __init__(self, pieces: Sequence[Pieces]):
    self._pieces = pieces

  def __call__(self) -> Details:
    tokens, offsets, words = [], [], []
    for number, pieces in enumerate(self._pieces):
      its_tokens, its_offsets, _ = pieces.details
      tokens += its_tokens
      offsets += its_offsets
      words += [number] * len(its_tokens)
    return tokens, offsets, words


class WordPieceBackend(_Saving):
  """Word pieces, as in `library_words.py`.

  Attributes:
    template: see `Backend`.
    pre_tokenizer: cuts normalized text into words.
  """

  pre_tokenizer = PreTokenizer()

  def __init__(
    self,
    vocab: Mapping[str, int],
    normalization: Normalization = UNCASED,
    unk_token: str = "[UNK]",
    max_chars: int = MAX_WORD_CHARS,
    cleanup: bool = True,
  ):
    """`cleanup` drops spaces before punctuation when decoding; the rest: `LibraryWordPieces`."""
    if unk_token not in vocab:
      raise VocabularyError(
        f"The vocabulary of {len(vocab)} tokens lacks its unknown token {unk_token!r}."
      )
    self.template = Template()
    self._vocab = dict(vocab)
    self._tokens = {index: token for token, index in self._vocab.items()}
    self._cleanup = cleanup
    self._added: dict[int, AddedToken] = {}
    self._added_ids: dict[str, int] = {}
    # Ids of special tokens. As in the library, each stays special and is looked for in the form in
    # which it first was special, while of other tokens each form that was added is looked for.
    self._special: set[int] = set()
    self._looked_for: list[AddedToken] = []
    self._pieces = LibraryWordPieces(self._vocab, normalization, unk_token, max_chars)
    self._find()

  @property
  def normalization(self) -> Normalization:
    """How texts are normalized; may be replaced."""
    return self._pieces.normalization

  @normalization.setter
  def normalization(self, value: Normalization) -> None:
    pieces = self._pieces
    self._pieces = LibraryWordPieces(self._vocab, value, pieces.unk_token, pieces.max_chars)
    self._find()

  @property
  def normalizer(self) -> Normalization:
    """As `normalization`, by the library's name."""
    return self.normalization

  def _find(self) -> None:
    special = {index: token.copy(special=True) for index, token in self._added.items()}
    as_written, normalized = {}, {}
    # Of two that are spelled alike, special ones come first, then the one that was added first.
    for form in sorted(self._looked_for, key=lambda form: not form.special):
      index = self._added_ids[form.content]
      found = index, special[index] if index in self._special else self._added[index]
      if form.normalized:
        normalized.setdefault(self.normalization.apply(form.content), found)
      else:
        as_written.setdefault(form.content, found)
    self._as_written, self._normalized = Finder(as_written), Finder(normalized)

  @property
  def added(self) -> dict[int, AddedToken]:
    """Id -> added token, by id."""
    return dict(sorted(self._added.items()))

  @property
  def base_vocab(self) -> dict[str, int]:
    """Token -> id, without added tokens."""
    return self._vocab

  @property
  def base_size(self) -> int:
    """Number of tokens, without added ones."""
    return len(self._vocab)

  def add(self, tokens: Iterable[AddedToken]) -> int:
    """Adds tokens that stay whole, and counts those that are new among added ones."""
    count = 0
    for token in tokens:
      index = self.token_to_id(token.content)
      if not token.content or self._added.get(-1 if index is None else index) == token:
        continue
      if index is None:
        index = max(len(self._vocab), 1 + max(self._added_ids.values(), default=-1))
      self._note(index, token.copy())
      count += 1
    self._find()
    return count

  def _note(self, index: int, token: AddedToken) -> None:
    self._added_ids[token.content] = index
    self._added[index] = token
    if index not in self._special:
      self._looked_for.append(token)
    if token.special:
      self._special.add(index)

  def token_to_id(self, token: str) -> int | None:
    """Returns the id of a token."""
    found = self._added_ids.get(token)
    return self._vocab.get(token) if found is None else found

  def id_to_token(self, index: int) -> str | None:
    """Returns the token of an id."""
    added = self._added.get(index)
    return added.content if added else self._tokens.get(index)

  # -------------------------------------------------------------------------------------------
  # Texts to ids.

  def encode(self, text: str | Sequence[str], split_special_tokens: bool = False) -> Pieces:
    """Splits a text, or words that each are a text, into tokens."""
    if isinstance(text, str):
      return Pieces(
        self._ids(text, split_special_tokens), lambda: self._details(text, split_special_tokens)
      )
    pieces = [self.encode(word, split_special_tokens) for word in text]
    return Pieces([index for each in pieces for index in each.ids], _Words(pieces))

  def _ids(self, text: str, split_special_tokens: bool) -> list[int]:
    ids: list[int] = []
    for part in self._as_written.split(text, split_special_tokens):
      if part.id is not None:
        ids.append(part.id)
      elif self._normalized:
        ids += self._ids_of_chunk(text[part.start : part.end], split_special_tokens)
      else:
        ids += self._pieces.ids(text[part.start : part.end])
    return ids

  def _ids_of_chunk(self, chunk: str, split_special_tokens: bool) -> list[int]:
    ids: list[int] = []
    normalized = self.normalization.apply(chunk)
    for part in self._normalized.split(normalized, split_special_tokens):
      if part.id is None:
        ids += self._pieces.ids_of_normalized(normalized[part.start : part.end])
      else:
        ids.append(part.id)
    return ids

  def _details(self, text: str, split_special_tokens: bool) -> Details:
    tokens: list[str] = []
    offsets: list[tuple[int, int]] = []
    words: list[int | None] = []
    number = 0
    for part in self._as_written.split(text, split_special_tokens):
      if part.id is not None:
        tokens.append(text[part.start : part.end])
        offsets.append((part.start, part.end))
        words.append(number)
        number += 1
        continue
      for word in self._words_of_chunk(text[part.start : part.end], split_special_tokens):
        for token, start, end in word:
          tokens.append(token)
          offsets.append((part.start + start, part.start + end))
          words.append(number)
        number += 1
    return tokens, offsets, words

  def _words_of_chunk(self, chunk: str, split_special_tokens: bool):
    """Yields the tokens of each word, with their places in `chunk`."""
    if not self._normalized:
      yield from self._pieces.locate_in(chunk)
      return
    normalized, sources = self.normalization.apply_with_sources(chunk)
    for part in self._normalized.split(normalized, split_special_tokens):
      within = normalized[part.start : part.end]
      words = self._pieces.locate(within)
      for word in [[(within, 0, len(within))]] if part.id is not None else words:
        yield [
          (token, sources[part.start + start], sources[part.start + end - 1] + 1)
          for token, start, end in word
        ]

  # -------------------------------------------------------------------------------------------
  # Ids to texts, and files.

  def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
    """Joins ids to a text; ids without a token are left out."""
    skipped = self._special if skip_special_tokens else ()
    found = (self.id_to_token(index) for index in ids if index not in skipped)
    return self.decode_tokens([token for token in found if token is not None])

  def decode_tokens(self, tokens: Sequence[str]) -> str:
    """Joins tokens to a text."""
    text = []
    for number, token in enumerate(tokens):
      if number:
        is_rest = token.startswith(PREFIX)
        token = token.removeprefix(PREFIX) if is_rest else f" {token}"
      if self._cleanup:
        for spaced, clean in _CLEANED_UP:
          token = token.replace(spaced, clean)
      text.append(token)
    return "".join(text)

  def content(self) -> dict[str, Any]:
    """Returns the content of a tokenizer.json."""
    content = tokenizer_json.of_word_pieces(
      self._vocab,
      self.normalization._asdict(),
      [{"id": index, **token.settings()} for index, token in self.added.items()],
      self._pieces.unk_token,
      self._pieces.max_chars,
      self._cleanup,
    )
    return {**content, "post_processor": self.template.content()}

  def save_vocabulary(self, folder: str, prefix: str) -> tuple[str, ...]:
    """Writes vocab.txt, and returns its path."""
    path = os.path.join(folder, f"{prefix}vocab.txt")
    write_tokens(path, sorted(self._vocab, key=self._vocab.__getitem__))
    return (path,)

  @classmethod
  def of(cls, content: Mapping[str, Any]) -> "WordPieceBackend | None":
    """Reads the content of a tokenizer.json; None if it asks for other steps than ours."""
    model, decoder = content["model"], content.get("decoder") or {}
    stated = tokenizer_settings.of_content(content)
    has_our_decoder = (decoder.get("type"), decoder.get("prefix")) == ("WordPiece", PREFIX)
    if stated is None or stated.refusal or not has_our_decoder:
      return None
    normalization = Normalization(
      stated.tokenize_chinese_chars, stated.strip_accents, stated.do_lower_case is not False
    )
    backend = cls(
      model["vocab"],
      normalization,
      model.get("unk_token", "[UNK]"),
      model.get("max_input_chars_per_word", MAX_WORD_CHARS),
      decoder.get("cleanup", True),
    )
    for token in content.get("added_tokens", []):  # with the ids that the file says
      backend._note(token["id"], AddedToken.of(token))
    backend._find()
    return backend


class LibraryBackend(_Saving):
  """Whatever the library `tokenizers` can do.

  Attributes:
    library: its `Tokenizer`.
    template: see `Backend`.
  """

  def __init__(self, content: Mapping[str, Any], needed_for: str):
    """Reads the content of a tokenizer.json.

    Args:
      content: the dictionary.
      needed_for: what needs the library, for the message.

    Raises:
      MissingExtraError: the library is not installed.
      ValueError: it does not read the content.
    """
    with installation.extra("roberta", needed_for):
      import tokenizers
    # What it says of special tokens is for the template.
    self.template = Template()
    text = json.dumps({**content, "post_processor": None}, ensure_ascii=False)
    try:
      self.library = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # of the library, which has no class of its own
      raise ValueError(f"{needed_for}: the library tokenizers does not read it: {error}") from None
    self.library.no_truncation()
    self.library.no_padding()

  @property
  def normalizer(self) -> Any:
    """The library's normalizer; None without one."""
    return self.library.normalizer

  @property
  def pre_tokenizer(self) -> Any:
    """The library's, which cuts normalized text into words; may be replaced."""
    return self.library.pre_tokenizer

  @pre_tokenizer.setter
  def pre_tokenizer(self, value: Any) -> None:
    self.library.pre_tokenizer = value

  @property
  def post_processor(self) -> Any:
    """The library's, of the template, which does not change with it."""
    import tokenizers

    model = {"type": "BPE", "vocab": {}, "merges": []}
    content = {"version": "1.0", "added_tokens": [], "model": model}
    content["post_processor"] = self.template.content()
    return tokenizers.Tokenizer.from_str(json.dumps(content)).post_processor

  def set_prefix_space(self, is_wanted: bool) -> None:
    """Has a byte-level BPE put a space before texts, or not."""
    splitter = self.library.pre_tokenizer
    state = json.loads(splitter.__getstate__()) if splitter is not None else {}
    if state.get("add_prefix_space", is_wanted) != is_wanted:
      import tokenizers

      self.library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=is_wanted, use_regex=state.get("use_regex", True)
      )

  @property
  def added(self) -> dict[int, AddedToken]:
    """Id -> added token, by id."""
    found = self.library.get_added_tokens_decoder()
    return {index: AddedToken.of(token) for index, token in sorted(found.items())}

  @property
  def base_vocab(self) -> dict[str, int]:
    """Token -> id, without added tokens."""
    return self.library.get_vocab(with_added_tokens=False)

  @property
  def base_size(self) -> int:
    """Number of tokens, without added ones, even if two are spelled alike."""
    return self.library.get_vocab_size(with_added_tokens=False)

  def add(self, tokens: Iterable[AddedToken]) -> int:
    """Adds tokens that stay whole, and counts those that are new among added ones."""
    import tokenizers

    return self.library.add_tokens([tokenizers.AddedToken(**each.settings()) for each in tokens])

  def token_to_id(self, token: str) -> int | None:
    """Returns the id of a token."""
    return self.library.token_to_id(token)

  def id_to_token(self, index: int) -> str | None:
    """Returns the token of an id."""
    return self.library.id_to_token(index) if index >= 0 else None

  def encode(self, text: str | Sequence[str], split_special_tokens: bool = False) -> Pieces:
    """Splits a text, or words that each are a text, into tokens."""
    with self._splitting(split_special_tokens):
      if isinstance(text, str):
        found = self.library.encode(_valid(text), add_special_tokens=False)
      else:
        found = self.library.encode(
          list(map(_valid, text)), is_pretokenized=True, add_special_tokens=False
        )
    return Pieces(found.ids, lambda: (found.tokens, found.offsets, found.word_ids))

  @contextlib.contextmanager
  def _splitting(self, is_on: bool):
    if self.library.encode_special_tokens != is_on:
      self.library.encode_special_tokens = is_on
    yield

  def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
    """Joins ids to a text; ids without a token are left out."""
    return self.library.decode(list(ids), skip_special_tokens=skip_special_tokens)

  def decode_tokens(self, tokens: Sequence[str]) -> str:
    """Joins tokens to a text."""
    decoder = self.library.decoder
    return decoder.decode(list(tokens)) if decoder is not None else " ".join(tokens)

  def content(self) -> dict[str, Any]:
    """Returns the content of a tokenizer.json."""
    return {**json.loads(self.library.to_str()), "post_processor": self.template.content()}

  def save_vocabulary(self, folder: str, prefix: str) -> tuple[str, ...]:
    """Writes the files of the vocabulary, and returns their paths."""
    return tuple(self.library.model.save(folder, prefix.removesuffix("-") or None))


def _valid(text: str) -> str:
  return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def write_content(path: str, content: Mapping[str, Any], pretty: bool = True) -> None:
  """Writes a tokenizer.json, indented if `pretty`."""
  indent = 2 if pretty else None
  atomic_files.write_text(path, json.dumps(content, indent=indent, ensure_ascii=False))
