"""Tasks of a user's own: what they learn and answer, and how other programs come to know them."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bert import convert_checkpoint, distill, doctor, export_hub, predict
from bert.fine_tuning import engine
from bert.fine_tuning.task import Task
from bert.predicting import load_run
from bert.predicting.predictor import Predictor
from bert.scripts import distillation_settings
from bert.scripts.command_line import UsageError
from bert.scripts.run_settings import SplitSettings
from bert.tasks import kinds
from tests.kit import own_tasks
from tests.kit.event_files import series_in
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script, results_in

FILES = own_tasks.FILES
_EXAMPLES = [pytest.param(name, marks=pytest.mark.ci) for name in FILES if name != "stars"]
# Programs of their own, half a minute each: in CI that of one task.
_LONG = [pytest.param(name, marks=pytest.mark.slow) for name in FILES if name != "stars"]
of_one_task = pytest.mark.parametrize("name", ["stars", *_LONG], indirect=True, scope="module")


@pytest.fixture(scope="module", params=["stars", *_EXAMPLES])
def name(request):
  with own_tasks.loaded(request.param):
    yield request.param


@pytest.fixture(scope="module")
def flags(name, tmp_path_factory):
  return own_tasks.write(tmp_path_factory.mktemp("data"), name)


@pytest.fixture(scope="module")
def trained(name, flags, tmp_path_factory):
  out = tmp_path_factory.mktemp("out") / name
  jobs = {"do_train": True, "do_eval": True, "do_predict": True}
  own_tasks.script(name).run_well(**flags, output_dir=out, **jobs)
  return out


def test_it_learns(name, trained):
  assert results_in(trained / "eval_results.txt")[own_tasks.HEADLINES[name]] > 0.9


def test_its_folder_answers_texts_as_the_run_has(name, trained):
  good, bad = Predictor.load(str(trained))(own_tasks.ITEMS[name])
  rows = [json.loads(line) for line in (trained / "predictions.jsonl").read_text().splitlines()]
  assert [row.pop("id") for row in rows] == [str(i) for i in range(12)]
  for answer, row in ((good, rows[1]), (bad, rows[0])):
    assert answer.keys() == row.keys()
    for key, value in answer.items():
      if key in ("words", "relation"):
        assert value == row[key]
      else:
        np.testing.assert_allclose(value, row[key], atol=1e-4)
  if name == "token_scores":
    assert good["words"] == ["it", "was", "good", "film"]
  if name == "relations":
    assert [good["relation"], bad["relation"]] == ["quality-thing", "thing-quality"]


@pytest.mark.ci
def test_its_export_answers_on_other_engines(name, flags, trained, tmp_path):
  given = {"init_checkpoint": trained, "export_dir": tmp_path / "export", "format": "onnx,litert"}
  eval_file = flags["data_dir"] / "dev.jsonl"
  Script(export_hub).run_well(**given, eval_file=eval_file)
  items = own_tasks.ITEMS[name]
  expected = Predictor.load(str(trained))(items)
  for its_engine in ("onnxruntime", "openvino", "litert"):
    found = Predictor.load(tmp_path / "export", its_engine)(items)
    for one, other in zip(expected, found, strict=True):
      assert one.keys() == other.keys()
      for key, value in one.items():
        if key not in ("words", "relation"):
          np.testing.assert_allclose(other[key], value, atol=1e-4)
        else:
          assert other[key] == value
  if name != "stars":
    return
  report = json.loads((tmp_path / "export" / "accuracy.json").read_text())
  assert own_tasks.HEADLINES[name].removeprefix("eval_") in report["models"][0]["metrics"]
  models = [(row["engine"], row["precision"]) for row in report["models"]]
  assert models == [
    ("onnxruntime", "float32"),
    *(("openvino", precision) for precision in ("float32", "bfloat16")),
    ("litert", "float32"),
  ]


BAD_ROWS = {
  "stars": ('{"id": "a", "text_a": "good", "text_b": "", "stars": "7"}', "7 is no number of stars"),
  "relations": ('{"text": "<e1>good</e1> film", "label": "a"}', "it has 0 tags of entity 2"),
  "token_scores": ('{"words": ["good"], "scores": [1, 2]}', "scores is no list of numbers, one"),
}


def test_a_bad_row_is_named(name, flags, tmp_path):
  good = json.dumps(next(own_tasks.rows(name)))
  bad, message = BAD_ROWS[name]
  (tmp_path / "train.jsonl").write_text(f"{good}\n{bad}\n")
  values = {**flags, "data_dir": tmp_path, "output_dir": tmp_path / "out"}
  said = own_tasks.script(name).error_of(**values, do_train=True)
  assert f"train.jsonl, line 2: {message}" in said


@pytest.mark.ci
def test_it_teaches_a_student(name, flags, trained, tmp_path, monkeypatch):
  """distill.py takes the task's flags from its file, and its loss from the problem type."""
  assert distillation_settings.script_of(["distill.py", f"--teacher={trained}"]) == str(FILES[name])
  values = {"teacher": trained, "data_dir": flags["data_dir"], "num_hidden_layers": 1}
  values |= {"do_train": True, "do_eval": True, "learning_rate": 0.01, "train_batch_size": 4}
  values |= {"save_summary_steps": 1, "output_dir": tmp_path / "student"}
  monkeypatch.setattr(sys, "argv", ["distill.py", *_flags(values)])
  done = Script(distill).run_well(**values)
  assert "From the teacher's run: --max_seq_length=16" in done.err
  assert len(series_in(tmp_path / "student")["soft_loss"]) == 9
  assert load_run.find_run(tmp_path / "student").kind.name == name
  if name == "stars":
    stars = sys.modules[name]
    monkeypatch.setattr(stars.Stars, "head", lambda self: stars.StarsHead(1.0))
    found = Script(distill).error_of(**{**values, "output_dir": tmp_path / "out"})
    assert "has the head {'middle': 3.0}, the student {'middle': 1.0}" in found


