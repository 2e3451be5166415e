"""Released models and public task data, fetched once into a cache.

  folder = download_model("uncased_L-12_H-768_A-12")  # bert_config.json, vocab.txt, *.ckpt.*
  data_dir = download_task_data("MRPC")  # train.tsv, dev.tsv, test.tsv

What callers may rely on:

1. A returned folder is complete. It is unpacked aside and becomes visible by one rename, so a run
   that is killed leaves no half folder behind, and a folder that exists costs no request.
2. A broken download goes on where it stopped, now or in the next run, if the server still has the
   same file; else it starts over. Of two processes, one downloads and the other waits.
3. Nothing but HTTPS leaves this machine (plain HTTP only for a server on this machine), and no
   archive writes outside its folder, makes links, or unpacks to more than the limits below.
4. Everything that goes wrong is a `DownloadError`: one message with what to do by hand.

The cache is the argument `cache_dir`, else $BERT_CACHE_DIR, else $XDG_CACHE_HOME/bert, else
~/.cache/bert. A mirror that has the files as `models/2018_10_18/NAME.zip`, `glue/CoLA.zip`,
`mrpc/...`, `xnli/...` and `imdb/...` is named by $BERT_DOWNLOAD_BASE_URL. Without a network, put an
archive where the message says; the next run unpacks it from there.

There are no published checksums of these files. What is checked: HTTPS, the declared length, the
CRC of every archive member, and that the expected files came out.
"""

import contextlib
import os
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from bert.io.http import DownloadError, fetch, unpack

BASE_URLS = {
  "models": "https://storage.googleapis.com/bert_models/",
  "glue": "https://dl.fbaipublicfiles.com/glue/data/",
  "mrpc": "https://dl.fbaipublicfiles.com/senteval/senteval_data/",
  "xnli": "https://dl.fbaipublicfiles.com/XNLI/",
  "imdb": "https://ai.stanford.edu/~amaas/data/sentiment/",
}


# ---------------------------------------------------------------------------------------------
# What there is.


def _released_models() -> dict[str, str]:
  by_date = {
    "2018_10_18": [
      f"{case}_{size}"
      for case in ("uncased", "cased")
      for size in ("L-12_H-768_A-12", "L-24_H-1024_A-16")
    ],
    "2018_11_03": ["chinese_L-12_H-768_A-12", "multilingual_L-12_H-768_A-12"],
    "2018_11_23": ["multi_cased_L-12_H-768_A-12"],
    "2019_05_30": ["wwm_uncased_L-24_H-1024_A-16", "wwm_cased_L-24_H-1024_A-16"],
    "2020_02_20": [
      f"uncased_L-{layers}_H-{hidden}_A-{hidden // 64}"
      for layers in (2, 4, 6, 8, 10, 12)
      for hidden in (128, 256, 512, 768)
    ],
  }
  models: dict[str, str] = {}
  for date, names in by_date.items():
    for name in names:
      # BERT-Base uncased was released in 2018 and, trained anew, among the small models of 2020:
      # the plain name stays the older one, as in every published result.
      models[name if name not in models else f"{date}/{name}"] = f"{date}/{name}.zip"
  return models


RELEASED_MODELS: dict[str, str] = _released_models()
"""Name of a released model -> its archive, relative to the base URL."""

_MODEL_FILES = (
  "bert_config.json",
  "vocab.txt",
  "bert_model.ckpt.index",
  "bert_model.ckpt.data-00000-of-00001",
)


class _Task(NamedTuple):
  folder: str
  files: tuple[tuple[str, str], ...]  # (key of BASE_URLS, file name)
  needs: tuple[str, ...]  # what the folder must hold to be complete


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
    "aclImdb",
    (("imdb", "aclImdb_v1.tar.gz"),),
    ("train/pos", "train/neg", "test/pos", "test/neg"),
  ),
}


