"""Our tokenizer and the original's, made alike: a vocabulary and settings in, tokens out."""

import importlib.util
import itertools
import pathlib
import sys
import types
from collections.abc import Callable, Iterable, Sequence

from bert import tokenization
from conformance.cases import Context

Tokenize = Callable[[str], list[str]]

_numbers = itertools.count()


def original_module(context: Context) -> types.ModuleType | None:
  """google-research/bert's `tokenization.py` from its clone; None if it was not cloned."""
  path = context.folder("bert") / "tokenization.py"
  name = "tokenization_of_2018"
  if name not in sys.modules and path.is_file():
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing into the clone
    try:
      spec.loader.exec_module(module)
    finally:
      sys.dont_write_bytecode = writes
    sys.modules[name] = module
  return sys.modules.get(name)


def step_by_step(
  module: types.ModuleType,
  vocab: Iterable[str],
  do_lower_case: bool,
  unk_token: str = "[UNK]",
  max_input_chars_per_word: int = 200,
) -> Tokenize:
  """Both tokenizers of a `tokenization` module in a row, as its FullTokenizer has them.

  Args:
    module: ours or the original's.
    vocab: the pieces.
    do_lower_case: see `FullTokenizer`.
    unk_token: see `WordpieceTokenizer`.
    max_input_chars_per_word: see `WordpieceTokenizer`.
  """
  basic = module.BasicTokenizer(do_lower_case=do_lower_case)
  pieces = pieces_of(module, vocab, unk_token, max_input_chars_per_word)
  return lambda text: [piece for word in basic.tokenize(text) for piece in pieces(word)]


def pieces_of(
  module: types.ModuleType,
  vocab: Iterable[str],
  unk_token: str = "[UNK]",
  max_input_chars_per_word: int = 200,
) -> Tokenize:
  """The WordpieceTokenizer of a `tokenization` module; arguments as in `step_by_step`."""
  table = {piece: number for number, piece in enumerate(vocab)}
  return module.WordpieceTokenizer(table, unk_token, max_input_chars_per_word).tokenize


def full_tokenizer(
  context: Context, vocab: Sequence[str], do_lower_case: bool, special_tokens: Sequence[str] = ()
) -> tokenization.FullTokenizer:
  """Our FullTokenizer of these pieces, whose ids are their places."""
  path = pathlib.Path(context.scratch) / f"vocab-{next(_numbers)}.txt"
  path.write_text("".join(f"{piece}\n" for piece in vocab), encoding="utf-8", newline="\n")
  return tokenization.FullTokenizer(str(path), do_lower_case, special_tokens)


def with_special_pieces(vocab: Iterable[str]) -> list[str]:
  """The pieces, and those that our FullTokenizer needs, at the end, unless they are there."""
  vocab = list(vocab)
  return vocab + [piece for piece in ("[UNK]", "[CLS]", "[SEP]") if piece not in vocab]
