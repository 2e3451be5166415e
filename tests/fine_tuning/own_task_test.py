"""Tasks that only a test and the examples know, through all that ours go through.

`stars` lies in tests/kit, the other two are what docs/extending.md shows.
"""

import json
import os
import subprocess
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest

from bert import predict
from bert.fine_tuning import engine
from bert.predicting.predictor import Predictor
from bert.tasks import kinds
from tests.kit import tiny_bert
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script, assert_same_tensors, results_in, table

WORDS = ["good", "bad", "film", "it", "was", "@", "#"]
FILES = {
  "stars": ROOT / "tests" / "kit" / "stars.py",
  "relations": ROOT / "examples" / "relations.py",
  "token_scores": ROOT / "examples" / "token_scores.py",
}
HEADLINES = {"stars": "eval_close", "relations": "eval_accuracy", "token_scores": "eval_pearson"}
ITEMS = {
  "stars": ["it was good film", "it was bad film"],
  "relations": ["it was @ good @ it # film #", "it was @ film @ it # bad #"],
  "token_scores": ["it was good film", "it was bad film"],
}


def _rows(name: str):
  """12 examples, which a tiny model learns in seconds: column -> value."""
  for i in range(12):
    word = "good" if i % 2 else "bad"
    if name == "stars":
      yield {
        "id": str(i),
        "text_a": f"it was {word} film",
        "text_b": "",
        "stars": str(1 + i % 2 * 4),
      }
    elif name == "relations":
      first, second = (word, "film") if i % 2 else ("film", word)
      text = f"it was <e1>{first}</e1> it <e2>{second}</e2>"
      yield {"text": text, "label": "quality-thing" if i % 2 else "thing-quality"}
    else:
      scores = [0.0, 0.0, 2.0 if i % 2 else -2.0, 1]
      yield {"words": ["it", "was", word, "film"], "scores": scores}


class Own(NamedTuple):
  """A task of one's own.

  Attributes:
    name: of the task.
    script: its file as a script.
    flags: of a run.
  """

  name: str
  script: Script
  flags: dict


@pytest.fixture(scope="module", params=FILES)
def own(request, tmp_path_factory):
  name, folder = request.param, tmp_path_factory.mktemp("data")
  for split in ("train", "dev", "test"):
    rows = "".join(json.dumps(row) + "\n" for row in _rows(name))
    (folder / f"{split}.jsonl").write_text(rows)
  flags = {
    **tiny_bert.write(folder, [*tiny_bert.SPECIAL_TOKENS, *WORDS]),
    **{"data_dir": folder, "max_seq_length": 16, "train_batch_size": 4},
    **{"learning_rate": 0.005, "num_train_epochs": 40.0},
  }
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv(kinds.PLUGINS, "")
    patch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    patch.setattr(kinds, "_FILES", dict(kinds._FILES))
    kinds.load_plugins(str(FILES[name]))
    task = kinds.find(name).task_class()
    module = types.ModuleType(name)
    module.main, module.define_flags = engine.main_of(task), task.define_flags
    yield Own(name, Script(module), flags)
    sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def trained(own, tmp_path_factory):
  out = tmp_path_factory.mktemp("out") / own.name
  own.script.run_well(**own.flags, output_dir=out, do_train=True, do_eval=True, do_predict=True)
  return out


def test_it_learns(own, trained):
  assert results_in(trained / "eval_results.txt")[HEADLINES[own.name]] > 0.9


def test_its_folder_answers_texts_as_the_run_has(own, trained):
  predicted = Predictor.from_run(str(trained))(ITEMS[own.name])
  good, bad = predicted
  if own.name == "token_scores":
    rows = [json.loads(line) for line in (trained / "predictions.jsonl").read_text().splitlines()]
    assert good["tokens"] == ["[CLS]", "it", "was", "good", "film", "[SEP]"]
    for answer, row in ((good, rows[1]), (bad, rows[0])):
      np.testing.assert_allclose(answer["scores"][1:-1], row["scores"], atol=1e-4)
    return
  rows = table(trained / "predictions.tsv")[1:]
  if own.name == "relations":
    assert [good["relation"], bad["relation"]] == ["quality-thing", "thing-quality"]
    assert rows[1][1] == "quality-thing"
  else:
    assert [row[0] for row in rows] == [str(i) for i in range(12)]
    found = [good["stars"], bad["stars"]]
    np.testing.assert_allclose(found, [float(rows[1][1]), float(rows[0][1])], atol=1e-4)


def test_stopped_and_resumed_it_is_the_same(own, tmp_path):
  # The rate of a step must not depend on how many are still to come.
  values = {**own.flags, "do_train": True, "lr_schedule": "constant", "warmup_proportion": 0.0}
  own.script.run_well(**{**values, "num_train_epochs": 2.0}, output_dir=tmp_path / "out")
  values["num_train_epochs"] = 4.0
  own.script.run_well(**values, output_dir=tmp_path / "whole")
  own.script.run_well(**values, output_dir=tmp_path / "out")
  assert_same_tensors(tmp_path / "out" / "model.ckpt-12", tmp_path / "whole" / "model.ckpt-12")