def test_outputs_of_unknown_meaning_have_no_loss():
  class Ranks(Task):
    name, problem_type = "ranks", "ranks"

  with pytest.raises(UsageError, match="the problem_type ranks, and no distillation_loss"):
    Ranks(SplitSettings()).distillation_loss(None)


def test_doctor_reads_its_data_as_its_run_does(name, flags, tmp_path, monkeypatch):
  values = {flag: flags[flag] for flag in ("data_dir", "vocab_file", "max_seq_length")}
  monkeypatch.setattr(sys, "argv", ["doctor.py", f"--task_name={name}"])
  done = Script(doctor).run(**values, task_name=name)
  assert done.code == 0, done.out
  assert "12 examples for train" in done.out
  assert ("Labels of" in done.out) == (name == "relations"), "numbers are no classes"
  assert "Ignoring" not in done.err, "the flags are the task's"
  bad, message = BAD_ROWS[name]
  for split in ("train", "dev", "test"):
    (tmp_path / f"{split}.jsonl").write_text(bad + "\n")
  done = Script(doctor).run(data_dir=tmp_path, task_name=name)
  assert done.code == 1
  assert "train.jsonl:1" in done.out
  assert message in done.out


def _run(*command) -> subprocess.CompletedProcess:
  environment = {**os.environ, "PYTHONPATH": str(ROOT), kinds.PLUGINS: ""}
  words = [sys.executable, *map(str, command)]
  return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def _flags(values) -> list[str]:
  return [f"--{name}={value}" for name, value in values.items()]


@pytest.mark.ci
def test_a_folder_names_no_python_to_execute(name, trained):
  """Elsewhere, where nobody has loaded the task, its folder is refused, and runs nothing."""
  code = (
    "import sys; from bert.predicting import load_run\n"
    "try: load_run.find_run(sys.argv[1])\n"
    "except ValueError as error: print(error)\n"
    f"print({name!r} in sys.modules)"
  )
  done = _run("-c", code, trained)
  assert f"The task {name!r} is not known here" in done.stdout
  assert done.stdout.splitlines()[-1] == "False"
  [state] = trained.glob("model.ckpt-120.state.json")
  assert FILES[name].name not in state.read_text()


@pytest.mark.ci
@of_one_task
def test_predict_py_knows_it_by_its_file(name, trained, tmp_path):
  lines, out = tmp_path / "in.txt", tmp_path / "out.jsonl"
  lines.write_text("\n".join(own_tasks.ITEMS[name]) + "\n")
  flags = {"init_checkpoint": trained, "input_file": lines, "output_file": out}
  done = _run(ROOT / "predict.py", *_flags(flags))
  assert done.returncode == 1
  assert "--plugin" in done.stderr
  done = _run(ROOT / "predict.py", *_flags({**flags, "plugin": FILES[name]}))
  assert done.returncode == 0, done.stderr
  assert len(out.read_text().splitlines()) == 2


@pytest.mark.ci
def test_transformers_has_no_class_for_it(name, trained, tmp_path):
  values = {"init_checkpoint": trained, "output_dir": tmp_path / "converted"}
  values |= {"command": "to_transformers"}
  convert = Script(convert_checkpoint)
  found = convert.error_of(**values)
  assert f"no class for the head of the task {name}" in found
  assert "a BertModel." in convert.run_well(**values, head="none").err


@pytest.mark.slow
@of_one_task
def test_its_file_is_a_script_with_many_seeds(name, flags, tmp_path):
  flags = {**flags, "output_dir": tmp_path / "out", "num_runs": 2, "num_train_epochs": 4.0}
  done = _run(FILES[name], *_flags(flags), "--do_train", "--do_eval", "--do_predict")
  assert done.returncode == 0, done.stderr
  headline = own_tasks.HEADLINES[name]
  for folder in ("seed_12345", "seed_12346"):
    assert headline in results_in(tmp_path / "out" / folder / "eval_results.txt")
  assert headline in (tmp_path / "out" / "results.json").read_text()


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


@pytest.mark.parametrize(
  ("content", "said"),
  [
    ("x = 1\ndef x(:\n", "broken.py, line 2: SyntaxError: "),
    (
      "import os\n\nos.no_such\n",
      "broken.py, line 3: AttributeError: module 'os' has no attribute",
    ),
    ("import no_such_module", "broken.py, line 1: ModuleNotFoundError: No module named"),
  ],
)
def test_a_plugin_that_fails_is_one_line_with_its_place(tmp_path, content, said):
  (tmp_path / "broken.py").write_text(content)
  found = Script(predict).error_of(plugin=tmp_path / "broken.py", init_checkpoint="x")
  assert said in found
  assert "Traceback" not in found


def test_a_task_of_a_notebook_is_registered():
  """There `__main__` has no file, so no other process can import it."""
  code = (
    "import os\n"
    "from bert import fine_tuning\n"
    "from bert.tasks import kinds\n"
    "@fine_tuning.register\n"
    "class Task(fine_tuning.Task):\n"
    "  name = 'noted'\n"
    "kind = kinds.find('noted')\n"
    "assert kind.task_class() is Task and kind.file\n"
    "assert not os.environ[kinds.PLUGINS]"
  )
  done = _run("-c", code)
  assert done.returncode == 0, done.stderr


def test_a_headline_of_which_less_is_better_is_refused():
  class Errors(engine.Task):
    name = "errors"
    headline = "eval_mae"

  with pytest.raises(ValueError, match="eval_mae, of which less is better"):
    engine.register(Errors)
  assert "errors" not in kinds._KINDS
