"""What benchmarks share: systems that take turns, medians, a table, and one JSON line last.

Each system lives in a process of its own, so that none uses another's threads or memory:

  systems = {"ours": fn, "onnxruntime": fn}        # name -> function without arguments -> number
  values = take_turns(systems, repeats=5)          # name -> five numbers, measured in alternation
  rows = [Row("1 x 32", name, "ms", values[name]) for name in systems]
  report("encoder_inference", rows, references=["onnxruntime"])

What else runs on the machine then hits all systems alike, so that ratios hold where absolute
figures do not. Every report says how much of the machine's own speed at large matrix products
(`ceiling.py`, measured in the same run) a system has reached.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKERS = ROOT / "benchmarks" / "workers"

# ---------------------------------------------------------------------------------------------
# Models that are made here.


def write_config(
  folder: pathlib.Path, vocab_size: int, layers: int, hidden_size: int, **more
) -> dict:
  """Writes the `bert_config.json` of a model for sequences of up to 128 pieces; returns it.

  Args:
    folder: an existing one.
    vocab_size: of the model.
    layers: of the encoder.
    hidden_size: a multiple of 64, the width of a head.
    **more: further keys of the file, or other values.
  """
  config = {
    "vocab_size": vocab_size,
    "hidden_size": hidden_size,
    "num_hidden_layers": layers,
    "num_attention_heads": hidden_size // 64,
    "intermediate_size": 4 * hidden_size,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 128,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    **more,
  }
  (folder / "bert_config.json").write_text(json.dumps(config, indent=2) + "\n")
  return config


# ---------------------------------------------------------------------------------------------
# Flags that all scripts have.


def add_peer_flags(parser) -> None:
  """Adds `--peer_python` and `--repeats`."""
  parser.add_argument(
    "--peer_python",
    default=str(ROOT / ".bench-venv" / "bin" / "python"),
    help="interpreter with benchmarks/peers.txt; empty: measure this project alone",
  )
  parser.add_argument("--repeats", type=int, default=5, help="turns of each system")


def add_weights_flag(parser, required: bool = True) -> None:
  """Adds `--weights`: its value is the folder of a model, downloaded if it is a released one."""
  parser.add_argument(
    "--weights",
    required=required,
    type=_model_folder,
    help="folder of a checkpoint of the original's format, or the name of a released model",
  )


def _model_folder(model: str) -> str:
  from bert.checkpoints import model_files, model_source

  try:
    return model_files.folder_of(model_source.local_path(model))
  except (ValueError, OSError) as error:
    raise argparse.ArgumentTypeError(str(error)) from None


def checkpoint_in(folder: str | os.PathLike) -> str:
  """The prefix of the checkpoint in a folder, which the original needs."""
  from bert.checkpoints import finding

  return finding.find_checkpoint(folder)


def check_peer(python: str) -> None:
  """Ends the program with a hint if the peers' interpreter does not exist."""
  if python and not os.access(python, os.X_OK):
    sys.exit(
      f"--peer_python={python} is not there. `make bench-setup` makes it, --peer_python=PATH names "
      "another, and --peer_python= measures this project alone."
    )


def numbers(kind: Callable[[str], float]) -> Callable[[str], list]:
  """The type of a flag whose value is several numbers.

  Example:
    >>> numbers(int)("1,2,3")
    [1, 2, 3]
  """
  return lambda text: [kind(each) for each in text.split(",")]


# ---------------------------------------------------------------------------------------------
# Turns, rows, report.


