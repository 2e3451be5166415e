"""Tests of bert/scripts/flag_groups.py."""

import json
import subprocess
import sys

import pytest
from absl import flags

from bert.scripts import command_line, flag_groups, help_text, run_settings
from tests.kit.paths import ROOT
from tests.kit.small_script import define_some


def test_importing_defines_no_flag():
  code = (
    "from absl import flags, logging; before = set(flags.FLAGS)\n"
    "from bert.scripts import command_line, flag_groups, help_text\n"
    "assert set(flags.FLAGS) == before"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


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
    with pytest.raises(flags.DuplicateFlagError, match="count"), flag_groups.flag_group("Other"):
      define()
    assert (values["count"].default, values.count) == (3, 5)


def test_a_flag_of_absl_cannot_be_redefined():
  with pytest.raises(flags.DuplicateFlagError, match="verbosity"), flag_groups.flag_group("Other"):
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
  assert names == ["count", "do_lower_case", "plugin", "rate", "switch", "text", "verbose_errors"]


def test_flags_of_libraries_are_none_of_the_script():
  values = flags.FlagValues()
  of_library = flags.Flag(flags.ArgumentParser(), flags.ArgumentSerializer(), "trace", None, "T.")
  flags.DEFINE_string("text", None, "T.", flag_values=values)
  values["trace"] = of_library
  values.register_flag_by_module("tensorflow.python.tpu.flags", of_library)
  assert flag_groups.own_names(values) == ["text"]


@pytest.mark.parametrize(
  ("script", "settings_class"),
  [("run_classifier", run_settings.TpuSettings), ("extract_features", run_settings.TpuSwitch)],
)
def test_tpu_flags_are_those_of_the_original(golden_dir, script, settings_class):
  golden = json.loads((golden_dir / "flags.json").read_text())[script]
  expected = [
    each
    for each in golden
    if each["name"].endswith("tpu")
    or each["name"].startswith(("tpu_", "gcp_", "master", "num_tpu"))
  ]
  with flag_groups.defined_flags(lambda: flag_groups.define(settings_class)):
    of_all_scripts = ("plugin", "verbose_errors")
    own = [each for each in flag_groups.describe() if each["name"] not in of_all_scripts]
  assert own == expected
  assert len(own) == (6 if script == "run_classifier" else 3)


@pytest.mark.ci
@pytest.mark.parametrize(
  ("script", "flag", "length"),
  [
    ("run_classifier", "data_dir", 128),
    ("run_squad", "train_file", 384),
    ("run_pretraining", "input_file", 128),
  ],
)
def test_a_script_of_2018_finds_the_flags_of_the_one_it_imports(script, flag, length):
  code = (
    "from absl import app, flags\n"
    f"from bert import {script} as script\n"
    "FLAGS = script.FLAGS\n"
    f"flags.mark_flag_as_required('{flag}')\n"
    "flags.DEFINE_string('mine', None, 'Of the fork.')\n"
    "def main(_):\n"
    f"  assert script.FLAGS.{flag} == 'x' and FLAGS.mine == 'y'\n"
    f"  assert FLAGS.max_seq_length == {length}\n"
    f"app.run(main, ['fork.py', '--{flag}=x', '--mine=y'])\n"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
