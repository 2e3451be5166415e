"""A sentencepiece model as small as it gets, for tests that need no recorded one.

path = piece_model.write(folder)        # spiece.model, of ALBERT's kind
"""

import io
import pathlib

import sentencepiece

SENTENCES = ["the film of the end was good", "a bad end of the game", "the game was the film"]
# "8," is a piece that ends in a number and a comma.
SYMBOLS = ["the", "▁of", "8,", "▁200"]


def write(folder: pathlib.Path) -> pathlib.Path:
  """Trains it, which takes some hundredths of a second, and is the same each time."""
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(SENTENCES * 3),
    model_writer=model,
    vocab_size=45,
    pad_id=0,
    unk_id=1,
    bos_id=-1,
    eos_id=-1,
    control_symbols=["[CLS]", "[SEP]", "[MASK]"],
    user_defined_symbols=SYMBOLS,
    required_chars="0128,.-()",
    hard_vocab_limit=False,
    num_threads=1,
    minloglevel=2,
  )
  path = folder / "spiece.model"
  path.write_bytes(model.getvalue())
  return path
