"""Documents of letters, a word piece each, that are read through windows."""

import json
import pathlib
from collections.abc import Iterator

import numpy as np

from bert import run_classifier
from bert.tasks.classification import InputExample, convert_single_example
from bert.tasks.windows import WindowOptions, WindowReader
from bert.tokenization import FullTokenizer
from tests.kit import tiny_bert

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, "good", "bad"]
CLS, SEP = VOCAB.index("[CLS]"), VOCAB.index("[SEP]")
CONFIG = {
  **tiny_bert.sizes(len(VOCAB), 16, 1, 16, 16),
  "initializer_range": 0.5,  # so that logits differ
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
}


def write_model_files(folder: pathlib.Path) -> pathlib.Path:
  """Writes vocab.txt and bert_config.json; returns the folder."""
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
  (folder / "bert_config.json").write_text(json.dumps(CONFIG))
  return folder


def tokenizer_in(folder: pathlib.Path) -> FullTokenizer:
  """The tokenizer of a model whose files it writes into the folder."""
  return FullTokenizer(str(write_model_files(folder) / "vocab.txt"))


def words(count: int, first: int = 0) -> str:
  """Words of a piece each, from the letter with that number on."""
  return " ".join(LETTERS[(first + i) % 26] for i in range(count))


def windows_of(tokenizer, text_a, text_b=None, length=8, stride=3, max_windows=4):
  """The first window's features, and what `windows_of` makes of the example."""
  reader = WindowReader(tokenizer, WindowOptions(stride, max_windows))
  example = InputExample("x", text_a, text_b, "0")
  first = convert_single_example(9, example, ["0"], length, reader)
  return first, reader.windows_of(example, first), reader


def letters_of(rows) -> list[str]:
  """Windows as text: `.` for padding, `|` for [SEP], without [CLS]."""
  shown = {0: ".", SEP: "|"}
  assert all(row[0] == CLS for row in rows)
  return ["".join(shown.get(i, VOCAB[i][0]) for i in row[1:]) for row in rows.tolist()]


def random_pairs(count: int) -> Iterator[tuple[str, str | None]]:
  """Texts and pairs of up to 29 words each."""
  rng = np.random.default_rng(4)
  for _ in range(count):
    length_a, length_b = rng.integers(0, 30, 2)
    yield words(length_a), words(length_b, 7) if rng.random() < 0.7 else None


def write_records(folder: pathlib.Path, tokenizer) -> str:
  """A record file with documents of 1, 3 and 2 windows of 6 pieces; returns its path."""
  texts = [words(4), words(12), words(8)]
  examples = [InputExample(str(i), text, None, str(i % 2)) for i, text in enumerate(texts)]
  path = str(folder / "long.tf_record")
  run_classifier.file_based_convert_examples_to_features(
    examples, ["0", "1"], 8, tokenizer, path, windows=WindowOptions(3, 5)
  )
  return path


def batches(path: str, batch_size: int, pad: bool = False) -> list:
  """The batches of `write_records`."""
  input_fn = run_classifier.file_based_input_fn_builder(
    path, 8, False, False, pad_to_max_length=pad, windows=WindowOptions(3, 5)
  )
  return list(input_fn({"batch_size": batch_size}))
