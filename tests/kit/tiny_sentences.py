"""Sentences to classify, small enough to learn in twenty steps, and the files that hold them."""

from tests.kit import tiny_bert

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

WORDS = ["good", "bad", "film", "the", "was"]

VOCAB = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, '"', ",", "."),
  *("##" + letter for letter in LETTERS),
  *WORDS,
]

CONFIG = tiny_bert.config(len(VOCAB))


def write(folder, name, *lines) -> None:
  path = folder / name
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def write_rows(folder, name, *rows) -> None:
  write(folder, name, *("\t".join(map(str, row)) for row in rows))


def texts(count: int):
  """(good?, text, text of another length) of each example; the first text decides."""
  return [
    (i % 2, f"the film was {'good' if i % 2 else 'bad'}", "the film " * (i % 3) + LETTERS[i])
    for i in range(count)
  ]


SIZES = {"train": 20, "dev": 10, "test": 6}


def write_mrpc(folder, sizes=None) -> None:
  header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
  for split, size in (sizes or SIZES).items():
    rows = [(label, i, i, a, b) for i, (label, a, b) in enumerate(texts(size))]
    write_rows(folder, f"{split}.tsv", header, *rows)
