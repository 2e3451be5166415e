"""Compares what two checkouts compute, to the bit.

  python -m tools.same_results OLD_CHECKOUT [--only=classifier,ner] [--out=FOLDER] [--continued]

The same commands (`result_runs.RUNS`) run with the old checkout and with this one, on the same tiny
data. Compared is all that they leave: each tensor of each checkpoint, each record, the figures of
each training step, each value of results, predictions and sidecars. One line is printed for each
kind of runs, and each difference by its name; the exit code is 1 if there is any.

With `--continued` both take over what the old checkout has left, and train twice as long: old
folders load and resume.

What was run stays in `--out` under a digest of sources, data and flags, so only what has changed
is run again. A change on purpose is listed in `ON_PURPOSE`, with its reason.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bert.checkpoints.numpy_reader import CheckpointReader
from bert.io import tfrecord_bytes
from bert.scripts import flag_names
from tests.kit import event_files
from tests.kit.paths import ROOT
from tools import forked_commands, result_runs

# Times, also in the report of many runs, each of which has a folder of its own; and check sums of
# files whose content is compared by itself.
IGNORED = re.compile(
  r"log_\d+\.txt|log\.txt|run\.log|/sec|seconds|\.state\.json: (crc32|files/)|\.data-\d+-of-\d+"
  r"|manifest\.json: .*(seconds|time)"
  r"|^out/results\.(txt: line|json: runs)"
)
_RETIRED = "|".join(flag_names.removed_names())
# Pattern of a kind of runs and a name, `ner/out/a.json: key` -> why it differs from the checkout
# that was the last one to be compared with.
ON_PURPOSE: dict[str, str] = {
  r"\.state\.json: state/fingerprint/(model_type|classifier_activation|embedding_size|num_hidden_"
  r"groups|inner_group_num|layer_norm_eps|pad_token_id|transformers_heads)$": (
    "the fingerprint has every value of the configuration that decides what weights compute"
  ),
  r"\.state\.json: state/fingerprint/(strip_accents|tokenize_chinese_chars)$": (
    "the fingerprint has how words are split"
  ),
  r"(flags\.json: |report\.html: flags/)(plugin|verbose_errors)$": (
    "flags.json holds settings of the run, and no flags of all scripts"
  ),
  r"(flags\.json: |report\.html: flags/|run\.json: settings/|state/(informative|fingerprint)/)"
  rf"({_RETIRED})$": ("flags that are gone"),
  r"^similarity_\w+/out/flags\.json": "run_similarity has the flags of many runs",
  r"dev_summary\.json": "every run that evaluates says how to read its results",
  r"/model\.ckpt-0\.|/checkpoint: line": (
    "the untrained weights of a run are removed once a later checkpoint exists"
  ),
  r"/example\.json: |bert_run\.json: settings/example|/README\.md: line": (
    "a run keeps a text of its data, with which it shows how the model is used"
  ),
  r"report\.html: (task$|interval|cautions|findings|examples/highest_loss)": (
    "the report has an interval, names leakage and tiny classes, and shows wrong examples alone"
  ),
  r"(flags\.json: |report\.html: flags/|run\.json: settings/|state/(informative|fingerprint)/)"
  r"(merge_labels|skip_bad_rows|answer_scores)$": "flags for faults of data",
  r"state/informative/texts_in|settings/texts_in": "a run keeps the columns of its texts",
  r"gflop_per_example|total_GFLOP": "FLOPs are not counted",
  r"^(pretraining|distillation_records).*report\.html: (examples|missing)": (
    "reports of pre-training guess no words"
  ),
  r"report\.html: (examples|missing)": (
    "a run's report is made of what its evaluation computed, and explains fewer answers"
  ),
  r"report\.html: failure$": "the report of a single run says why its model failed",
  r"^classifier_many/out/((features|ensemble|soup)/|results\.json: (ensemble|soup)|results\.png"
  r"|report\.html|run\.json|seed_\d+/(outputs_|command\.txt|\.?\w+\.tf_record|run\.json: "
  r"settings/data))": (
    "runs of several seeds have records of their own, are not averaged, and have another page"
  ),
}
_QUIET = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
MOST_SHOWN = 12


class Result(NamedTuple):
  """What a kind of runs has left."""

  folder: pathlib.Path  # where it lies
  seconds: float | None  # how long it took; None if it had been run before
  failure: str  # the end of the log of a command that failed; empty if all went well


# ---------------------------------------------------------------------------------------------
# Running.


def prepared_data(out: pathlib.Path) -> pathlib.Path:
  """Writes the data of all runs; returns `OUT/data-DIGEST`."""
  with tempfile.TemporaryDirectory(dir=out) as folder:
    result_runs.write_data(pathlib.Path(folder) / "data")
    found = out / f"data-{_digest_of_files(pathlib.Path(folder))}"
    if not found.exists():
      os.rename(pathlib.Path(folder) / "data", found)
  return found


def run_all(
  checkout: pathlib.Path,
  names: list[str],
  data: pathlib.Path,
  earlier: Mapping[str, Result] = types.MappingProxyType({}),
) -> Iterator[tuple[str, Result]]:
  """Runs what has not been run before; yields each name and what its commands have left.

  Names are keys of `result_runs.RUNS`, data of `prepared_data`; what is run goes to a folder
  beside.
  """
  sources = _digest_of_files(checkout, "*.py", "bert/**/*.py")
  jobs = []
  for name in names:
    commands = _command_lines(name, f"../../{data.name}", times=2 if name in earlier else 1)
    start = earlier[name].folder if name in earlier else None
    key = hashlib.sha256(f"{sources}{commands}{start or ''}".encode()).hexdigest()[:12]
    folder = data.parent / "runs" / f"{name}-{key}"
    if folder.exists():
      yield name, Result(folder, None, "")
    else:
      jobs.append((name, folder, commands, start))
  if jobs:
    yield from _run_jobs(checkout, jobs)


def _run_jobs(checkout, jobs) -> Iterator[tuple[str, Result]]:
  runs = jobs[0][1].parent
  runs.mkdir(exist_ok=True)
  asides = [pathlib.Path(tempfile.mkdtemp(prefix=f".{name}-", dir=runs)) for name, *_ in jobs]
  for aside, (*_, start) in zip(asides, jobs, strict=True):
    if start:
      shutil.copytree(start, aside, dirs_exist_ok=True)
  described = [(str(aside), job[2]) for aside, job in zip(asides, jobs, strict=True)]
  environment = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
  process = subprocess.Popen(
    [sys.executable, forked_commands.__file__, str(checkout)],
    env={**environment, "PYTHONPATH": str(checkout), **_QUIET},
    cwd=checkout,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  process.stdin.write(json.dumps(described))
  process.stdin.close()
  before = time.monotonic()
  for aside, (name, folder, *_) in zip(asides, jobs, strict=True):
    codes = json.loads(process.stdout.readline() or "[1]")
    failure = ""
    if codes[-1]:
      log = aside / f"log_{len(codes) - 1}.txt"
      failure = log.read_text(errors="replace")[-800:] if log.exists() else "It was not started."
    else:
      shutil.rmtree(folder, ignore_errors=True)
      os.rename(aside, folder)
    seconds, before = time.monotonic() - before, time.monotonic()
    yield name, Result(aside if failure else folder, seconds, failure)
  process.wait()


def _command_lines(name: str, data: str, times: int) -> list[tuple[str, list[str]]]:
  def word(flag, value) -> str:
    is_length = flag in ("num_train_epochs", "num_train_steps")
    return f"--{flag}={str(value * times if is_length else value).replace('{}', data)}"

  return [
    (script, [word(flag, value) for flag, value in flags.items()])
    for script, flags in result_runs.RUNS[name]
  ]


def _digest_of_files(folder: pathlib.Path, *patterns: str) -> str:
  digest = hashlib.sha256()
  files = {path for pattern in patterns or ["**/*"] for path in folder.glob(pattern)}
  for path in sorted(path for path in files if path.is_file()):
    digest.update(f"{path.relative_to(folder)}\n{path.stat().st_size}\n".encode())
    digest.update(path.read_bytes())
  return digest.hexdigest()[:12]


# ---------------------------------------------------------------------------------------------
# Comparing.


def contents(folder: pathlib.Path) -> dict[str, Any]:
  """All that runs have left: the name of each value, with its file -> the value."""
  found: dict[str, Any] = {}
  for path in sorted(path for path in folder.rglob("*") if path.is_file()):
    file = str(path.relative_to(folder))
    if IGNORED.search(file):
      continue
    if path.name.startswith("events.out."):
      file = str(path.parent.relative_to(folder) / "events")
    for name, value in _values_in(path).items():
      found[f"{file}: {name}"] = value
  return {name: value for name, value in found.items() if not IGNORED.search(name)}


def _values_in(path: pathlib.Path) -> dict[str, Any]:
  if path.name.startswith("events.out."):
    steps = event_files.scalars_in(path.parent)
    return {f"{tag} {step}": value for step, tags in steps.items() for tag, value in tags.items()}
  if path.suffix == ".index":
    reader = CheckpointReader(str(path.with_suffix("")))
    return {name: reader.read(name) for name in reader.contents}
  if path.suffix == ".npz":
    with np.load(path) as arrays:
      return dict(arrays)
  if path.suffix in (".tf_record", ".tfrecord"):
    return dict(_numbered("record", _framed(path.read_bytes())))
  data = path.read_bytes()
  try:
    text = data.decode()
  except UnicodeDecodeError:
    return {"bytes": data}
  if path.suffix == ".json":
    return dict(_flat(json.loads(text)))
  if path.name == "report.html":  # its numbers; its style may change
    return dict(_flat(json.loads(re.search(r'id="report-data">(.*?)</script>', text, re.S)[1])))
  return dict(_numbered("line", text.splitlines()))


def _framed(data: bytes) -> Iterator[bytes]:
  start = 0
  while start < len(data):
    end = start + tfrecord_bytes.framed_size(data[start:])
    yield data[start:end]
    start = end


def _numbered(title: str, values) -> Iterator[tuple[str, Any]]:
  return ((f"{title} {number}", value) for number, value in enumerate(values, start=1))


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
  """The leaves of a JSON value, each with its path; an empty object is a leaf, too."""
  if not isinstance(value, Mapping) or not value:
    yield name, value
    return
  for key, each in value.items():
    yield from _flat(each, f"{name}/{key}" if name else key)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
  """The name of each value that is not equal to the bit -> how it differs.

  Example:
    >>> differences({"a": 1, "b": np.float32(1)}, {"a": 1, "b": np.float32(2), "c": 3})
    {'b': '1.0, now 2.0', 'c': 'only now'}
  """
  found = {}
  for name in [*old, *(name for name in new if name not in old)]:
    if name not in new:
      found[name] = "no more"
    elif name not in old:
      found[name] = "only now"
    elif not _are_equal(old[name], new[name]):
      found[name] = _described(old[name], new[name])
  return found


def _are_equal(one: Any, other: Any) -> bool:
  if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
    same_kind = (one.dtype, one.shape) == (other.dtype, other.shape)
    return same_kind and one.tobytes() == other.tobytes()
  return type(one) is type(other) and repr(one) == repr(other)  # so that NaN equals NaN


def _described(old: Any, new: Any) -> str:
  if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.ndim:
    if (old.dtype, old.shape) != (new.dtype, new.shape):
      return f"{old.dtype} {old.shape}, now {new.dtype} {new.shape}"
    if old.dtype.kind in "fiu":
      difference = np.abs(old.astype(np.float64) - new.astype(np.float64))
      return f"{np.count_nonzero(difference)} of {old.size} values, by {difference.max():.3g}"
  return f"{old!s:.60}, now {new!s:.60}"


def report(name: str, old: Result, new: Result) -> bool:
  """Prints what differs in a kind of runs; returns whether nothing does but on purpose."""
  for side, result in (("old", old), ("new", new)):
    if result.failure:
      print(f"{name}: FAILED with the {side} checkout, see {result.folder}\n{result.failure}")
      return False
  before, after = contents(old.folder), contents(new.folder)
  found = differences(before, after)
  purposes = {each: _purpose_of(f"{name}/{each}") for each in found}
  open_ones = [each for each in found if not purposes[each]]
  took = "" if new.seconds is None else f", {new.seconds:.0f} s"
  verdict = f"{len(open_ones)} of {len(after)} DIFFER" if open_ones else f"{len(after)} equal"
  print(f"{name}: {verdict}{took}", flush=True)
  for each in open_ones[:MOST_SHOWN]:
    print(f"  {each}: {found[each]}")
  if len(open_ones) > MOST_SHOWN:
    print(f"  and {len(open_ones) - MOST_SHOWN} more; compare {old.folder} {new.folder}")
  for reason in dict.fromkeys(filter(None, purposes.values())):
    print(f"  {list(purposes.values()).count(reason)} on purpose: {reason}")
  return not open_ones


def _purpose_of(name: str) -> str | None:
  return next((why for pattern, why in ON_PURPOSE.items() if re.search(pattern, name)), None)


def compare(
  old: pathlib.Path, new: pathlib.Path, names: list[str], out: pathlib.Path, continued: bool = False
) -> bool:
  """Runs both checkouts and reports; returns whether all is equal."""
  out.mkdir(parents=True, exist_ok=True)
  data = prepared_data(out)
  before, earlier = dict(run_all(old, names, data)), {}
  if continued:
    earlier = before
    before = dict(run_all(old, names, data, earlier))
  verdicts = [report(name, before[name], now) for name, now in run_all(new, names, data, earlier)]
  return all(verdicts)


def main() -> int:
  """Reads the command line; returns the exit code."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("old_checkout", type=pathlib.Path)
  parser.add_argument("--only", default="", help=f"of {', '.join(result_runs.RUNS)}")
  parser.add_argument("--out", type=pathlib.Path, default=f"{tempfile.gettempdir()}/same_results")
  parser.add_argument("--continued", action="store_true", help="take over the old one's folders")
  given = parser.parse_args()
  names = given.only.split(",") if given.only else list(result_runs.RUNS)
  if unknown := [name for name in names if name not in result_runs.RUNS]:
    parser.error(f"--only={','.join(unknown)}: known are {', '.join(result_runs.RUNS)}")
  old = given.old_checkout.resolve()
  return 0 if compare(old, ROOT, names, given.out.resolve(), given.continued) else 1


if __name__ == "__main__":
  sys.exit(main())