def take_turns(systems: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
  """Measures all systems once, then all once again, and so on; prints each value to stderr.

  Example:
    >>> take_turns({"a": lambda: 1.0, "b": lambda: 2.0}, repeats=2)
    {'a': [1.0, 1.0], 'b': [2.0, 2.0]}
  """
  values = {name: [] for name in systems}
  for turn in range(1, repeats + 1):
    for name, measure in systems.items():
      values[name].append(measure())
      print(f"turn {turn} of {repeats}, {name}: {values[name][-1]:.4g}", file=sys.stderr)
  return values


@dataclasses.dataclass
class Row:
  """What one system did at one task.

  Attributes:
    what: the task, such as `32 x 128`.
    system: who did it.
    unit: of the values; those that end in `/s` are better when larger, others when smaller.
    values: one for each turn.
    flops: floating-point operations of matrix products that one unit stands for (one item for a
      speed, one call for a time); 0 if that says nothing.
    dtype: of these products.
  """

  what: str
  system: str
  unit: str
  values: Sequence[float]
  flops: float = 0.0
  dtype: str = "float32"

  @property
  def median(self) -> float:
    return statistics.median(self.values)

  def times(self, other: "Row") -> float:
    """How many times as fast as `other` this is.

    Example:
      >>> Row("", "ours", "ms", [2.0]).times(Row("", "peer", "ms", [3.0]))
      1.5
      >>> Row("", "ours", "texts/s", [30.0]).times(Row("", "peer", "texts/s", [20.0]))
      1.5
    """
    ratio = self.median / other.median
    return ratio if self.unit.endswith("/s") else 1.0 / ratio

  def flops_per_second(self) -> float:
    if self.unit.endswith("/s"):
      return self.flops * self.median
    seconds = self.median * {"ms": 1e-3, "s": 1.0}[self.unit]
    return self.flops / seconds


def summarise(
  rows: Sequence[Row], references: Sequence[str], ceiling: Mapping[str, float]
) -> list[dict]:
  """Rows as JSON-able dicts: median, spread, times each reference, share of the ceiling.

  Args:
    rows: of all tasks and systems.
    references: names of systems to divide by.
    ceiling: dtype -> FLOP/s; a dtype that is missing has no share.

  Example:
    >>> rows = [Row("a", "ours", "ms", [1.0, 3.0, 2.0], 4e6), Row("a", "peer", "ms", [4.0])]
    >>> summarise(rows, ["peer"], {"float32": 4e9})[0]["times"]
    {'peer': 2.0}
    >>> summarise(rows, ["peer"], {"float32": 4e9})[0]["of_ceiling"]
    0.5
  """
  by_name = {(row.what, row.system): row for row in rows}
  summary = []
  for row in rows:
    facts = {"what": row.what, "system": row.system, "unit": row.unit, "median": row.median}
    facts |= {"min": min(row.values), "max": max(row.values), "repeats": len(row.values)}
    found = {name: by_name.get((row.what, name)) for name in references}
    facts["times"] = {name: row.times(other) for name, other in found.items() if other}
    if row.flops and row.dtype in ceiling:
      facts["of_ceiling"] = row.flops_per_second() / ceiling[row.dtype]
    summary.append(facts)
  return summary


def table(results: Sequence[Mapping], references: Sequence[str]) -> list[list[str]]:
  """Cells of the table that `report` prints, its head first.

  Example:
    >>> row = {"what": "a", "system": "ours", "unit": "ms", "median": 2.0, "min": 1.5, "max": 3.0}
    >>> table([{**row, "times": {"peer": 2.0}, "of_ceiling": 0.5}], ["peer"])[1]
    ['a', 'ours', '2 ms', '1.5-3', '2.00', '50%']
  """
  cells = [["", "system", "median", "spread", *(f"times {n}" for n in references), "of ceiling"]]
  for facts in results:
    ratios = [facts["times"].get(name) for name in references]
    share = facts.get("of_ceiling")
    cells.append(
      [
        facts["what"],
        facts["system"],
        f"{facts['median']:.4g} {facts['unit']}",
        f"{facts['min']:.4g}-{facts['max']:.4g}",
        *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
        "" if share is None else f"{share:.0%}",
      ]
    )
  return cells


def check_agreement(what: str, arrays: dict, limits: Mapping[str, float]) -> dict[str, float]:
  """Largest difference of each system's array from the first one's.

  Args:
    what: name of the arrays in the message.
    arrays: system -> NumPy array.
    limits: word in a system's name -> how far its array may be off; others, 1e-4.

  Raises:
    SystemExit: a difference is too large, or NaN.
  """
  reference = next(iter(arrays.values()))
  differences = {name: float(abs(array - reference).max()) for name, array in arrays.items()}
  for name, difference in differences.items():
    limit = next((limit for word, limit in limits.items() if word in name), 1e-4)
    if not difference <= limit:
      sys.exit(f"{name}: {what} differ by {difference:.3g}, more than {limit}.")
  return differences


def report(
  benchmark: str,
  rows: Sequence[Row],
  references: Sequence[str] = (),
  ceilings: Mapping[str, Mapping[str, float]] | None = None,
  **facts,
) -> None:
  """Prints the table, and the JSON line that `all.py` reads.

  Args:
    benchmark: name of the script.
    rows: what was measured.
    references: systems to divide by.
    ceilings: library -> dtype -> FLOP/s, as `measure_ceilings` returns it. A share is one of the
      best library's.
    **facts: anything else worth recording, JSON-able.
  """
  ceilings = ceilings or {}
  references = [name for name in references if any(row.system == name for row in rows)]
  results = summarise(rows, references, best_ceiling(ceilings))
  cells = table(results, references)
  widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
  print()
  for line in cells:
    print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
  for library, speeds in ceilings.items():
    print(f"ceiling, {library}: " + ", ".join(f"{k} {v / 1e9:.4g} G/s" for k, v in speeds.items()))
  line = {"benchmark": benchmark, "references": list(references), "ceilings": ceilings}
  print(json.dumps({**line, "machine": machine(), **facts, "results": results}))


def print_markdown(rows: Sequence[Sequence[str]]) -> None:
  """Prints a table, its head first, that a document can hold as it is."""
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  for row in [rows[0], ["-" * width for width in widths], *rows[1:]]:
    cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    print(f"| {' | '.join(cells)} |")


def best_ceiling(ceilings: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
  """dtype -> what the best library reached.

  Example:
    >>> best_ceiling({"tensorflow": {"float32": 2.0}, "torch": {"float32": 3.0, "bfloat16": 9.0}})
    {'float32': 3.0, 'bfloat16': 9.0}
  """
  best = {}
  for speeds in ceilings.values():
    for name, speed in speeds.items():
      best[name] = max(speed, best.get(name, 0.0))
  return best


def measure_ceilings(peer_python: str) -> dict[str, dict[str, float]]:
  """Speed of large matrix products in TensorFlow, and in torch if there are peers."""
  ceilings = {}
  pythons = {"tensorflow": sys.executable, "torch": peer_python}
  for library, python in pythons.items():
    if python:
      script = ROOT / "benchmarks" / "ceiling.py"
      ceilings[library] = last_json(run_command([python, str(script), f"--library={library}"]).log)
  return ceilings


def machine() -> dict:
  """Processor, cores and load: who compares two reports needs them."""
  from bert.io import processor

  name = processor.cpu_name()
  return {"processor": name, "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}


# ---------------------------------------------------------------------------------------------
# How many floating-point operations a model takes.


def encoder_flops(config: Mapping, lengths: Sequence[int]) -> float:
  """Matrix products of one forward pass over sequences of these lengths, without the pooler.

  Example:
    >>> sizes = {"num_hidden_layers": 1, "hidden_size": 2, "intermediate_size": 8}
    >>> encoder_flops(sizes, [3])  # 3 * (4 * 2*2 + 2 * 2*8) products, and 3 * 3 * 2 twice
    360.0
  """
  width, inner = config["hidden_size"], config["intermediate_size"]
  for_token = 2 * (4 * width * width + 2 * width * inner)
  for_pair = 2 * 2 * width  # scores, and their sum of values
  total = sum(length * for_token + length * length * for_pair for length in lengths)
  return float(config["num_hidden_layers"] * total)


def read_config(weights: str) -> dict:
  """`bert_config.json` of a folder with a checkpoint."""
  return json.loads((pathlib.Path(weights) / "bert_config.json").read_text())


# ---------------------------------------------------------------------------------------------
# Commands, timed from outside.


@dataclasses.dataclass
class Finished:
  """A command that succeeded.

  Attributes:
    log: what it wrote to both of its streams.
    seconds: from its start to its end.
    steps: `(step, seconds since its start)` of each line of progress, `step 7/100, ...`.
  """

  log: str
  seconds: float
  steps: list[tuple[int, float]]

  def first_step_seconds(self) -> float:
    """Seconds from the command to the end of the first logged step."""
    return self.steps[0][1]


def run_command(command: Sequence[str], cwd: str | os.PathLike = ROOT) -> Finished:
  """Runs a command to its end, noting when each line of progress comes.

  A command that fails ends the program with the end of its log.
  """
  begin = time.perf_counter()
  environment = {"TF_CPP_MIN_LOG_LEVEL": "2", "TOKENIZERS_PARALLELISM": "true", **os.environ}
  process = subprocess.Popen(
    command,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    errors="replace",
    env=environment,
    cwd=cwd,
  )
  lines, steps = [], []
  for line in process.stdout:
    found = re.search(r"\bstep (\d+)/\d+", line)
    if found:
      steps.append((int(found[1]), time.perf_counter() - begin))
    lines.append(line)
  code, seconds = process.wait(), time.perf_counter() - begin
  log = "".join(lines)
  if code:
    sys.exit(f"{' '.join(command)}\nfailed:\n{log[-3000:]}")
  return Finished(log, seconds, steps)


def run_script(name: str, *flags: str) -> Finished:
  """Runs a script of this project in the caller's folder; prints it and its time to stderr.

  Args:
    name: such as `run_pretraining`.
    *flags: of its command line.
  """
  script = [str(ROOT / f"{name}.py"), *flags]
  print("python", *script, file=sys.stderr, flush=True)
  finished = run_command([sys.executable, *script], os.getcwd())
  print(f"  {finished.seconds:.1f} s", file=sys.stderr, flush=True)
  return finished


def split_documents(corpus: str, folder: pathlib.Path) -> None:
  """Writes the last tenth of a text's documents to `FOLDER/held_out.txt`, others to `train.txt`.

  Args:
    corpus: a text with an empty line between documents.
    folder: an existing one.
  """
  text = pathlib.Path(corpus).read_text("utf-8")
  documents = [part.strip("\n") for part in text.split("\n\n") if part.strip()]
  first = len(documents) * 9 // 10
  for name, part in (("train", documents[:first]), ("held_out", documents[first:])):
    (folder / f"{name}.txt").write_text("\n\n".join(part) + "\n", "utf-8")


def last_json(log: str) -> dict:
  """The last line of a log that is a JSON object.

  Example:
    >>> last_json('warming up\\n{"speed": 3}\\nbye\\n')
    {'speed': 3}

  Raises:
    ValueError: no line is a JSON object.
  """
  for line in reversed(log.splitlines()):
    if line.startswith("{"):
      try:
        return json.loads(line)
      except json.JSONDecodeError:
        continue
  raise ValueError(f"No JSON line among the last of:\n{log[-1000:]}")


# ---------------------------------------------------------------------------------------------
# Processes that answer again and again; their side is `workers/serving.py`.


class Worker:
  """A process that keeps a loaded model and does one thing at a time when asked.

  Example:
    with Worker(python, "encoder_torch.py", weights) as worker:
      worker.ask("time", batch=1, length=32)
  """

  def __init__(self, python: str, script: str, *arguments: str):
    self._command = [python, str(WORKERS / script), *map(str, arguments)]
    self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
    self._process = subprocess.Popen(
      self._command,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=self._errors,
      text=True,
      env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ},
    )

  def __enter__(self):
    return self

  def __exit__(self, *exc_info):
    self._process.stdin.close()
    killer = threading.Timer(20.0, self._process.kill)
    killer.start()
    self._process.wait()
    killer.cancel()
    self._errors.close()

  def ask(self, action: str, **arguments):
    """What the worker's function `action` returns for these arguments."""
    try:
      self._process.stdin.write(json.dumps({"action": action, **arguments}) + "\n")
      self._process.stdin.flush()
      answer = self._process.stdout.readline()
    except BrokenPipeError:
      answer = ""
    if not answer:
      self._process.wait()
      self._errors.seek(0)
      sys.exit(f"{' '.join(self._command)}\nfailed:\n{self._errors.read()[-3000:]}")
    return json.loads(answer)
