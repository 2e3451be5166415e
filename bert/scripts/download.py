"""Downloads released models and public task data into a cache, and prints their folders.

  bert download --list
  bert download uncased_L-12_H-768_A-12 MRPC

What the cache has is not downloaded again. The cache is --cache_dir, else BERT_CACHE_DIR or
~/.cache/bert. Scripts download by themselves: --init_checkpoint=uncased_L-12_H-768_A-12,
--data_dir=download. This command is for machines that will have no network later.
"""

from collections.abc import Callable

from absl import flags

from bert.checkpoints import model_names, released_models
from bert.scripts import command_line, flag_groups, path_flags
from bert.tasks import public_data

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this command's flags."""
  with flag_groups.flag_group("Download"):
    flags.DEFINE_bool("list", False, "List all names and exit.")
    path_flags.define("cache_dir", None, "The folder of the cache.", local=True)


def main(argv: list[str]) -> None:
  """Prints the list, or the folder of each name, one on a line."""
  names = argv[1:]
  if FLAGS.list:
    print(list_names())
    return
  if not names:
    raise command_line.UsageError("Give the names of models or tasks, or --list.")
  downloads = [_download_of(name) for name in names]  # Names are checked before any download.
  for name, download in downloads:
    print(download(name, FLAGS.cache_dir))


def list_names() -> str:
  """Returns all models and tasks, one on a line."""
  models = [f"  {name}" for name in released_models.RELEASED_MODELS]
  tasks = [f"  {name}" for name in public_data.TASK_NAMES]
  aliases = [f"  {alias} = {name}" for alias, name in model_names.OTHER_NAMES.items()]
  return "\n".join(
    [
      *("Released models:", *models, ""),
      *("The same by other names:", *aliases, ""),
      *("Data of public tasks:", *tasks),
    ]
  )


def _download_of(name: str) -> tuple[str, Callable[[str, str | None], str]]:
  """Returns the own name of a model or task, and the function that downloads it."""
  if public_data.is_public_task(name):
    return name, public_data.download_task_data
  if released := model_names.released_name_of(name):
    return released, released_models.download_model
  import difflib  # Rarely needed, and not free to import.

  tasks = {task.lower(): task for task in public_data.TASK_NAMES}
  nearest = difflib.get_close_matches(name.lower(), tasks, n=1)
  question = f"Did you mean {tasks[nearest[0]]}? " if nearest else ""
  raise command_line.UsageError(
    f"No released model and no public task is called {name!r}. {question}"
    f"{model_names.question(name)}"
  )


if __name__ == "__main__":
  command_line.run(main, define_flags, takes_arguments=True)
