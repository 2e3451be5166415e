"""Questions of four choices, small enough to learn, and the files that hold them."""

import csv
import json
import pathlib
import random

from tests.kit import tiny_bert

FRUIT, TOOLS = ["apple", "pear", "plum"], ["hammer", "saw", "nail"]

OTHERS = ["she", "takes", "and", "eats", "uses", "it", "a", "the", "."]

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *OTHERS, *FRUIT, *TOOLS]

SIZES = {"hidden_size": 32, "intermediate_size": 32}
CONFIG = tiny_bert.config(len(VOCAB), **SIZES)


def questions(count, seed, num_choices=4, fewer=False) -> list[dict]:
  """Which of several things is eaten? Of some questions there are fewer choices, if so wished."""
  rng = random.Random(seed)
  found = []
  for i in range(count):
    size = num_choices - (i % 2 if fewer else 0)
    label = rng.randrange(size)
    endings = [
      f"{rng.choice(['a', 'the', 'a a'])} {rng.choice(FRUIT if j == label else TOOLS)} ."
      for j in range(size)
    ]
    row = {"video-id": f"v{i}", "sent1": "she takes a plum .", "sent2": "she eats"}
    row |= {f"ending{j}": ending for j, ending in enumerate(endings)}
    found.append({**row, "label": label})
  return found


def write_csv(path, rows, columns=None) -> pathlib.Path:
  path.parent.mkdir(parents=True, exist_ok=True)
  columns = columns or max(map(list, rows), key=len)
  with open(path, "w", newline="", encoding="utf-8") as file:
    writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
  return path


def write_jsonl(path, rows) -> pathlib.Path:
  path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
  return path
