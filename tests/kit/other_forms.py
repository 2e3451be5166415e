"""A model in other programs' forms: transformers 5's directory, and conversions there and back.

other_forms.write({"transformers": ..., "transformers 5": ..., ...}, stripped="run")
"""

import pathlib
import shutil
from collections.abc import Mapping

from tokenizers import BertWordPieceTokenizer

from bert import convert_checkpoint
from tests.kit.script_runs import Script


def write(found: Mapping[str, pathlib.Path], stripped: str) -> None:
  """Writes the directories `transformers 5`, `converted`, `stripped` and `converted back`.

  Args:
    found: form -> its directory; that of `transformers`, and the one to strip, are there.
    stripped: the form to strip.
  """
  # As transformers 5 writes a tokenizer: without vocab.txt.
  shutil.copytree(found["transformers"], found["transformers 5"])
  vocab_file = found["transformers 5"] / "vocab.txt"
  tokenizer = BertWordPieceTokenizer(str(vocab_file), lowercase=True)
  tokenizer.save(str(found["transformers 5"] / "tokenizer.json"))
  vocab_file.unlink()
  for command, source, target in [
    ("from_transformers", "transformers", "converted"),
    ("strip", stripped, "stripped"),
    ("to_transformers", "stripped", "converted back"),
  ]:
    flags = {"init_checkpoint": found[source], "output_dir": found[target]}
    Script(convert_checkpoint).run_well(f"--command={command}", **flags)
