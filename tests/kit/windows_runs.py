"""Every script once by Windows' rules, in one process: `python -m tests.kit.windows_runs FOLDER`.

To be started with `windows_rules.environment()`. Prints the scripts that ran; of one that does not,
what it wrote to stderr.
"""

import pathlib
import shutil
import sys
import traceback

from tests.kit import every_script

# Beside the flags of `every_script.RUNS`: processes, all steps of the main job, learned pieces.
_CHANGED = {
  "run_classifier": {"do_predict": True, "save_checkpoints_steps": 1},
  "run_pretraining": {"num_train_steps": 2},
  "create_pretraining_data": {"num_workers": 2},
  "create_vocab": {"extend": "", "vocab_size": 60, "num_workers": 2},
}
_IGNORED = {"create_vocab": ("extend_by", "num_new")}
_EXPORTS = "export_hub"


def main(folder: pathlib.Path) -> int:
  """Runs them, the main job twice: the second goes on from the first one's checkpoint."""
  folder.mkdir(parents=True)
  files = every_script.write_files(folder)
  tables = folder / "tables"
  shutil.copy(tables / "dev.csv", tables / "test.csv")  # for --do_predict
  failed = 0
  for name in [*every_script.RUNS, "run_classifier"]:
    given = every_script.flags(name, files, folder / name, **_CHANGED.get(name, {}))
    for flag in _IGNORED.get(name, ()):
      del given[flag]
    (folder / name).mkdir(exist_ok=True)
    try:
      if name == _EXPORTS:
        assert "needs tensorflow-text" in every_script.script(name).error_of(**given)
      else:
        done = every_script.script(name).run(**given)
        assert done.code in (None, 0), done.err
    except Exception:
      print(f"{name}:\n{traceback.format_exc()[-4000:]}", file=sys.stderr)
      failed = 1
    else:
      print(name, flush=True)
  return failed


if __name__ == "__main__":
  sys.exit(main(pathlib.Path(sys.argv[1])))
