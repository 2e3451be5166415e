"""Text to the pieces of a sentencepiece model and back: ALBERT's tokenizer.

  tokenizer = SentencePieceTokenizer("30k-clean.model", do_lower_case=True)
  tokenizer.tokenize("Où est-il?")               # ["▁ou", "▁est", "-", "il", "?"]

It is called like `tokenization.FullTokenizer`. A text takes these steps:

  1. `preprocess_text`: one space between words, compatibility decomposition (NFKD) without the
     accents, and lower case if asked for. ALBERT's scripts call it, not its tokenizer;
     `preprocess=False` leaves it out. It never replaces quotes.
  2. The sentencepiece model: its own normalization, and "▁" for the space before a word.
  3. A piece that ends in a digit and a comma is split once more: the number without its comma,
     then the comma.

What the original does under Python 3, and therefore this module as well (measured with TensorFlow
1.15.5 and Python 3.7):

  * Step 3 encodes the number as a text of its own, which gives it a "▁" that it did not have:
    "2008," becomes "▁200", "▁8", ",". The code that should remove the new "▁" compares `str` and
    `bytes` and so never runs. Under Python 2, and in the transformers library, it does: "▁200",
    "8", ",".
  * The pieces of that number are `bytes`, and whole-word masking fails on one without a "▁". Here
    all pieces are `str`.
  * A character that the model does not know keeps its spelling as a piece; its id is that of
    "<unk>". The id of any piece is found by its spelling, so unknown characters that spell
    "[CLS]" have the id of [CLS].

The library `sentencepiece` is the extra `albert`. It is imported with the first tokenizer.
"""

import itertools
import os
import re
from collections.abc import Iterator, Sequence

from bert.io import installation, vocabulary_kind
from bert.text import offsets, vocabulary_file
from bert.text.characters import WITHOUT_ACCENTS, convert_to_unicode, convert_to_utf8
from bert.text.sequence_layout import Layout
from bert.text.tokenizer import Tokenizer
from bert.text.vocabulary_file import VocabularyError

SPACE = "▁"  # U+2581 in a piece: a space before it
_NEEDED_TOKENS = ("[CLS]", "[SEP]")
_OTHER_NAMES = {"[UNK]": "<unk>", "[PAD]": "<pad>"}  # BERT's name -> ALBERT's


def preprocess_text(inputs: str, remove_space: bool = True, lower: bool = False) -> str:
  """Applies ALBERT's `preprocess_text`: NFKD without accents.

  Args:
    inputs: the text.
    remove_space: no space at the ends, and one space between words.
    lower: lower case, too.

  Example:
    >>> preprocess_text("  Où\\t est-il ﬁni? ", lower=True)
    'ou est-il fini?'
  """
  text = " ".join(inputs.split()) if remove_space else inputs
  if not text.isascii():
    text = text.translate(WITHOUT_ACCENTS)
  return text.lower() if lower else text