def is_released_name(text: str | None) -> bool:
  """Whether `text` names a released model, so that `download_model(text)` can fetch it.

  Example:
    >>> is_released_name("uncased_L-12_H-768_A-12"), is_released_name("/data/my_model")
    (True, False)
  """
  return text in RELEASED_MODELS


def download_model(
  name: str, cache_dir: str | os.PathLike | None = None, base_url: str | None = None
) -> str:
  """Returns the folder of a released model, fetching it if the cache lacks it.

  Args:
    name: a key of `RELEASED_MODELS`.
    cache_dir: where to keep it; see the top of this file for the default.
    base_url: what the archive's path is appended to, instead of the public address.

  Returns:
    Path of a folder with `bert_config.json`, `vocab.txt` and `bert_model.ckpt.*`. Its own name is
    the model's, so `--do_lower_case` can be checked against it.

  Raises:
    DownloadError: unknown name, no network, a file or archive that cannot be used, no space.
  """
  if name not in RELEASED_MODELS:
    known = _list(RELEASED_MODELS)
    raise DownloadError(f"No released model is called {name!r}. There are: {known}")
  archive = RELEASED_MODELS[name]
  folder = _cache_root(cache_dir) / "models" / archive[: -len(".zip")]
  urls = [_join(base_url or _base_url("models"), archive)]
  return _provide(folder, urls, _unpack_all, _MODEL_FILES)


def download_task_data(
  task_name: str, cache_dir: str | os.PathLike | None = None, base_url: str | None = None
) -> str:
  """Returns the data folder of a public task, fetching it if the cache lacks it.

  MRPC is built as GLUE builds it: its dev set is what GLUE's list of ids picks from the training
  file. Without that list there is no MRPC here rather than one with another, incomparable dev set.

  Args:
    task_name: CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE, WNLI, AX, XNLI or IMDB; case, `-` and
      `_` do not matter.
    cache_dir: where to keep it; see the top of this file for the default.
    base_url: what each file's name is appended to, instead of the public addresses.

  Returns:
    Path of a folder laid out as the task's processor reads it (`--data_dir`).

  Raises:
    DownloadError: unknown task, no network, a file or archive that cannot be used, no space.
  """
  name = task_name.lower().replace("-", "").replace("_", "")
  task = _TASKS.get("mnli" if name == "mnlimm" else name)  # one archive holds both kinds of genres
  if task is None:
    names = _list(task.folder.replace("aclImdb", "IMDB") for task in _TASKS.values())
    raise DownloadError(f"No public data is known for task {task_name!r}. There are: {names}")
  folder = _cache_root(cache_dir) / "tasks" / task.folder
  urls = [_join(base_url or _base_url(source), name) for source, name in task.files]
  build = {"MRPC": _build_mrpc, "AX": _copy_all}.get(task.folder, _unpack_all)
  return _provide(folder, urls, build, task.needs)


def _list(names) -> str:
  return ", ".join(names) + "."


def _cache_root(cache_dir: str | os.PathLike | None) -> pathlib.Path:
  # An empty variable counts as absent, as the XDG specification wants it.
  cache_dir = cache_dir or os.environ.get("BERT_CACHE_DIR")
  if cache_dir:
    return pathlib.Path(cache_dir).expanduser().absolute()
  user_caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path("~/.cache").expanduser()
  return pathlib.Path(user_caches).absolute() / "bert"


def _base_url(source: str) -> str:
  mirror = os.environ.get("BERT_DOWNLOAD_BASE_URL")
  return _join(mirror, source) if mirror else BASE_URLS[source]


def _join(base_url: str, path: str) -> str:
  return base_url.rstrip("/") + "/" + path


# ---------------------------------------------------------------------------------------------
# The cache: one folder per model or task, complete or absent.


