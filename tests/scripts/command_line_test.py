"""Tests of bert/scripts/command_line.py."""

import os
import subprocess
import sys

import hypothesis
import pytest
from absl import flags, logging
from hypothesis import strategies as st

import bert
from bert.scripts import command_line, flag_groups
from tests.kit import small_script
from tests.kit.paths import ROOT
from tests.kit.small_script import define_some, report_of


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
    # Once more at the end, when the first lines have scrolled away.
    "WARNING:tensorflow:This run ignored the unknown flag --do_trian. Did you mean --do_train?",
    "WARNING:tensorflow:This run ignored the unknown flag --zyxw value.",
    "WARNING:tensorflow:This run ignored the unknown flag --nodo_trian. Did you mean --nodo_train?",
  ]
  assert done.stderr.index("eval_accuracy") < done.stderr.index("This run ignored")


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


@pytest.mark.parametrize("word", ["data_dir=x", "\u2014data_dir=x", "\u2013\u2013data_dir=x"])
def test_a_flag_without_its_dashes_is_recognised(run, word):
  assert f'argument "{word}": it belongs to no flag. Did you mean --data_dir=x?' in run(word).stderr


def test_a_value_that_was_probably_meant(run):
  assert "Write a decimal point: 0.00002." in run("--learning_rate=0,00002").stderr
  assert 'not "bfloat". Did you mean bfloat16?' in run("--dtype=bfloat").stderr


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
    assert [each["name"] for each in flag_groups.describe()] == [
      "output",
      "plugin",
      "verbose_errors",
    ]


def test_version_is_that_of_the_project(run):
  done = run("--version")
  assert (done.returncode, done.stderr) == (0, "")
  assert done.stdout.split()[:2] == ["bert-alive", bert.__version__]


@pytest.mark.parametrize(
  ("arguments", "code", "said"),
  [
    ([], 0, ""),
    (["--only_check_args=true", "--data_dir=bug"], 0, ""),
    (["--zyxw"], 0, "WARNING:tensorflow:Ignoring the unknown flag --zyxw."),
    (["--train_minutes=3"], 1, "ERROR: --train_minutes=3: this flag was removed. Use --num_train_"),
    (["--noplots", "--undefok=noplots"], 0, ""),
    (["--train_batch_size=x"], 1, "ERROR: Flag --train_batch_size takes a positive integer"),
  ],
)
def test_only_the_command_line_is_checked(run, arguments, code, said):
  done = run("--only_check_args", *arguments)
  assert (done.returncode, done.stdout) == (code, "")
  assert done.stderr.startswith(said)
  assert bool(done.stderr) == bool(said)


def test_requests_that_are_turned_off(run):
  done = run("--nohelp", "--help=false", "--noonly_check_args", "--only_check_args=0")
  assert report_of(done)["do_train"] is False
  assert "WARNING" not in done.stderr


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


@pytest.mark.parametrize(
  ("word", "told"), [("bug", "RuntimeError: a bug"), ("key", "KeyError: 'a bug too'")]
)
def test_bugs_keep_their_traceback(run, word, told, tmp_path):
  (tmp_path / "file").touch()
  for arguments in ([], ["--output_dir=file"]):
    done = run(f"--data_dir={word}", *arguments)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1] == told


@pytest.mark.parametrize(
  ("word", "told"),
  [
    ("bug", "RuntimeError: a bug."),
    ("key", "KeyError: 'a bug too'."),
    ("library", "JSONDecodeError: Expecting property name"),
  ],
)
def test_the_traceback_of_a_bug_is_in_the_directory_of_the_run(run, word, told, tmp_path):
  if word == "library":
    assert "--verbose_errors" in run("--data_dir=library", "--output_dir=out").stderr
    (tmp_path / "out").mkdir()
  for times in (1, 2):
    done = run(f"--data_dir={word}", "--output_dir=out")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"ERROR: {told}")
    path = os.path.join("out", "error.log")
    assert line.endswith(f" Its traceback is in {path}.")
    assert done.returncode == 1
    logged = (tmp_path / path).read_text()
    assert logged.count("Traceback (most recent call last)") == times
    assert logged.count("in main") == times
    assert f"--data_dir={word}" in logged
  assert "Traceback" in run("--data_dir=bug", "--output_dir=out", "--verbose_errors").stderr


def test_an_error_in_the_input_leaves_no_log(run, tmp_path):
  (tmp_path / "out").mkdir()
  for word in ("value", "missing"):
    assert "--verbose_errors" in run(f"--data_dir={word}", "--output_dir=out").stderr
  assert not list((tmp_path / "out").iterdir())


def test_interrupt_exits_with_130_and_what_main_returns_is_the_exit_code(run):
  interrupted = run("--data_dir=interrupt")
  assert (interrupted.returncode, interrupted.stderr) == (130, "\nInterrupted.\n")
  assert run("--data_dir=exit").returncode == 7


def test_what_the_encoding_of_stdout_lacks_is_escaped(run):
  done = run("--data_dir=chinese", PYTHONIOENCODING="cp1252")
  assert done.returncode == 0, done.stderr
  assert done.stdout.startswith("\\u732b\n")


@pytest.mark.parametrize("word", ["flood", "little"])
def test_a_reader_that_leaves_early_ends_the_script_quietly(tmp_path, word):
  script = small_script.write(tmp_path)
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
  assert caplog.messages == ["Flag --text has no effect: nobody reads it."]
