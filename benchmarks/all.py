"""Runs the benchmarks one after another, and writes their figures into pages of `docs/results`.

  python benchmarks/all.py --weights=uncased_L-12_H-768_A-12 --mrpc=glue/MRPC --corpus=wiki.txt

Settings are short: about half an hour on two cores. Each script's own docstring says what it
compares and how; `--only=help_time,text_vectors` runs some of them. What could not be run,
for example for want of the peers, is reported and stays as it was on its page.

On a page, everything below the line that begins with `<!-- By hand` stays as it is: there are the
figures that other commands gave.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

MARKER = "<!-- By hand: `make bench` leaves everything below this line as it is. -->"
PAGES = ROOT / "docs" / "results"
PEER = "--peer_python={peer}"

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


class Page(NamedTuple):
  """A page of measured results."""

  title: str  # its heading
  gives: str  # the sentence below the heading: what a reader finds here
  scripts: tuple[str, ...]  # whose figures it holds, in this order


# File in docs/results, without its ending -> page. Each script of COMMANDS is on one of them.
DOCUMENTS = {
  "training": Page(
    "Measured: training",
    "How fast training steps are, beside transformers and the original, and what they reach.",
    ("fine_tuning", "pretraining_step"),
  ),
  "inference": Page(
    "Measured: inference",
    "How long the encoder takes for one text and for many, beside onnxruntime, OpenVINO and\n"
    "transformers.",
    ("encoder_inference", "text_vectors", "squad_prediction"),
  ),
  "text": Page(
    "Measured: tokens and records",
    "How fast texts become ids and records, and how soon a script answers `--help`.",
    ("tokenization", "hub_preprocess", "pretraining_data", "help_time"),
  ),
}
_HOW_TO_READ = """\
`make bench` (`benchmarks/all.py`) writes the tables that follow; tables with another command stand
at the end of the page. They show medians. The systems ran in turn, each in a process of its own.
`times X` says how many times as fast as X a system is. `of ceiling` is the share of the speed
that large matrix products of that type reach on the same machine in the same run."""


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
  write_pages(args.documents, results)
  print(f"{args.documents} is written." + (f" FAILED: {', '.join(failed)}" if failed else ""))
  sys.exit(bool(failed))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  common.add_weights_flag(parser)
  parser.add_argument("--mrpc", required=True, help="folder with MRPC's train.tsv and dev.tsv")
  parser.add_argument("--corpus", required=True, help="text, an empty line between documents")
  parser.add_argument("--squad", help="dev-v2.0.json; without it, squad_prediction does not run")
  parser.add_argument("--only", help=f"some of {','.join(COMMANDS)}")
  parser.add_argument("--documents", type=pathlib.Path, default=PAGES, help="folder of the pages")
  parser.add_argument(
    "--results",
    default=str(ROOT / "docs" / "benchmarks.json"),
    help="the newest result of every script, from which the pages are written",
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
# The pages.


def write_pages(folder: pathlib.Path, results: dict[str, dict]) -> None:
  """Writes the pages into `folder`; what is written by hand in them stays.

  Raises:
    ValueError: a page lacks the marker.
  """
  for name, page in DOCUMENTS.items():
    path = folder / f"{name}.md"
    text = path.read_text("utf-8") if path.exists() else f"{MARKER}\n"
    try:
      path.write_text(rewritten(text, page, results), "utf-8")
    except ValueError as error:
      raise ValueError(f"{path} {error}") from None


def rewritten(text: str, page: Page, results: dict[str, dict]) -> str:
  """A page with a new measured part; the part below the marker stays as it is.

  Example:
    >>> page = Page("Measured", "Nothing yet.", ())
    >>> text = "old figures" + chr(10) + MARKER + chr(10) + "tried: nothing"
    >>> rewritten(text, page, {}).endswith(MARKER + chr(10) + "tried: nothing")
    True
    >>> "old figures" in rewritten(text, page, {})
    False

  Raises:
    ValueError: the marker is missing, so that it is unknown what to keep.
  """
  _, found, by_hand = text.partition(MARKER)
  if not found:
    raise ValueError(f"lacks the line {MARKER!r}; what should be kept?")
  sections = [section(name, results[name]) for name in page.scripts if name in results]
  parts = [f"# {page.title}", page.gives, _HOW_TO_READ, *sections]
  return "\n\n".join(parts) + "\n\n" + MARKER + by_hand


def section(name: str, result: dict) -> str:
  """One script's part of a page, in Markdown."""
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
