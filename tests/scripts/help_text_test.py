"""Tests of bert/scripts/help_text.py."""

import pytest
from absl import flags

from bert.scripts import flag_groups, help_text
from tests.kit import every_script
from tests.kit.small_script import SCRIPT


@pytest.mark.parametrize("word", ["--help", "-h", "-?", "--helpshort", "--helpfull", "-help"])
def test_help_succeeds_on_stdout_even_beside_mistakes(run, word):
  done = run("--train_batch_size=abc", "--zyxw", word)
  assert (done.returncode, done.stderr) == (0, "")
  assert done.stdout.startswith("usage: python script.py ")
  assert ("--stderrthreshold" in done.stdout) == (word == "--helpfull")


def test_help_names_every_flag_in_its_group_in_order(run):
  lines = run("--help").stdout.splitlines()
  headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
  assert headings == ["Input and output:", "Training:", "Other:", "TPU:", "General:"]
  entries = [line.split()[0] for line in lines if line.startswith("  --")]
  assert entries[:8] == [
    "--data_dir",
    "--output_dir",
    "--[no]do_lower_case",
    "--[no]do_train",
    "--train_batch_size",
    "--learning_rate",
    "--dtype",
    "--layers",
  ]
  assert entries[8:14] == [
    "--tpu_name",
    "--tpu_zone",
    "--gcp_project",
    "--[no]use_tpu",
    "--master",
    "--num_tpu_cores",
  ]
  assert {"--[no]verbose_errors", "--flagfile=FILE", "--undefok=NAME,..."} <= set(entries[14:])
  training = lines.index("Training:")
  assert lines[training + 1] == "  --[no]do_train (bool, default false)"
  assert training < lines.index("  --train_batch_size (int, default 32)") < lines.index("Other:")


def test_help_shows_type_and_default_of_each_kind(run):
  text = run("--help").stdout
  for entry in (
    "--data_dir (string, required)",
    "--[no]do_lower_case (bool, default true)",
    "--learning_rate (float, default 5e-05)",
    '--dtype (string, default "float32")',
    "--tpu_name (string, default none)",
  ):
    assert f"  {entry}\n" in text
  assert "<float32|bfloat16>: Numbers to compute with." in text


@pytest.mark.parametrize(("columns", "width"), [("50", 50), ("80", 80), ("300", 100)])
def test_help_fits_the_terminal(run, columns, width):
  text = run("--help", COLUMNS=columns).stdout
  example = [line for line in SCRIPT.splitlines() if line.startswith("  python script.py")]
  # An example must stay whole, to be copied; the line of a flag is its name, type and default.
  loose = [
    line for line in text.splitlines() if line not in example and not line.startswith("  --")
  ]
  assert example[0] in text
  assert width - 20 < max(map(len, loose)) <= width
  assert "Pretends to train." in text


def test_help_cuts_no_flag_or_file_name_at_a_hyphen():
  def define():
    flags.DEFINE_string("text", None, "See the long-winded-and-hyphenated-name, " * 9)

  with flag_groups.defined_flags(define):
    lines = help_text.format_help("python script.py").splitlines()
  assert not [line for line in lines if line.endswith("-")]


def test_each_flag_stands_once_and_no_word_is_broken(monkeypatch):
  monkeypatch.setenv("COLUMNS", "40")
  word = "https://example.org/a/path/that/is/longer/than/a/narrow/line"

  def define():
    flags.DEFINE_string("text", None, f"See {word} for more.")

  with flag_groups.defined_flags(define):
    text = help_text.format_help("python script.py", full=True)
  assert text.count("--verbosity=INT") == 1
  assert "--verbosity (" not in text
  assert word in text


@pytest.mark.parametrize("name", every_script.RUNS)
def test_help_is_about_the_script_that_was_called(name):
  said = " ".join(every_script.script(name).run("--help").out.split())
  first_line = every_script.module(name).__doc__.partition("\n")[0]
  assert f"[--flag=value ...] {first_line}" in said
