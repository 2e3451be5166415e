"""Tests of bert/scripts/command_line.py. Alone: python -m pytest tests/scripts/command_line_test.py

Most run a small script in a process of its own, as a user does, and look at its exit code, stdout
and stderr. It needs no TensorFlow, so each takes a fraction of a second.
"""

import doctest
import json
import os
import subprocess
import sys

import hypothesis
import pytest
from absl import flags, logging
from hypothesis import strategies as st

import bert
from bert.scripts import command_line, flag_groups, help_text
from tests.kit.paths import ROOT

SCRIPT = '''"""Pretends to train.

This paragraph goes on and on, longer than the line of a narrow terminal, so that it has to be cut.

  python script.py --data_dir=folder --and_an_example_line_that_is_longer_than_the_terminal_is_wide
"""

import json
import os
import sys

from absl import flags, logging

from bert.scripts import command_line, flag_groups, help_text

FLAGS = flags.FLAGS


def define_flags():
  with flag_groups.flag_group("Input and output"):
    flags.DEFINE_string("data_dir", None, "The folder with the data.")
    flags.DEFINE_string("output_dir", None, "Where results go.")
    flags.DEFINE_bool("do_lower_case", True, "Whether to lower-case.")
  with flag_groups.flag_group("Training"):
    flags.DEFINE_bool("do_train", False, "Whether to train.")
    flags.DEFINE_integer("train_batch_size", 32, "Examples in a step. " * 9, lower_bound=1)
    flags.DEFINE_float("learning_rate", 5e-5, "The first rate.")
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "Numbers to compute with.")
  flags.DEFINE_string("layers", "-1,-2", "A flag in no group.")
  flag_groups.define_tpu_flags()
  flag_groups.mark_required(["data_dir", "output_dir"])


ERRORS = {
  "value": ValueError("dev.tsv, line 3: no label"),
  "decode": UnicodeDecodeError("utf-8", b"x", 0, 1, "bad byte"),
  "missing": FileNotFoundError(2, "No such file or directory", "nowhere/train.tsv"),
  "bug": RuntimeError("a bug"),
  "key": KeyError("a bug too"),
  "interrupt": KeyboardInterrupt(),
}


def main(argv):
  word = FLAGS.data_dir
  if word in ERRORS:
    raise ERRORS[word]
  if word == "required":
    FLAGS.data_dir = None
    command_line.check_required()
  if word == "exit":
    return 7
  if word == "flood":
    for _ in range(100000):
      print("one of many lines")
  command_line.explain_ignored_flags()
  logging.info("  eval_accuracy = %s", 0.845588)
  logging.debug("fine print")
  names = ["data_dir", "do_lower_case", "do_train", "train_batch_size", "learning_rate", "dtype"]
  report = {name: FLAGS[name].value for name in names}
  report["argv"] = argv[1:]
  report["given"] = [name for name in names if command_line.flag_was_given(name)]
  report["cpp_log_level"] = os.environ["TF_CPP_MIN_LOG_LEVEL"]
  report["tensorflow"] = "tensorflow" in sys.modules
  print(json.dumps(report))


if __name__ == "__main__":
  command_line.run(main, define_flags)
'''


@pytest.fixture
def run(tmp_path):
  """Runs the script above with arguments; keywords are environment variables."""
  script = tmp_path / "script.py"
  script.write_text(SCRIPT)

  def run_script(*arguments, **env):
    clean = {k: v for k, v in os.environ.items() if k not in ("TF_CPP_MIN_LOG_LEVEL", "COLUMNS")}
    return subprocess.run(
      [sys.executable, str(script), *arguments],
      env={**clean, "PYTHONPATH": str(ROOT), **env},
      capture_output=True,
      text=True,
      cwd=tmp_path,
      timeout=60,
    )

  return run_script


def report_of(done) -> dict:
  """What the script read from its command line, in a run that succeeded."""
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout.splitlines()[-1])