class SentencePieceTokenizer(Tokenizer):
  """Text to the pieces of a sentencepiece model, with the methods of `FullTokenizer`.

  Attributes:
    vocab: piece -> id.
    inv_vocab: id -> piece.
    vocab_file: path of the model.
    do_lower_case: whether text is lower-cased.
    special_tokens: tokens that stay whole in text.
    unk_token: the piece of unknown characters, "<unk>".
    model: the file's bytes, a serialized `sentencepiece.ModelProto`.
    processor: the library's `SentencePieceProcessor`.
  """

  def __init__(
    self,
    model_file: str | os.PathLike,
    do_lower_case: bool = True,
    special_tokens: Sequence[str] = (),
    preprocess: bool = True,
  ):
    """Reads the model.

    Args:
      model_file: `30k-clean.model` of a released ALBERT, `spiece.model` of a transformers folder,
        or any other with the pieces [CLS] and [SEP].
      do_lower_case: True for uncased models.
      special_tokens: such as `("[MASK]",)`: exact occurrences in a text stay one token. By default
        there are none, as in the original. [UNK] and [PAD] mean <unk> and <pad>.
      preprocess: False takes texts as they are, as ALBERT's own `FullTokenizer` does;
        `do_lower_case` then changes nothing.

    Raises:
      VocabularyError: the file cannot be used, or lacks one of the required tokens.
      MissingExtraError: the library is not installed.
    """
    self.model = read_model(model_file)
    self.processor = _processor(self.model, model_file)
    size = self.processor.get_piece_size()
    vocab = {self.processor.id_to_piece(index): index for index in range(size)}
    if not isinstance(special_tokens, str):
      special_tokens = [_OTHER_NAMES.get(token, token) for token in special_tokens]
    super().__init__(model_file, vocab, special_tokens)
    self.do_lower_case = do_lower_case
    self.preprocess = preprocess
    self.unk_id = self.processor.unk_id()
    self.unk_token = self.inv_vocab[self.unk_id]
    self.layout = Layout(pad="<pad>", unk=self.unk_token)
    missing = [token for token in _NEEDED_TOKENS if token not in vocab]
    if missing:
      raise VocabularyError(
        f"{model_file} lacks the pieces {missing}: it is no model of ALBERT's, but perhaps of "
        "XLM-R's or T5's, and this tokenizer is not supported. Train one with "
        "--control_symbols=[CLS],[SEP],[MASK]."
      )

  @classmethod
  def read_vocab(cls, model_file: str | os.PathLike) -> dict[str, int]:
    """Reads piece -> id; raises a `VocabularyError` if the file cannot be used."""
    return cls(model_file).vocab

  def prepared(self, text: str | bytes) -> str:
    """Returns the text that the sentencepiece model reads: step 1."""
    text = convert_to_utf8(text)
    return preprocess_text(text, lower=self.do_lower_case) if self.preprocess else text

  def tokenize(self, text: str | bytes) -> list[str]:
    """Splits `text` into tokens, without [CLS] and [SEP]."""
    pieces: list[str] = []
    for chunk in self.split_at_special_tokens(convert_to_unicode(text)):
      is_special = chunk in self.special_tokens
      pieces += [chunk] if is_special else self._pieces(self.prepared(chunk))
    return pieces

  def tokenize_with_offsets(self, text: str | bytes) -> list[offsets.TokenSpan]:
    """Splits `text` into tokens with their places in it: for tagging, and for quoting answers.

    `[t.token for t in tokenize_with_offsets(text)]` always equals `tokenize(text)`. Spaces belong
    to no piece, so a piece "▁" alone has an empty span before the character that follows. A dropped
    accent belongs to the piece it stood on; pieces of one character all have its span. Word ids
    number the words of `text.split()`.
    """
    return offsets.locate_tokens(self, convert_to_unicode(text), _locate_pieces)

  def _pieces(self, text: str) -> list[str]:
    pieces: list[str] = []
    for piece in self.processor.encode(text, out_type=str):
      pieces += self.parts(piece)
    return pieces

  def parts(self, piece: str) -> list[str]:
    """Splits a number and its comma (step 3); any other token stays alone."""
    if piece[-1:] != "," or not piece[-2:-1].isdigit():
      return [piece]
    return [*self.processor.encode(piece[:-1].replace(SPACE, ""), out_type=str), ","]


# ---------------------------------------------------------------------------------------------
# The file.


def read_model(model_file: str | os.PathLike) -> bytes:
  """Reads the bytes of a sentencepiece model; VocabularyError if there is none."""
  data = vocabulary_file.read_bytes(model_file, "sentencepiece model", "spiece.model")
  if not vocabulary_kind.is_model(data):
    raise VocabularyError(
      f"{model_file} is not a sentencepiece model. Give the 30k-clean.model or spiece.model that "
      "came with the checkpoint."
    )
  return data


