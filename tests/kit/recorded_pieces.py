"""What ALBERT's own tokenizer made of thousands of texts (`../shared/golden/albert`)."""

import gzip
import json
import pathlib


def recorded_pieces(golden_dir: pathlib.Path, name: str) -> list[dict]:
  """The recorded texts of the model `<name>_spm.model`: "tiny" or "commas".

  Keys with `_lower` and `_cased` are of the text after `preprocess_text`, and are left out where
  that changed nothing.
  """
  path = golden_dir / "albert" / f"tokenization_{name}_spm.jsonl.gz"
  with gzip.open(path, "rt", encoding="utf-8") as lines:
    return [json.loads(line) for line in lines]