def define_some():
  with flag_groups.flag_group("Some"):
    flags.DEFINE_string("text", None, "A text.")
    flags.DEFINE_bool("switch", False, "A switch.")
    flags.DEFINE_bool("do_lower_case", True, "Another.")
    flags.DEFINE_integer("count", 3, "A count.")
    flags.DEFINE_float("rate", 0.5, "A rate.")


# ---------------------------------------------------------------------------------------------
# Reading the command line.


@pytest.mark.parametrize(
  ("written", "value"),
  [
    ([], False),
    (["--do_train"], True),
    (["-do_train"], True),
    (["--do_train=true"], True),
    (["--do_train=True"], True),
    (["--do_train=1"], True),
    (["--do_train=false"], False),
    (["--do_train=0"], False),
    (["--do_train", "--nodo_train"], False),
    (["-nodo_train"], False),
  ],
)
def test_spellings_of_a_switch(written, value):
  def define():
    flags.DEFINE_bool("do_train", False, "Train.")

  with flag_groups.defined_flags(define) as values:
    command_line.parse(["script.py", *written])
    assert values.do_train is value


def test_values_after_equals_sign_or_space_and_last_one_wins(run):
  done = run("--data_dir", "a", "-train_batch_size=8", "--learning_rate", "1e-3", "--data_dir=b=c")
  report = report_of(done)
  assert (report["data_dir"], report["train_batch_size"]) == ("b=c", 8)
  assert report["learning_rate"] == 1e-3
  assert report["given"] == ["data_dir", "train_batch_size", "learning_rate"]
  assert "WARNING" not in done.stderr


def test_given_with_its_default_value_is_given(run):
  assert report_of(run("--train_batch_size=32"))["given"] == ["train_batch_size"]


def test_set_by_the_program_is_not_given():
  with flag_groups.defined_flags(define_some) as values:
    command_line.parse(["script.py"])
    values.count = 4
    assert not command_line.flag_was_given("count")


_WORDS = [
  *("--text", "--text=a", "-text=", "--text=--switch", "--count", "--count=4", "--count=x", "7"),
  *("--switch", "--noswitch", "-switch=False", "--switch=t", "--switch=no", "--noswitch=1"),
  *("--rate", "--rate=1e-3", "--nodo_lower_case", "word", "false", "-"),
  *("--undefok", "--undefok=z", "--zz", "--zz=1", "--nozz"),
]


@hypothesis.given(st.lists(st.sampled_from(_WORDS), max_size=7))
@hypothesis.settings(deadline=None, max_examples=300)
def test_reads_what_the_parser_of_absl_reads(words):
  """The original read its flags with absl's parser, known flags only; so the two must agree."""

  def values_after(parse):
    with flag_groups.defined_flags(define_some) as values:
      try:
        rest = parse(["script.py", *words])
      except (flags.Error, ValueError):
        return "error"
      # absl hands out unknown flags together with the other words; we name them in a warning.
      rest = [word for word in rest if "zz" not in word]
      names = ["text", "switch", "count", "rate", "do_lower_case"]
      return rest, [
        (values[n].value, values[n].present, values[n].using_default_value) for n in names
      ]

  ours = values_after(command_line.parse)
  assert ours == values_after(lambda argv: flags.FLAGS(argv, known_only=True))


def test_unknown_flags_are_named_once_with_the_nearest_known_name(run):
  done = run("--data_dir=x", "--do_trian", "--zyxw", "value", "--do_trian", "--nodo_trian")
  assert report_of(done)["do_train"] is False
  warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING:tensorflow:")]
  assert warnings == [
    "WARNING:tensorflow:Ignoring the unknown flag --do_trian. Did you mean --do_train?",
    "WARNING:tensorflow:Ignoring the unknown flag --zyxw value.",
    "WARNING:tensorflow:Ignoring the unknown flag --nodo_trian. Did you mean --nodo_train?",
  ]


