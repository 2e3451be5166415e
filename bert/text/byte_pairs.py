"""Text to the tokens of a byte-level BPE and back: RoBERTa's tokenizer.

  tokenizer = BytePairTokenizer("roberta-base/vocab.json")       # or tokenizer.json
  tokenizer.tokenize("Unaffable!")         # ["Un", "aff", "able", "!"]
  tokenizer.tokenize_word("Unaffable")     # ["ĠUn", "aff", "able"]

It is called like `tokenization.FullTokenizer`. A text is split into words, each with the space
before it, by GPT-2's pattern; a word is its UTF-8 bytes, of which pairs are merged in the order of
the merges. Nothing is normalized or lower-cased, so any text can be restored (`decode`).

Special tokens in a text stay whole, as in transformers, and `<mask>` takes the white space on its
left. fairseq and GPT-2 know none in text: `plain=True`.

The library `tokenizers` is the extra `roberta`. It is imported with the first tokenizer.
"""

import functools
import os
from collections.abc import Iterable, Sequence

from bert.io import byte_pair_files, installation
from bert.io.byte_pair_files import CLS, MASK, PAD, SEP, UNK
from bert.text import offsets
from bert.text.characters import convert_to_utf8
from bert.text.sequence_layout import Layout
from bert.text.tokenizer import Tokenizer
from bert.text.vocabulary_file import VocabularyError

# BERT's name -> RoBERTa's
OTHER_NAMES = {"[CLS]": CLS, "[SEP]": SEP, "[PAD]": PAD, "[UNK]": UNK, "[MASK]": MASK}


def read(vocab_file: str | os.PathLike) -> byte_pair_files.BytePairs:
  """Reads a vocabulary, for which no library is needed; VocabularyError if a file is of no use."""
  try:
    return byte_pair_files.read(vocab_file)
  except ValueError as error:
    raise VocabularyError(str(error)) from None


class BytePairTokenizer(Tokenizer):
  """Text to the tokens of a byte-level BPE, with the methods of `FullTokenizer`.

  Attributes:
    vocab: token -> id; tokens are spelled as in the file, where `Ġ` is a space.
    inv_vocab: id -> token.
    vocab_file: path of the vocabulary.
    do_lower_case: False: case is always kept.
    special_tokens: tokens that stay whole in text.
    add_prefix_space: whether a space goes before the first word of a text.
    pairs: what the file contains.
  """

  do_lower_case = False

  def __init__(
    self,
    vocab_file: str | os.PathLike,
    do_lower_case: bool = False,
    special_tokens: Sequence[str] = (),
    *,
    plain: bool = False,
  ):
    """Reads the vocabulary.

    Args:
      vocab_file: `tokenizer.json`, or `vocab.json` with `merges.txt` beside it.
      do_lower_case: without effect; such models keep the case.
      special_tokens: tokens that the file must have, by BERT's names or its own; it says itself
        which tokens stay whole.
      plain: no token stays whole in text.

    Raises:
      VocabularyError: a file cannot be used, or lacks one of the required tokens.
      MissingExtraError: the library is not installed.
    """
    del do_lower_case
    self.pairs = read(vocab_file)
    if not isinstance(special_tokens, str):
      special_tokens = [OTHER_NAMES.get(token, token) for token in special_tokens]
    super().__init__(vocab_file, self.pairs.vocab, special_tokens)
    in_file = () if plain else [token["content"] for token in self.pairs.special]
    self.special_tokens = frozenset(in_file)
    self.add_prefix_space = self.pairs.add_prefix_space
    self.plain = plain
    self.layout = Layout(
      *(CLS, SEP, PAD, MASK, UNK),
      pad_id=self.vocab[PAD],
      separators=2,
      has_segments=False,
      second_stays_longer=True,
    )
    self._library = _library_tokenizer(self.pairs, plain)

  @functools.cached_property
  def _of_words(self):
    """For words that stand alone, which have a space before them."""
    if self.add_prefix_space:
      return self._library
    return _library_tokenizer(self.pairs._replace(add_prefix_space=True), self.plain)

  @staticmethod
  def read_vocab(vocab_file: str | os.PathLike) -> dict[str, int]:
    """Reads token -> id; raises a `VocabularyError` if the file cannot be used."""
    return read(vocab_file).vocab

  def tokenize(self, text: str | bytes) -> list[str]:
    """Splits `text` into tokens, without `<s>` and `</s>`."""
    return self.convert_ids_to_tokens(self.text_to_ids(text))

  def tokenize_word(self, word: str) -> list[str]:
    """See `Tokenizer`: with a space before the word, unless it begins with one."""
    found = self._of_words.encode(convert_to_utf8(word), add_special_tokens=False)
    return self.convert_ids_to_tokens(found.ids)

  def text_to_ids(self, text: str | bytes) -> list[int]:
    """See `Tokenizer`."""
    return self._library.encode(convert_to_utf8(text), add_special_tokens=False).ids

  def tokenize_with_offsets(self, text: str | bytes) -> list[offsets.TokenSpan]:
    """Splits `text` into tokens with their places in it: for tagging, and for quoting answers.

    `[t.token for t in tokenize_with_offsets(text)]` always equals `tokenize(text)`. Spaces belong
    to no token, so that of a space alone is an empty span. Tokens of the bytes of one character all
    have its span. Word ids number the words of `text.split()`.
    """
    text = convert_to_utf8(text)
    found = self._library.encode(text, add_special_tokens=False)
    # By ids: the library's `tokens` have the white space that `<mask>` takes.
    tokens, words = self.convert_ids_to_tokens(found.ids), offsets.word_ids(text)
    return [
      offsets.TokenSpan(token, start, end, words[min(start, len(text) - 1)])
      for token, (start, end) in zip(tokens, found.offsets, strict=True)
    ]

  def shown(self, token: str) -> str:
    """Writes a token as text, with the space that it begins with."""
    return token if token in self.special_tokens else byte_pair_files.shown(token)

  def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
    """Decodes ids; bytes that are no characters become U+FFFD."""
    return self._library.decode(list(ids), skip_special_tokens=skip_special_tokens)


def _library_tokenizer(pairs: byte_pair_files.BytePairs, plain: bool):
  with installation.extra("roberta", f"The byte-level BPE {pairs.path}"):
    import tokenizers
  return tokenizers.Tokenizer.from_str(pairs.to_json(whole_tokens=not plain))
