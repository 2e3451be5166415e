"""A small vocabulary of a byte-level BPE, and what RoBERTa's tokenizer recorded."""

import gzip
import json
import pathlib

from bert.io import byte_pair_files

# Merged in this order.
MERGES = [
  *[("Ġ", "t"), ("h", "e"), ("Ġ", "a"), ("r", "e"), ("i", "n"), ("Ġt", "he"), ("o", "n")],
  *[("Ġ", "w"), ("a", "t"), ("n", "d"), ("Ġa", "nd"), ("Ġ", "("), ("l", "l"), ("e", "ll")],
  *[("H", "ell"), ("Hell", "o"), ("Ã", "©"), (".", "."), ("..", "."), ("Ġ", "Ġ"), ("a", "a")],
]


def vocabulary(merges=MERGES) -> dict[str, int]:
  """In the order of roberta-base: special tokens, bytes, merges, the mask."""
  special = [byte_pair_files.CLS, byte_pair_files.PAD, byte_pair_files.SEP, byte_pair_files.UNK]
  tokens = [*special, *byte_pair_files.byte_characters(), *map("".join, merges)]
  return {token: index for index, token in enumerate([*tokens, byte_pair_files.MASK])}


def write(folder: pathlib.Path, merges=MERGES) -> str:
  """Writes `vocab.json` and `merges.txt`; returns the path of the former."""
  path = folder / byte_pair_files.VOCABULARY
  path.write_text(json.dumps(vocabulary(merges)))
  lines = [f"{first} {second}\n" for first, second in merges]
  (folder / byte_pair_files.MERGES).write_text("#version: 0.2\n" + "".join(lines))
  return str(path)


def recorded(golden_dir: pathlib.Path, name: str) -> list[dict]:
  """The lines of `../shared/golden/roberta/NAME`: see its README."""
  path = golden_dir / "roberta" / name
  data = path.read_bytes()
  lines = (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()
  return list(map(json.loads, lines))
