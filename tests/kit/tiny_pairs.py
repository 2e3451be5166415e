"""Pairs of texts that are about the same kind of things or not, and the files that hold them."""

import csv
import json
import pathlib
import random

from tests.kit import tiny_bert

FRUIT, TOOLS = ["apple", "pear", "plum"], ["hammer", "saw", "nail"]
VOCAB = [*tiny_bert.SPECIAL_TOKENS, "a", "the", "she", "takes", ".", *FRUIT, *TOOLS]

SIZES = {"hidden_size": 16, "intermediate_size": 16}
CONFIG = tiny_bert.config(len(VOCAB), **SIZES)


def _text(rng, things) -> str:
  words = [rng.choice(["a", "the", "she takes the"]), rng.choice(things), "."]
  return " ".join(words[: rng.choice([2, 3])])


def pairs(count, seed, top=1.0) -> list[dict]:
  """Rows with a score of `top` for things of the same kind, and 0 for others."""
  rng = random.Random(seed)
  rows = []
  for i in range(count):
    kinds = [FRUIT, TOOLS] if rng.random() < 0.5 else [TOOLS, FRUIT]
    is_same = i % 2 == 0
    a, b = _text(rng, kinds[0]), _text(rng, kinds[0 if is_same else 1])
    rows.append({"text_a": a, "text_b": b, "score": top * is_same})
  return rows


def similar(count, seed) -> list[dict]:
  """Rows of two texts about one thing, and one about another."""
  rng = random.Random(seed)
  rows = []
  for _ in range(count):
    one, other = rng.sample(FRUIT + TOOLS, 2)
    rows.append({n: _text(rng, [t]) for n, t in (("text_a", one), ("text_b", one))})
    rows[-1]["negative"] = _text(rng, [other])
  return rows


def write(path: pathlib.Path, rows: list[dict], columns=None) -> pathlib.Path:
  """Writes `.csv`, `.tsv` or `.jsonl`, by the name; with some columns only, if so wished."""
  path.parent.mkdir(parents=True, exist_ok=True)
  columns = columns or list(rows[0])
  rows = [{name: row[name] for name in columns} for row in rows]
  if path.suffix == ".jsonl":
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
  with open(path, "w", newline="", encoding="utf-8") as file:
    writer = csv.DictWriter(file, columns, delimiter="," if path.suffix == ".csv" else "\t")
    writer.writeheader()
    writer.writerows(rows)
  return path
