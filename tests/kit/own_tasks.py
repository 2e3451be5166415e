"""Tasks of a user's own: that of `stars.py`, and the two that docs/extending.md shows.

with own_tasks.loaded("relations"):
  own_tasks.script("relations").run_well(**own_tasks.write(folder, "relations"), do_train=True)
"""

import contextlib
import json
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from bert.fine_tuning import engine
from bert.tasks import kinds
from tests.kit import tiny_bert
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script

FILES = {
  "stars": ROOT / "tests" / "kit" / "stars.py",
  "relations": ROOT / "examples" / "relations.py",
  "token_scores": ROOT / "examples" / "token_scores.py",
}
MORE = {"two_heads": ROOT / "examples" / "two_heads.py"}
# Texts as their models take them: those of the rows 1 and 0.
ITEMS = {
  "stars": ["it was good film", "it was bad film"],
  "relations": ["it was @ good @ it # film #", "it was @ film @ it # bad #"],
  "token_scores": ["it was good film", "it was bad film"],
}
HEADLINES = {"stars": "eval_close", "relations": "eval_accuracy", "token_scores": "eval_pearson"}


@contextlib.contextmanager
def loaded(*names: str) -> Iterator[None]:
  """Within the block these tasks are registered, as if `--plugin` named their files."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv(kinds.PLUGINS, "")
    patch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    patch.setattr(kinds, "_FILES", dict(kinds._FILES))
    kinds.load_plugins(*(str({**FILES, **MORE}[name]) for name in names))
    yield
    for name in names:
      del sys.modules[name]


def script(name: str) -> Script:
  """A registered task as a script, to be run in this process."""
  task = kinds.find(name).task_class()
  module: Any = types.ModuleType(name)
  module.main, module.define_flags = engine.main_of(task), engine.flags_of(task)
  return Script(module)


def rows(name: str) -> Iterator[dict[str, Any]]:
  """12 examples that a tiny model learns in seconds."""
  for i in range(12):
    word = "good" if i % 2 else "bad"
    if name == "stars":
      yield {"id": str(i), "text_a": f"it was {word} film", "text_b": "", "stars": "15"[i % 2]}
    elif name == "relations":
      first, second = (word, "film") if i % 2 else ("film", word)
      text = f"it was <e1>{first}</e1> it <e2>{second}</e2>"
      yield {"text": text, "label": "quality-thing" if i % 2 else "thing-quality"}
    elif name == "two_heads":
      yield {"text": f"it was {word} film", "label": word, "score": 4.5 if i % 2 else 1}
    else:
      scores = [0.0, 0.0, 2.0 if i % 2 else -2.0, 1, *[0.0] * (i // 10 * 4)]  # two are longer
      yield {"words": ["it", "was", word, "film", *["it"] * (i // 10 * 4)], "scores": scores}


def write(folder: pathlib.Path, name: str) -> dict[str, Any]:
  """Writes a model and train, dev and test of a task; returns the flags of a run."""
  for split in ("train", "dev", "test"):
    lines = "".join(json.dumps(row) + "\n" for row in rows(name))
    (folder / f"{split}.jsonl").write_text(lines)
  words = ["good", "bad", "film", "it", "was", "@", "#"]
  return {
    **tiny_bert.write(folder, [*tiny_bert.SPECIAL_TOKENS, *words]),
    **{"data_dir": folder, "max_seq_length": 16, "train_batch_size": 4},
    **{"learning_rate": 0.005, "num_train_epochs": 40.0},
  }