BAD_ROWS = {
  "stars": ('{"id": "a", "text_a": "good", "text_b": "", "stars": "7"}', "7 is no number of stars"),
  "relations": ('{"text": "<e1>good</e1> film", "label": "a"}', "it has 0 tags of entity 2"),
  "token_scores": ('{"words": ["good"], "scores": [1, 2]}', "scores is no list of numbers, one"),
}


def test_a_bad_row_is_named(own, tmp_path):
  good = json.dumps(next(_rows(own.name)))
  bad, message = BAD_ROWS[own.name]
  (tmp_path / "train.jsonl").write_text(f"{good}\n{bad}\n")
  values = {**own.flags, "data_dir": tmp_path, "output_dir": tmp_path / "out"}
  assert f"train.jsonl, line 2: {message}" in own.script.error_of(**values, do_train=True)


def test_a_folder_names_no_python_to_execute(own, trained):
  """Elsewhere, where nobody has loaded the task, its folder is refused, and runs nothing."""
  code = (
    "import sys; from bert.predicting import load_run\n"
    "try: load_run.find_run(sys.argv[1])\n"
    "except ValueError as error: print(error)\n"
    f"print({own.name!r} in sys.modules)"
  )
  environment = {"PATH": "", "PYTHONPATH": str(ROOT), kinds.PLUGINS: ""}
  command = [sys.executable, "-c", code, str(trained)]
  done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
  assert f"The task {own.name!r} is not known here" in done.stdout
  assert done.stdout.splitlines()[-1] == "False"
  [state] = trained.glob("model.ckpt-120.state.json")
  assert FILES[own.name].name not in state.read_text()


# ---------------------------------------------------------------------------------------------
# What takes longer.


def _run(*command) -> subprocess.CompletedProcess:
  environment = {**os.environ, "PYTHONPATH": str(ROOT), kinds.PLUGINS: ""}
  command = [sys.executable, *map(str, command)]
  return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def _flags(values) -> list[str]:
  return [f"--{name}={value}" for name, value in values.items()]


@pytest.mark.ci
def test_its_export_answers_as_its_run(own, trained, tmp_path):
  values = {**own.flags, "output_dir": trained, "do_export": True, "export_dir": tmp_path / "e"}
  own.script.run_well(**values)
  items = ITEMS[own.name]
  exported = Predictor.from_saved_model(str(tmp_path / "e"))(items)
  for one, other in zip(exported, Predictor.from_run(str(trained))(items), strict=True):
    assert one.keys() == other.keys()
    for name, value in one.items():
      if isinstance(value, str | list):
        assert value == other[name]
      else:
        np.testing.assert_allclose(value, other[name], rtol=1e-5, atol=1e-6)


@pytest.mark.ci
def test_its_file_is_a_script_with_many_seeds(own, tmp_path):
  flags = {**own.flags, "output_dir": tmp_path / "out", "num_runs": 2, "num_train_epochs": 4.0}
  done = _run(FILES[own.name], *_flags(flags), "--do_train", "--do_eval", "--do_predict")
  assert done.returncode == 0, done.stderr
  seeds = sorted((tmp_path / "out").glob("seed_*"))
  assert len(seeds) == 2
  headline = HEADLINES[own.name]
  assert all(headline in results_in(seed / "eval_results.txt") for seed in seeds)
  results = json.loads((tmp_path / "out" / "results.json").read_text())
  assert headline in json.dumps(results)
  assert headline in results_in(tmp_path / "out" / "ensemble" / "eval_results.txt")


@pytest.mark.ci
def test_predict_py_knows_it_by_its_file(own, trained, tmp_path):
  lines, out = tmp_path / "in.txt", tmp_path / "out.jsonl"
  lines.write_text("\n".join(ITEMS[own.name]) + "\n")
  flags = {"init_checkpoint": trained, "input_file": lines, "output_file": out}
  done = _run(ROOT / "predict.py", *_flags(flags))
  assert done.returncode == 1
  assert "--plugin" in done.stderr
  done = _run(ROOT / "predict.py", *_flags({**flags, "plugin": FILES[own.name]}))
  assert done.returncode == 0, done.stderr
  assert len(out.read_text().splitlines()) == 2


def test_help_lists_its_flags_without_tensorflow():
  code = "import runpy, sys; sys.argv = ['relations.py', '--help']\n"
  code += f"try: runpy.run_path({str(FILES['relations'])!r}, run_name='__main__')\n"
  code += "finally: assert 'tensorflow' not in sys.modules"
  done = _run("-c", code)
  assert done.returncode == 0, done.stderr
  assert "--data_dir" in done.stdout
  assert "--num_runs" in done.stdout


def test_a_missing_plugin_is_one_message(tmp_path):
  found = Script(predict).error_of(plugin=tmp_path / "none.py", init_checkpoint="x")
  assert "none.py is no Python file of a task" in found


def test_a_headline_of_which_less_is_better_is_refused():
  class Errors(engine.Task):
    name = "errors"
    headline = "eval_mae"

  with pytest.raises(ValueError, match="eval_mae, of which less is better"):
    engine.register(Errors)
  assert "errors" not in kinds._KINDS