def _processor(model: bytes, path: str | os.PathLike):
  with installation.extra("albert", f"The sentencepiece model {path}"):
    import sentencepiece
  processor = sentencepiece.SentencePieceProcessor()
  try:
    processor.LoadFromSerializedProto(model)
  except RuntimeError:
    raise VocabularyError(
      f"{path} is damaged: its {len(model)} bytes are not a complete sentencepiece model. "
      "Fetch it again."
    ) from None
  return processor


# ---------------------------------------------------------------------------------------------
# Offsets. The library tells which bytes of its input each piece covers; here they are followed back
# through NFKD, dropped accents and lower case.

_Located = tuple[str, int, int]  # token, start and end (exclusive)


def _without_accents(char: str) -> str:
  return WITHOUT_ACCENTS[ord(char)]


def _prepared_with_spans(tokenizer, text: str) -> tuple[str, list[offsets.Span]]:
  """Returns `tokenizer.prepared(text)`, and for each of its characters the span it came from."""
  if not tokenizer.preprocess:
    return tokenizer.prepared(text), [(index, index + 1) for index in range(len(text))]
  spans: list[offsets.Span] = []
  end = 0  # of the word before
  for word in re.finditer(r"\S+", text):
    if end:
      spans.append((end, word.start()))
    end = word.end()
    sources = [(index, index + 1) for index in range(word.start(), end)]
    spans += offsets.strip_with_spans(_without_accents, word.group(), sources)[1]
  prepared = tokenizer.prepared(text)
  if len(prepared) != len(spans):
    raise ValueError(f"Offsets cannot be followed through the preparation of {text!r:.80}.")
  return prepared, spans


def _locate_pieces(tokenizer, text: str) -> Iterator[_Located]:
  """Finds the tokens of a text without special tokens, with start and end in it.

  A piece "▁" alone has an empty span before the character that follows.
  """
  prepared, spans = _prepared_with_spans(tokenizer, text)
  for piece, start, end in _pieces_in_prepared(tokenizer, prepared):
    for part, first, last in _of_parts(piece, tokenizer.parts(piece), start, end):
      yield part, *_span(spans, first, last, len(text))


def _span(spans: list[offsets.Span], first: int, last: int, length: int) -> offsets.Span:
  if first == last:
    start = spans[first][0] if first < len(spans) else length
    return start, start
  return spans[first][0], max(end for _, end in spans[first:last])


def _pieces_in_prepared(tokenizer, prepared: str) -> Iterator[_Located]:
  """Finds the library's tokens, with the characters of its input but for spaces around them."""
  from sentencepiece import sentencepiece_pb2

  found = sentencepiece_pb2.SentencePieceText()  # type: ignore[attr-defined] # made at import
  found.ParseFromString(tokenizer.processor.encode(prepared, out_type="serialized_proto"))
  first_bytes = itertools.accumulate((len(char.encode()) for char in prepared), initial=0)
  character_at = {byte: index for index, byte in enumerate(first_bytes)}
  for each in found.pieces:
    piece, start, end = each.piece, character_at[each.begin], character_at[each.end]
    while start < end and prepared[start].isspace():
      start += 1
    while end > start and prepared[end - 1].isspace():
      end -= 1
    if start == end:  # "▁", or one of several pieces of the character that follows
      while start < len(prepared) and prepared[start].isspace():
        start += 1
      is_part = bool(_content(piece)) and start < len(prepared)
      end = start + 1 if is_part else start
    yield piece, start, end


def _content(piece: str) -> str:
  return piece.replace("▁", "")


def _of_parts(piece: str, parts: list[str], start: int, end: int) -> list[_Located]:
  """Returns spans of the parts of a piece, which covers `start` to `end`.

  Example:
    >>> _of_parts("08,", ["▁0", "8", ","], 5, 8)
    [('▁0', 5, 6), ('8', 6, 7), (',', 7, 8)]
  """
  contents = list(map(_content, parts))
  if not end - start == len(_content(piece)) == sum(map(len, contents)):
    return [(part, start, end) for part in parts]  # normalization changed it
  located = []
  for part, content in zip(parts, contents, strict=True):
    located.append((part, start, start + len(content)))
    start += len(content)
  return located