@pytest.mark.parametrize("written", ["--do_lower=False", "--nodo_lower", "-do_lower=0"])
def test_do_lower_of_the_originals_readme_means_do_lower_case(run, written):
  done = run(written)
  report = report_of(done)
  assert report["do_lower_case"] is False
  assert report["given"] == ["do_lower_case"]
  assert "do_lower_case, the flag's real name" in done.stderr


def test_an_alias_gives_way_to_a_real_flag_and_needs_its_target(caplog):
  def define():
    flags.DEFINE_string("do_lower", None, "A real flag.")
    flags.DEFINE_bool("do_lower_case", True, "Another.")

  with flag_groups.defined_flags(define) as values:
    command_line.parse(["script.py", "--do_lower=x"])
    assert (values.do_lower, values.do_lower_case) == ("x", True)
  with flag_groups.defined_flags(lambda: None):
    assert command_line.parse(["script.py", "--do_lower=x"]) == ["script.py"]
  assert caplog.messages == ["Ignoring the unknown flag --do_lower=x."]


def test_words_that_are_no_flags_are_reported_and_handed_on(run):
  done = run("one", "--do_train", "two", "--", "--three")
  assert report_of(done)["argv"] == ["one", "two", "--three"]
  for word in ("one", "two", "--three"):
    assert f'Ignoring the argument "{word}"' in done.stderr


def test_a_switch_with_its_value_after_a_space_is_explained(run):
  done = run("--do_train", "false")
  assert report_of(done)["do_train"] is True  # As absl, and so the original, reads it.
  assert "Write --do_train=false." in done.stderr


def test_a_flag_that_swallows_the_next_flag_is_reported(run):
  done = run("--data_dir", "--do_train")
  assert report_of(done)["data_dir"] == "--do_train"
  assert "--data_dir takes the word after it, --do_train, as its value" in done.stderr


def test_flag_file_with_comments_and_later_flags_win(run, tmp_path):
  (tmp_path / "flags.txt").write_text(
    "# data\n--data_dir=from_file\n\n--do_lower=False\n--zyxw=1\n"
  )
  done = run("--flagfile=flags.txt", "--train_batch_size=4")
  report = report_of(done)
  assert (report["data_dir"], report["do_lower_case"]) == ("from_file", False)
  assert report["train_batch_size"] == 4
  assert "--zyxw" in done.stderr
  assert report_of(run("--flagfile", "flags.txt", "--data_dir=x"))["data_dir"] == "x"


def test_undefok_silences_the_warning(run):
  done = run("--undefok=zyxw, other,north", "--zyxw=1", "--noother", "--north")
  report_of(done)
  assert "WARNING" not in done.stderr


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    (["--train_batch_size=abc"], 'Flag --train_batch_size takes a positive integer, not "abc".'),
    (["--train_batch_size", "0"], 'Flag --train_batch_size takes a positive integer, not "0".'),
    (["--learning_rate=fast"], 'Flag --learning_rate takes a number, not "fast".'),
    (["--do_train=yes"], 'Flag --do_train takes true or false, not "yes".'),
    (["--dtype=int8"], 'Flag --dtype takes one of float32, bfloat16, not "int8".'),
    (["--nodo_train=false"], "--nodo_train takes no value"),
    (["--data_dir"], "Flag --data_dir needs a value: --data_dir=VALUE."),
    (["--undefok"], "Flag --undefok needs a value"),
    (["--flagfile=nowhere.txt"], "No such file or directory: 'nowhere.txt'"),
    (["--flagfile"], "--flagfile with no argument"),
  ],
)
def test_a_wrong_command_line_ends_in_one_message(run, arguments, message):
  done = run(*arguments)
  assert (done.returncode, done.stdout) == (1, "")
  assert done.stderr.startswith("ERROR: ")
  assert message in done.stderr.splitlines()[0]
  assert "script.py --help" in done.stderr
  assert "Traceback" not in done.stderr


