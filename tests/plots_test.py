"""plots.py: its picture and its messages."""

import pytest

from bert import plots
from tests.kit.event_files import write_run
from tests.kit.script_runs import Script

script = Script(plots, takes_arguments=True)


@pytest.fixture
def run(tmp_path):
  """A run with training and evaluation."""
  return write_run(tmp_path / "run")


def test_the_script_draws(run, tmp_path):
  out = tmp_path / "curves.svg"
  done = script.run_well(model_dir=run, output_file=out, tags="loss")
  assert f"Wrote {out}: loss." in done.err
  assert "</svg>" in out.read_text()


def test_several_folders_are_compared(run, tmp_path):
  other, out = write_run(tmp_path / "other"), tmp_path / "new" / "curves.svg"
  script.run_well(f"{run}/", str(other), output_file=out, tags="loss")
  words = script.run_well(str(other), f"--model_dir={run}", output_file=out, tags="loss")
  assert f"Wrote {out}: loss." in words.err
  text = out.read_text()
  assert text.count("<!-- run -->") == text.count("<!-- other -->") == 1
  message = script.error_of(str(run), str(other))
  assert "the name of a folder is empty" in script.error_of(str(run), "", output_file=out)
  assert "2 runs are compared in one picture: name it by --output_file" in message


def test_without_a_file_the_curves_are_drawn_in_the_folder_of_the_run(run, tmp_path):
  done = script.run_well(model_dir=run)
  assert f"Wrote {run}/plots/training.png: " in done.err
  assert (run / "plots" / "training.png").is_file()
  message = script.error_of(model_dir=tmp_path)
  assert f"{tmp_path} holds no event file with scalars, but these" in message
  assert "does not exist" in script.error_of(model_dir=tmp_path / "nowhere")


@pytest.mark.parametrize(
  ("values", "expected"),
  [
    ({"tags": "bleu"}, "--tags: bleu is not among the scalars of"),
    ({"model_dir": "nowhere"}, "nowhere does not exist. Give the --output_dir of a run"),
    ({"output_file": "curves.jpgx"}, "curves.jpgx: a picture cannot be written as .jpgx. Use .png"),
  ],
)
def test_one_message_says_what_is_wrong(run, tmp_path, values, expected):
  out = tmp_path / "curves.png"
  assert expected in script.error_of(**{"model_dir": run, "output_file": out, **values})
  assert not out.exists()


def test_a_missing_flag_is_named():
  assert "Flag --model_dir must have a value" in script.error_of(output_file="curves.png")