def _provide(
  folder: pathlib.Path,
  urls: list[str],
  build: Callable[[list[pathlib.Path], pathlib.Path], None],
  needs: tuple[str, ...],
) -> str:
  """Returns `folder`, after fetching `urls` and building it from them if it is not there."""
  if not folder.exists():
    try:
      folder.parent.mkdir(parents=True, exist_ok=True)
      with _lock(folder.with_name(folder.name + ".lock")):
        # Another process may have finished it while this one waited for the lock.
        if not folder.exists():
          _fetch_and_build(folder, urls, build, needs)
    except OSError as error:
      raise DownloadError(
        f"Cannot write the cache {folder.parent}: {error}. Make room there, or name another place "
        "in the environment variable BERT_CACHE_DIR."
      ) from error
  missing = [name for name in needs if not (folder / name).exists()]
  if missing:
    raise DownloadError(f"{folder} lacks {_list(missing)} Delete the folder to fetch it again.")
  return str(folder)


def _fetch_and_build(folder, urls, build, needs) -> None:
  downloads = [_obtain(url, folder.parent / url.rsplit("/", 1)[1]) for url in urls]
  aside = folder.with_name(f".{folder.name}.unpacking")
  _remove(aside)  # left behind by a run that was killed
  aside.mkdir()
  try:
    print(f"Unpacking to {folder}", file=sys.stderr)
    build([download.path for download in downloads], aside)
    missing = [name for name in needs if not (aside / name).exists()]
    if missing:
      raise DownloadError(f"{_list(urls)[:-1]} did not bring {_list(missing)}")
    if hasattr(os, "sync"):
      os.sync()  # the rename must not reach the disk before the files do
    os.rename(aside, folder)
  except BaseException as error:
    _remove(aside)
    if isinstance(error, DownloadError):
      # What cannot be unpacked must not be resumed or reused: the next run fetches it afresh.
      _discard(downloads)
    raise
  _discard(downloads)


class _Download(NamedTuple):
  path: pathlib.Path
  by_hand: bool  # put there by the user: not ours to delete


def _obtain(url: str, path: pathlib.Path) -> _Download:
  """Fetches `url` to `path` + ".part", unless the user has put the file at `path` already."""
  if path.exists():
    return _Download(path, by_hand=True)
  part = path.with_name(path.name + ".part")
  try:
    fetch(url, part)
  except DownloadError as error:
    raise DownloadError(
      f"{error} Or fetch it by other means, put it at {path}, and run again."
    ) from error
  return _Download(part, by_hand=False)


def _discard(downloads: list[_Download]) -> None:
  for download in downloads:
    if not download.by_hand:
      _remove(download.path)
      _remove(download.path.with_name(download.path.name + ".json"))


def _remove(path: pathlib.Path) -> None:
  if path.is_dir():
    shutil.rmtree(path)
  else:
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def _lock(path: pathlib.Path) -> Iterator[None]:
  """Holds `path` locked; waits for another holder. The system frees it when a process dies."""
  with open(path, "a+b") as file:
    if not _try_lock(file):
      print(f"Waiting for another process that prepares {path.stem}", file=sys.stderr)
      while not _try_lock(file):
        time.sleep(0.2)
    yield  # closing the file frees the lock


def _try_lock(file: BinaryIO) -> bool:
  try:
    if os.name == "nt":
      import msvcrt

      file.seek(0)
      msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
      import fcntl

      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except (BlockingIOError, PermissionError):
    return False
  return True


# ---------------------------------------------------------------------------------------------
# From downloaded files to a folder.


def _unpack_all(archives: list[pathlib.Path], folder: pathlib.Path) -> None:
  """Unpacks `archives` into `folder`, without the one folder that each wraps its files in."""
  for archive in archives:
    staging = folder / ".archive"
    staging.mkdir()
    unpack(archive, staging)
    for path in _without_wrapper(staging).iterdir():
      # Two archives of one task may both have a README: the first one's stays.
      if not (folder / path.name).exists():
        os.rename(path, folder / path.name)
    shutil.rmtree(staging)


def _without_wrapper(folder: pathlib.Path) -> pathlib.Path:
  inside = [path for path in folder.iterdir() if not path.name.startswith((".", "__MACOSX"))]
  return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


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