def test_validators_of_absl_are_checked():
  def define():
    flags.DEFINE_integer("size", 1, "A size.")
    flags.register_validator("size", lambda size: size % 2 == 1, message="must be odd")

  with flag_groups.defined_flags(define), pytest.raises(command_line.UsageError, match="be odd"):
    command_line.parse(["script.py", "--size=2"])


def test_a_short_name_reaches_its_flag():
  def define():
    with flag_groups.flag_group("Group"):
      flags.DEFINE_string("output", None, "Output.", short_name="o")

  with flag_groups.defined_flags(define) as values:
    command_line.parse(["script.py", "-o", "x"])
    assert values.output == "x"
    assert [each["name"] for each in flag_groups.describe()] == ["output", "verbose_errors"]


# ---------------------------------------------------------------------------------------------
# Help.


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
    "--[no]use_tpu",
    "--tpu_name",
    "--tpu_zone",
    "--gcp_project",
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


def test_version_is_that_of_the_project(run):
  done = run("--version")
  assert (done.returncode, done.stderr) == (0, "")
  assert done.stdout.split()[:2] == ["bert-alive", bert.__version__]


def test_the_examples_in_docstrings():
  results = doctest.testmod(help_text)
  assert results.attempted > 0
  assert results.failed == 0


# ---------------------------------------------------------------------------------------------
# Running main.


def test_required_flags_are_checked_when_the_script_asks(run):
  assert report_of(run())["data_dir"] is None
  done = run("--data_dir=required")
  assert (done.returncode, done.stdout) == (1, "")
  assert done.stderr.splitlines() == [
    "ERROR: Flag --data_dir must have a value other than None.",
    "Flag --output_dir must have a value other than None.",
    "Run `python script.py --help` to see every flag.",
  ]
  assert "--output_dir" not in run("--data_dir=required", "--output_dir=o").stderr


@pytest.mark.parametrize(
  ("word", "message"),
  [
    ("value", "ERROR: dev.tsv, line 3: no label"),
    ("decode", "ERROR: 'utf-8' codec can't decode byte 0x78 in position 0: bad byte"),
    ("missing", "ERROR: nowhere/train.tsv: No such file or directory"),
  ],
)
def test_errors_in_the_input_end_in_one_message(run, word, message):
  done = run(f"--data_dir={word}")
  assert done.returncode == 1
  assert done.stderr.splitlines()[0] == message
  assert "--verbose_errors" in done.stderr
  assert "Traceback" not in done.stderr


def test_verbose_errors_show_the_traceback(run):
  by_flag = run("--data_dir=value", "--verbose_errors")
  by_environment = run("--data_dir=value", BERT_TRACEBACK="1")
  for done in (by_flag, by_environment):
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "in main" in done.stderr
  assert "Traceback" not in run("--data_dir=value", BERT_TRACEBACK="0").stderr


@pytest.mark.parametrize("word", ["bug", "key"])
def test_bugs_keep_their_traceback(run, word):
  done = run(f"--data_dir={word}")
  assert done.returncode == 1
  assert "Traceback" in done.stderr


def test_interrupt_exits_with_130_and_what_main_returns_is_the_exit_code(run):
  interrupted = run("--data_dir=interrupt")
  assert (interrupted.returncode, interrupted.stderr) == (130, "\nInterrupted.\n")
  assert run("--data_dir=exit").returncode == 7


@pytest.mark.parametrize("word", ["flood", "little"])
def test_a_reader_that_leaves_early_ends_the_script_quietly(tmp_path, word):
  script = tmp_path / "script.py"
  script.write_text(SCRIPT)
  with subprocess.Popen(
    [sys.executable, str(script), f"--data_dir={word}", "--verbosity=-1"],
    # With an empty PYTHONUNBUFFERED, a little output is written only at the very end.
    env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  ) as process:
    if word == "flood":
      process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141


