"""Runs the benchmarks one after another, and writes their figures into `docs/benchmarks.md`.

  python benchmarks/all.py --weights=uncased_L-12_H-768_A-12 --mrpc=glue/MRPC --corpus=wiki.txt

Settings are short: about half an hour on two cores. Each script's own docstring says what it
compares and how; `--only=help_time,text_vectors` runs some of them. What could not be run,
for example for want of the peers, is reported and stays as it was in the document.

In the document, everything below the line that begins with `<!-- By hand` stays as it is: there is
the log of what was tried.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

MARKER = "<!-- By hand: `make bench` leaves everything below this line as it is. -->"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
PEER = "--peer_python={peer}"
HAND_WRITTEN = f"{MARKER}\n\n## What was tried\n"

# Script and flags; names in braces are this script's own flags.
COMMANDS = {
  "fine_tuning": [
    *("--data_dir={mrpc}", "--weights={weights}", PEER, "--seeds=1,2,3"),
    *("--also=--group_by_length", "--", "--fast"),
  ],
  "pretraining_step": [
    *("--corpus={corpus}", "--vocab_file={weights}/vocab.txt", PEER, "--repeats=2"),
    *("--steps=20", "--dtypes=bfloat16"),
  ],
  "encoder_inference": ["--weights={weights}", PEER, "--repeats=5"],
  "text_vectors": ["--weights={weights}", "--text_file={mrpc}/train.tsv", PEER],
  "tokenization": [
    *("--vocab_file={weights}/vocab.txt", "--texts", "{mrpc}/train.tsv", "{mrpc}/dev.tsv"),
    *("{mrpc}/test.tsv", "{corpus}", PEER),
  ],
  "pretraining_data": [
    *("--corpus={corpus}", "--vocab_file={weights}/vocab.txt", "--repeats=3"),
  ],
  "hub_preprocess": ["--vocab_file={weights}/vocab.txt", "--text_file={mrpc}/train.tsv"],
  "squad_prediction": ["--weights={weights}", "--predict_file={squad}"],
  "help_time": [],
}


def main():
  args = _parse()
  common.check_peer(args.peer_python)
  names = args.only.split(",") if args.only else list(COMMANDS)
  if not args.squad:
    names = [name for name in names if name != "squad_prediction"]
  unknown = set(names) - set(COMMANDS)
  if unknown:
    sys.exit(f"--only: no {', '.join(unknown)} among {', '.join(COMMANDS)}.")
  results, failed = read_results(args.results), []
  for name in names:
    result = _run(name, args)
    if result is None:
      failed.append(name)
    else:
      results[name] = result
      pathlib.Path(args.results).write_text(json.dumps(results, indent=1) + "\n")
  text = args.document.read_text("utf-8") if args.document.exists() else HAND_WRITTEN
  args.document.write_text(rewritten(text, results), "utf-8")
  print(f"{args.document} is written." + (f" FAILED: {', '.join(failed)}" if failed else ""))
  sys.exit(bool(failed))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  common.add_weights_flag(parser)
  parser.add_argument("--mrpc", required=True, help="folder with MRPC's train.tsv and dev.tsv")
  parser.add_argument("--corpus", required=True, help="text, an empty line between documents")
  parser.add_argument("--squad", help="dev-v2.0.json; without it, squad_prediction does not run")
  parser.add_argument("--only", help=f"some of {','.join(COMMANDS)}")
  parser.add_argument("--document", type=pathlib.Path, default=DOCUMENT)
  parser.add_argument(
    "--results",
    default=str(ROOT / "docs" / "benchmarks.json"),
    help="the newest result of every script, from which the document is written",
  )
  common.add_peer_flags(parser)
  return parser.parse_args()


def read_results(path: str) -> dict[str, dict]:
  """Results of earlier runs, name -> JSON; none if there is no file."""
  return json.loads(pathlib.Path(path).read_text()) if pathlib.Path(path).exists() else {}


def _run(name, args):
  """The JSON line of a script, with its command and date; None if it failed."""
  names = ("weights", "mrpc", "corpus", "squad")
  values = {key: str(pathlib.Path(getattr(args, key) or "").absolute()) for key in names}
  flags = [flag.format(**values, peer=args.peer_python) for flag in COMMANDS[name]]
  # Paths mean nothing to readers: the command is shown with placeholders.
  shown = [
    flag.format(**{key: key.upper() for key in values}, peer="PEER") for flag in COMMANDS[name]
  ]
  print(f"\n== benchmarks/{name}.py", flush=True)
  command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *flags]
  process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
  lines = []
  for line in process.stdout:
    print(line, end="", flush=True)
    lines.append(line)
  if process.wait():
    return None
  how = {"command": " ".join([f"python benchmarks/{name}.py", *shown])}
  how["date"] = time.strftime("%Y-%m-%d", time.gmtime())
  return {**how, **common.last_json("".join(lines))}


# ---------------------------------------------------------------------------------------------
# The document.


def rewritten(text: str, results: dict[str, dict]) -> str:
  """The document with a new measured part; the part below the marker stays as it is.

  Example:
    >>> text = "old figures" + chr(10) + MARKER + chr(10) + "tried: nothing"
    >>> rewritten(text, {}).endswith(MARKER + chr(10) + "tried: nothing")
    True
    >>> "old figures" in rewritten(text, {})
    False

  Raises:
    ValueError: the marker is missing, so that it is unknown what to keep.
  """
  _, found, by_hand = text.partition(MARKER)
  if not found:
    raise ValueError(f"docs/benchmarks.md lacks the line {MARKER!r}; what should be kept?")
  parts = [
    "# Benchmarks",
    "Written by `make bench` (`benchmarks/all.py`): medians, systems in turn, each in a process\n"
    "of its own. `times X` is how many times as fast as X a system is; `of ceiling` is the share\n"
    "of the speed that large matrix products of that type reach on the same machine, same run.",
    *(section(name, results[name]) for name in COMMANDS if name in results),
  ]
  return "\n\n".join(parts) + "\n\n" + MARKER + by_hand


def section(name: str, result: dict) -> str:
  """One script's part of the document, in Markdown."""
  script = (ROOT / "benchmarks" / f"{name}.py").read_text("utf-8")
  parts = ["## " + script.removeprefix('"""').splitlines()[0].rstrip(".")]
  marker = (
    "" if "help_time" in result["command"] else "<!-- needs a network: weights, data, peers -->\n"
  )
  parts.append(f"{marker}```bash\n{result['command']}\n```\n{_where(result)}")
  if "results" in result:
    parts.append(markdown_table(common.table(result["results"], result["references"])))
  else:
    cells = [["", ""], *([key, value] for key, value in flattened(result))]
    parts.append(markdown_table(cells))
  for library, speeds in result.get("ceilings", {}).items():
    listed = ", ".join(f"{key} {value / 1e9:.4g} G/s" for key, value in speeds.items())
    parts.append(f"Ceiling, {library}: {listed}.")
  scores = result.get("scores", {})
  cells = [
    [system, key, f"{of['mean']:.4f}", f"{of['min']:.4f}-{of['max']:.4f}"]
    for system, values in scores.items()
    for key, of in values.items()
    if key.startswith("eval_")
  ]
  if cells:
    parts.append(markdown_table([["system", "score", "mean", "spread"], *cells]))
  return "\n\n".join(parts)


def _where(result):
  machine = result.get("machine")
  if not machine:
    return f"{result['date']}."
  return (
    f"{result['date']}, {machine['cores']} cores of {machine['processor']}; load of the machine at "
    f"the end {machine['load']:.1f}."
  )


def markdown_table(cells: list[list[str]]) -> str:
  """Cells, the head first, as a table of Markdown.

  Example:
    >>> print(markdown_table([["", "median"], ["ours", "2 ms"]]))
    |  | median |
    |---|---|
    | ours | 2 ms |
  """
  head, *body = [f"| {' | '.join(line)} |" for line in cells]
  return "\n".join([head, "|---" * len(cells[0]) + "|", *body])


def flattened(values, prefix: str = "") -> list[tuple[str, str]]:
  """Numbers of nested dicts with the path to them; of scripts with a JSON line of their own form.

  Example:
    >>> flattened({"a": {"b": 1.23456, "c": "text"}, "d": 2})
    [('a, b', '1.235'), ('d', '2')]
  """
  found = []
  for key, value in values.items():
    name = f"{prefix}, {key}" if prefix else str(key)
    if isinstance(value, dict):
      found += flattened(value, name)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
      found.append((name, f"{value:.4g}"))
  return found


if __name__ == "__main__":
  main()
