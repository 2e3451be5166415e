"""The flags that are paths, of all scripts: no flag that names a file is left out.

Whether scripts read remote files: tests/system/remote_paths_test.py.
Alone: python -m pytest tests/scripts/path_flags_test.py (seconds)
"""

import importlib

import pytest
from absl import flags

from bert import __main__ as bert_command
from bert.scripts import command_line, flag_groups, path_flags

MODULES = sorted(word.module for word in bert_command.own_words().values())
# Words in the names of flags that take paths.
_PATHS = ("file", "dir", "checkpoint", "extend", "plot")


@pytest.fixture(params=MODULES)
def script(request):
  """A script, with its flags defined."""
  module = importlib.import_module(request.param)
  with flag_groups.defined_flags(module.define_flags):
    yield module


def paths_of_script() -> list[flags.Flag]:
  return list(filter(path_flags.is_path, flag_groups.script_flags()))


def test_each_flag_that_names_a_file_is_a_path(script):
  others = [
    flag.name
    for flag in flag_groups.script_flags()
    if flag.name.endswith(_PATHS)
    and flag_groups.type_name(flag) == "string"
    and not path_flags.is_path(flag)
  ]
  assert others == []
  assert paths_of_script() or script.__name__ == "bert.none"


def test_the_users_own_folder(script, monkeypatch):
  monkeypatch.setenv("HOME", "/home/ada")
  for flag in paths_of_script():
    command_line.parse(["script.py", f"--{flag.name}=~/a.b"])
    assert flag.value in ("/home/ada/a.b", ["/home/ada/a.b"])
    if flag.parser.path.several:
      command_line.parse(["script.py", f"--{flag.name}=~/a,b,~/c*"])
      assert flag.value == "/home/ada/a,b,/home/ada/c*"


def test_the_folder_of_a_model_stands_for_its_files(script, tmp_path):
  flags_of_model = {flag.name: flag for flag in paths_of_script()}
  empty, folder = tmp_path / "empty", tmp_path / "model"
  empty.mkdir()
  folder.mkdir()
  for file in ("vocab.txt", "bert_config.json"):
    (folder / file).write_text("{}")
  for name, file in (("vocab_file", "vocab.txt"), ("bert_config_file", "bert_config.json")):
    flag = flags_of_model.get(name)
    if flag is not None:
      command_line.parse(["script.py", f"--{name}={folder}"])
      assert flag.value == str(folder / file)
      with pytest.raises(command_line.UsageError, match=f"--{name}=.*empty has no .*{file}"):
        command_line.parse(["script.py", f"--{name}={empty}"])


def test_remote_paths_where_only_local_ones_do(script):
  for flag in paths_of_script():
    if flag.parser.path.local:
      for path in ("gs://bucket/x", "s3://bucket/x", "hdfs://host/x", "https://host/x"):
        with pytest.raises(command_line.UsageError, match=f"^--{flag.name}={path}: .* is remote"):
          command_line.parse(["script.py", f"--{flag.name}={path}"])
      command_line.parse(["script.py", f"--{flag.name}=file:///tmp/x"])
      assert flag.value in ("/tmp/x", ["/tmp/x"])
    elif not flag.parser.path.is_model:
      with pytest.raises(command_line.UsageError, match=f"--{flag.name}=.*on the web. Download"):
        command_line.parse(["script.py", f"--{flag.name}=https://host/x"])
      command_line.parse(["script.py", f"--{flag.name}=gs://bucket/x"])


def test_a_lost_slash_makes_no_local_folder(script):
  for flag in paths_of_script():
    with pytest.raises(command_line.UsageError, match=r"mean gs://b/x\? If .* write \./gs:/b/x"):
      command_line.parse(["script.py", f"--{flag.name}=gs:/b/x"])


def test_an_empty_path_is_named(script, caplog):
  for flag in paths_of_script():
    before = flag.value
    if flag_groups.is_required(flag):
      with pytest.raises(command_line.UsageError, match=f"--{flag.name}= is empty: give a path"):
        command_line.parse(["script.py", f"--{flag.name}="])
    else:
      command_line.parse(["script.py", f"--{flag.name}="])
      assert f"--{flag.name}= is empty, and counts as not given." in caplog.messages
      assert flag.value == before


def test_outputs_of_runs_are_local():
  for module in ("bert.run_classifier", "bert.export_hub", "bert.plots", "bert.run_glue"):
    with flag_groups.defined_flags(importlib.import_module(module).define_flags):
      local = {flag.name for flag in paths_of_script() if flag.parser.path.local}
      assert local & {"output_dir", "export_dir", "output_file"}
