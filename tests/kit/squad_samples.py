"""A small vocabulary for SQuAD, and what its recorded questions consist of."""

from typing import Any, NamedTuple

from bert.tasks import squad_features
from bert.tokenization import FullTokenizer

VERSIONS = {"1.1": False, "2.0": True}  # version -> whether questions may have no answer

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PIECES = ["the", "man", "went", "to", "store", "bought", "##s", "japan", "japanese", "smith"]
VOCAB = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, "'", ",", ".", "?", "(", ")", "-"),
  *("##" + letter for letter in LETTERS if letter != "s"),
  *PIECES,
]


class Result(NamedTuple):
  """What the model gives for a window."""

  unique_id: int
  start_logits: Any
  end_logits: Any


class Golden(NamedTuple):
  """Questions that the original was recorded with."""

  folder: Any
  version: str
  examples: list
  features: list


def features_of(examples, tokenizer, lengths=(192, 64, 32), is_training=False) -> list:
  """The windows of questions; `lengths` are of sequence, stride and question."""
  features = []
  squad_features.convert_examples_to_features(
    examples, tokenizer, *lengths, is_training, features.append
  )
  return features


def tokenizer_of(text, folder) -> FullTokenizer:
  """One whose tokens are the characters of a text, and those that continue a word."""
  letters = sorted({*text} - {" "})
  pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{char}" for char in letters)]
  path = folder / "vocab.txt"
  path.write_text("\n".join(pieces), encoding="utf-8")
  return FullTokenizer(str(path), do_lower_case=False)
