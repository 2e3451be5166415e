"""Public data of tasks, laid out as the tasks' processors read it, downloaded once into a cache.

data_dir = download_task_data("MRPC")  # train.tsv, dev.tsv, test.tsv
"""

import os
import pathlib
import shutil
import sys
from typing import NamedTuple

from bert.io import download_cache
from bert.io.http import DownloadError

BASE_URLS = {
  "glue": "https://dl.fbaipublicfiles.com/glue/data/",
  "mrpc": "https://dl.fbaipublicfiles.com/senteval/senteval_data/",
  "xnli": "https://dl.fbaipublicfiles.com/XNLI/",
  "imdb": "https://ai.stanford.edu/~amaas/data/sentiment/",
}


class _Task(NamedTuple):
  folder: str
  files: tuple[tuple[str, str], ...]  # (key of BASE_URLS, file name)
  needs: tuple[str, ...]  # names that a complete folder has


_SPLITS = ("train.tsv", "dev.tsv", "test.tsv")
_MNLI_FILES = (
  "train.tsv",
  *(f"{split}_{kind}.tsv" for split in ("dev", "test") for kind in ("matched", "mismatched")),
)
_TASKS = {
  "cola": _Task("CoLA", (("glue", "CoLA.zip"),), _SPLITS),
  "sst2": _Task("SST-2", (("glue", "SST-2.zip"),), _SPLITS),
  "qqp": _Task("QQP", (("glue", "QQP-clean.zip"),), _SPLITS),
  "stsb": _Task("STS-B", (("glue", "STS-B.zip"),), _SPLITS),
  "mnli": _Task("MNLI", (("glue", "MNLI.zip"),), _MNLI_FILES),
  "qnli": _Task("QNLI", (("glue", "QNLIv2.zip"),), _SPLITS),
  "rte": _Task("RTE", (("glue", "RTE.zip"),), _SPLITS),
  "wnli": _Task("WNLI", (("glue", "WNLI.zip"),), _SPLITS),
  "ax": _Task("AX", (("glue", "AX.tsv"),), ("AX.tsv",)),
  "mrpc": _Task(
    "MRPC",
    (
      ("mrpc", "msr_paraphrase_train.txt"),
      ("mrpc", "msr_paraphrase_test.txt"),
      ("glue", "mrpc_dev_ids.tsv"),
    ),
    _SPLITS,
  ),
  "xnli": _Task(
    "XNLI",
    (("xnli", "XNLI-1.0.zip"), ("xnli", "XNLI-MT-1.0.zip")),
    ("xnli.dev.tsv", "xnli.test.tsv", "multinli/multinli.train.zh.tsv"),
  ),
  "imdb": _Task(
    "aclImdb", (("imdb", "aclImdb_v1.tar.gz"),), ("train/pos", "train/neg", "test/pos", "test/neg")
  ),
}


TASK_NAMES = tuple(task.folder.replace("aclImdb", "IMDB") for task in _TASKS.values())
"""Names of the tasks whose data are public."""


def is_public_task(task_name: str) -> bool:
  """Tells whether `download_task_data` knows the task.

  Example:
    >>> is_public_task("sst_2"), is_public_task("SQuAD")
    (True, False)
  """
  return _find(task_name) is not None


def spelled(task_name: str) -> str:
  """Writes the name of a public task as people do, another as it is.

  Example:
    >>> spelled("sst_2"), spelled("mnli_mm"), spelled("stars")
    ('SST-2', 'MNLI', 'stars')
  """
  names = dict(zip(_TASKS.values(), TASK_NAMES, strict=True))
  task = _find(task_name)
  return names[task] if task else task_name


def _find(task_name: str) -> _Task | None:
  name = task_name.lower().replace("-", "").replace("_", "")
  return _TASKS.get("mnli" if name == "mnlimm" else name)  # one archive holds both dev sets


def download_task_data(
  task_name: str, cache_dir: str | os.PathLike | None = None, base_url: str | None = None
) -> str:
  """Provides the data folder of a public task, downloaded if the cache does not have it.

  MRPC is built as GLUE builds it: GLUE's list of ids selects its dev set from the training file.
  Without that list an error is raised: with another dev set results would not be comparable.

  Args:
    task_name: CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE, WNLI, AX, XNLI or IMDB; case, `-` and
      `_` do not matter.
    cache_dir: where to keep it; see `bert/io/download_cache.py` for the default.
    base_url: each file's name is appended to it, instead of the public addresses.

  Returns:
    Path of a folder laid out as the task's processor reads it (`--data_dir`).

  Raises:
    DownloadError: unknown task, no network, a file or archive that cannot be used, no space.
  """
  task = _find(task_name)
  if task is None:
    names = ", ".join(TASK_NAMES)
    raise DownloadError(f"No public data is known for task {task_name!r}. Known: {names}.")
  urls = [
    download_cache.url_of(name, source, BASE_URLS[source], base_url) for source, name in task.files
  ]
  build = {"MRPC": _build_mrpc, "AX": _copy_all}.get(task.folder, download_cache.unpack_all)
  return download_cache.provide(f"tasks/{task.folder}", urls, build, task.needs, cache_dir)


# ---------------------------------------------------------------------------------------------
# From downloaded files to a folder.


def _copy_all(files: list[pathlib.Path], folder: pathlib.Path) -> None:
  for file in files:
    shutil.copyfile(file, folder / file.name.removesuffix(".part"))


def _build_mrpc(files: list[pathlib.Path], folder: pathlib.Path) -> None:
  """Splits the Microsoft Research Paraphrase Corpus as GLUE does.

  The rows of the training file whose pair of ids is on GLUE's list become the dev set; the test
  rows lose their label to a running index. Lines stay as they are otherwise, byte order mark too.
  """
  train_file, test_file, dev_ids_file = files
  dev_ids = {tuple(row) for row in _rows(dev_ids_file, columns=2)}
  header, *rows = _rows(train_file, columns=5)
  dev = [row for row in rows if tuple(row[1:3]) in dev_ids]
  train = [row for row in rows if tuple(row[1:3]) not in dev_ids]
  if not dev or not train:
    raise DownloadError(f"The ids in {dev_ids_file} do not split the rows of {train_file}.")
  test = [[str(i), *row[1:]] for i, row in enumerate(_rows(test_file, columns=5)[1:])]
  _write_rows(folder / "train.tsv", [header, *train])
  _write_rows(folder / "dev.tsv", [header, *dev])
  test_header = ["index", "#1 ID", "#2 ID", "#1 String", "#2 String"]
  _write_rows(folder / "test.tsv", [test_header, *test])
  print(f"MRPC: {len(train)} train, {len(dev)} dev, {len(test)} test pairs", file=sys.stderr)


def _rows(path: pathlib.Path, columns: int) -> list[list[str]]:
  rows = []
  try:
    with open(path, encoding="utf-8") as file:
      for number, line in enumerate(file, start=1):
        row = line.strip().split("\t")
        if len(row) != columns:
          raise DownloadError(f"{path}, line {number}: {len(row)} columns instead of {columns}.")
        rows.append(row)
  except UnicodeDecodeError as error:
    raise DownloadError(f"{path} is not UTF-8 text ({error}).") from error
  if not rows:
    raise DownloadError(f"{path} is empty.")
  return rows


def _write_rows(path: pathlib.Path, rows: list[list[str]]) -> None:
  lines = ["\t".join(row) + "\n" for row in rows]
  path.write_text("".join(lines), encoding="utf-8", newline="\n")