def test_log_lines_look_as_in_tensorflow_1(run):
  done = run()
  assert done.stderr.splitlines() == ["INFO:tensorflow:  eval_accuracy = 0.845588"]
  assert "DEBUG:tensorflow:fine print" in run("--verbosity=1").stderr
  assert "DEBUG:tensorflow:fine print" in run("-v", "1").stderr
  assert run("--verbosity=-1").stderr == ""


def test_tensorflow_is_not_imported_but_its_chatter_is_turned_off(run):
  report = report_of(run())
  assert report["tensorflow"] is False
  assert report["cpp_log_level"] == "2"
  assert report_of(run(TF_CPP_MIN_LOG_LEVEL="0"))["cpp_log_level"] == "0"


def test_importing_defines_no_flag():
  code = (
    "from absl import flags, logging; before = set(flags.FLAGS); import sys\n"
    "from bert.scripts import command_line, flag_groups, help_text\n"
    "assert set(flags.FLAGS) == before; assert 'tensorflow' not in sys.modules"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_runs_in_one_process_leave_nothing_behind(capsys):
  seen = []

  def main(_):
    seen.append((flags.FLAGS.text, flags.FLAGS.count))
    logging.info("hello")

  before = set(flags.FLAGS)
  verbosity = logging.get_verbosity()
  for arguments in (["--text=a", "--count=5", "--verbosity=-1"], ["--count=6"]):
    with pytest.raises(SystemExit) as leaving:
      command_line.run(main, define_some, ["script.py", *arguments])
    assert leaving.value.code is None
  assert seen == [("a", 5), (None, 6)]
  assert set(flags.FLAGS) == before
  assert logging.get_verbosity() == verbosity
  assert capsys.readouterr().err == "INFO:tensorflow:hello\n"


# ---------------------------------------------------------------------------------------------
# Defining flags.


def test_defining_the_same_flags_twice_is_accepted_and_keeps_values():
  with flag_groups.defined_flags(define_some) as values:
    command_line.parse(["script.py", "--count=5"])
    define_some()
    assert values.count == 5
    assert values["count"].default == 3


@pytest.mark.parametrize(
  "define",
  [
    lambda: flags.DEFINE_integer("count", 4, "A count."),
    lambda: flags.DEFINE_float("count", 3, "A count."),
    lambda: flags.DEFINE_integer("count", 3, "Another meaning."),
  ],
)
def test_defining_another_flag_of_the_same_name_is_refused(define):
  with flag_groups.defined_flags(define_some) as values:
    command_line.parse(["script.py", "--count=5"])
    with (
      pytest.raises(flags.DuplicateFlagError, match="count"),
      flag_groups.flag_group("Other"),
    ):
      define()
    assert (values["count"].default, values.count) == (3, 5)


def test_a_flag_of_absl_cannot_be_redefined():
  with (
    pytest.raises(flags.DuplicateFlagError, match="verbosity"),
    flag_groups.flag_group("Other"),
  ):
    flags.DEFINE_integer("verbosity", 3, "Mine.")
  assert flags.FLAGS["verbosity"].help != "Mine."


def test_a_failing_definition_leaves_the_flags_as_they_were():
  def define():
    flags.DEFINE_string("half_way", None, "Never seen.")
    raise RuntimeError("in define_flags")

  before = set(flags.FLAGS)
  with pytest.raises(RuntimeError, match="in define_flags"), flag_groups.defined_flags(define):
    pass
  assert set(flags.FLAGS) == before


def test_scripts_within_each_other_keep_their_own_flags_and_values():
  def define_other():
    flags.DEFINE_string("count", "many", "The same name, another type.")

  with flag_groups.defined_flags(define_some) as values:
    command_line.parse(["script.py", "--count=5"])
    with flag_groups.defined_flags(define_other):
      assert values.count == "many"
      assert "text" not in values
    assert (values.count, command_line.flag_was_given("count")) == (5, True)


def test_a_library_imported_by_main_keeps_the_flags_it_defines():
  with flag_groups.defined_flags(define_some):
    flags.DEFINE_string("of_a_library", None, "Defined while main runs.")
  assert "of_a_library" in flags.FLAGS
  del flags.FLAGS.of_a_library


def test_nested_groups_keep_the_inner_title():
  def define():
    with flag_groups.flag_group("Outer"):
      flags.DEFINE_string("a", None, "A.")
      with flag_groups.flag_group("Inner"):
        flags.DEFINE_string("b", None, "B.")
      flags.DEFINE_string("c", None, "C.")

  with flag_groups.defined_flags(define):
    text = help_text.format_help("python script.py")
  order = [text.index(part) for part in ("Outer:", "--a ", "--c ", "Inner:", "--b ")]
  assert order == sorted(order)


def test_describe_a_hand_made_set():
  values = flags.FlagValues()
  flags.DEFINE_string("text", None, "T.", flag_values=values)
  flags.DEFINE_integer("z_count", 3, "C.", short_name="a", flag_values=values)
  flags.DEFINE_float("rate", 1, "R.", flag_values=values)
  flags.DEFINE_bool("on", True, "O.", flag_values=values)
  flags.DEFINE_enum("kind", "x", ["x", "y"], "K.", flag_values=values)
  assert flag_groups.describe(values) == [
    {"name": "kind", "type": "string", "default": "x"},
    {"name": "on", "type": "bool", "default": True},
    {"name": "rate", "type": "float", "default": 1.0},
    {"name": "text", "type": "string", "default": None},
    {"name": "z_count", "type": "int", "default": 3},
  ]


def test_describe_leaves_out_flags_of_absl():
  with flag_groups.defined_flags(define_some):
    names = [each["name"] for each in flag_groups.describe()]
  assert names == ["count", "do_lower_case", "rate", "switch", "text", "verbose_errors"]


# ---------------------------------------------------------------------------------------------
# The TPU flags.


@pytest.mark.parametrize(
  ("script", "cluster"), [("run_classifier", True), ("extract_features", False)]
)
def test_tpu_flags_are_those_of_the_original(golden_dir, script, cluster):
  golden = json.loads((golden_dir / "flags.json").read_text())[script]
  expected = [
    each
    for each in golden
    if each["name"].endswith("tpu")
    or each["name"].startswith(("tpu_", "gcp_", "master", "num_tpu"))
  ]
  with flag_groups.defined_flags(lambda: flag_groups.define_tpu_flags(cluster=cluster)):
    own = [each for each in flag_groups.describe() if each["name"] != "verbose_errors"]
  assert own == expected
  assert len(own) == (6 if cluster else 3)


@pytest.mark.parametrize(
  ("arguments", "explained"),
  [
    ([], []),
    (["--tpu_zone=z", "--gcp_project=p"], ["--tpu_zone", "--gcp_project"]),
    (["--use_tpu", "--tpu_zone=z", "--gcp_project=p"], []),
    (["--master=m", "--num_tpu_cores=8"], ["--master", "--num_tpu_cores"]),
    (["--use_tpu", "--master=m"], ["--master"]),
  ],
)
def test_flags_without_effect_are_explained(run, arguments, explained):
  lines = [line for line in run(*arguments).stderr.splitlines() if "has no effect" in line]
  assert sorted(line.split()[1] for line in lines) == sorted(explained)
  assert all(line.startswith("INFO:tensorflow:Flag --") and ": " in line for line in lines)


def test_reasons_of_ones_own_and_flags_a_script_lacks(caplog):
  with flag_groups.defined_flags(define_some):
    command_line.parse(["script.py", "--text=x"])
    with caplog.at_level("INFO", logger="absl"):
      command_line.explain_ignored_flags({"text": "nobody reads it", "no_such_flag": "?"})
      command_line.explain_ignored_flags()
  assert caplog.messages == ["Flag --text has no effect: nobody reads it."]
