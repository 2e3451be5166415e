"""Data preparation with `create_pretraining_data.py`: speed and memory of each mode, in turn.

  python benchmarks/pretraining_data.py --corpus=wiki.txt --vocab_file=vocab.txt --workers=0,1,2

runs the command with default flags and `--dupe_factor=5` in every mode, `--repeats` times in turn,
and prints a table of medians and one JSON line last. `--workers=0` is the original's stream. The
time is that of the whole command, start-up included.

With `--size_mb=1000` the text is made first: the documents of `--corpus` over and over, each round
in another order. Memory is the peak of anonymous pages (`RssAnon`) of the largest process, looked
up five times a second; pages of mapped files, which the system takes back when it needs them, do
not count. Linux only.
"""

import argparse
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
  args = _parse()
  with tempfile.TemporaryDirectory(dir=args.folder) as folder:
    text = pathlib.Path(args.corpus)
    if args.size_mb:
      text = _long_text(text, args.size_mb * 1_000_000, pathlib.Path(folder, "text.txt"))
    modes = [f"--num_workers={number}" for number in args.workers.split(",")]
    runs = {mode: [] for mode in modes}
    for _ in range(args.repeats):
      for mode in modes:
        runs[mode].append(_run(args, text, folder, mode))
        print(mode, runs[mode][-1], flush=True)
    size_mb = text.stat().st_size / 1e6
  summary = {mode: _summary(runs[mode], size_mb) for mode in modes}
  columns = list(summary[modes[0]])
  print(f"\n{'':>16}" + "".join(f"{column:>24}" for column in columns))
  for mode in modes:
    print(f"{mode:>16}" + "".join(f"{summary[mode][column]:>24.5g}" for column in columns))
  print(json.dumps({"text_mb": size_mb, "dupe_factor": args.dupe_factor, **summary}))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--corpus", required=True, help="text, an empty line between documents")
  parser.add_argument("--vocab_file", required=True)
  parser.add_argument("--workers", default="0,1,2", help="values of --num_workers")
  parser.add_argument("--dupe_factor", type=int, default=5, help="0: that of the format")
  parser.add_argument("--size_mb", type=int, help="make a text of this size from --corpus")
  parser.add_argument("--repeats", type=int, default=1)
  parser.add_argument("--folder", help="where text and records are written")
  parser.add_argument("flags", nargs="*", help="further flags of the script, after --")
  return parser.parse_args()


def _long_text(corpus, size, path):
  documents = [part for part in corpus.read_text("utf-8").split("\n\n") if part.strip()]
  rng = random.Random(0)
  with open(path, "w", encoding="utf-8") as text:
    while text.tell() < size:
      rng.shuffle(documents)
      text.writelines(document.strip("\n") + "\n\n" for document in documents)
  return path


def _run(args, text, folder, mode):
  """Seconds, instances and megabytes of one command."""
  command = [
    sys.executable,
    str(ROOT / "create_pretraining_data.py"),
    f"--input_file={text}",
    f"--output_file={pathlib.Path(folder, 'records.tfrecord')}",
    f"--vocab_file={args.vocab_file}",
    *([f"--dupe_factor={args.dupe_factor}"] if args.dupe_factor else []),
    mode,
    *args.flags,
  ]
  with tempfile.TemporaryFile("w+") as log:
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=log, stderr=log)
    peak = 0
    while process.poll() is None:
      peak = max(peak, _largest_process(process.pid))
      time.sleep(0.02 if time.monotonic() - begin < 10 else 0.2)
    seconds = time.monotonic() - begin
    log.seek(0)
    output = log.read()
  if process.returncode:
    sys.exit(f"{' '.join(command)} failed:\n{output[-3000:]}")
  [instances] = re.findall(r"Wrote (\d+) total instances", output)
  return {"seconds": seconds, "instances": int(instances), "peak_anonymous_mb": peak / 1e3}


def _largest_process(pid):
  """Kilobytes of anonymous memory of the largest among a process and its descendants."""
  try:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
  except OSError:  # it has ended meanwhile
    return 0
  found = re.search(r"RssAnon:\s+(\d+) kB", status)
  return max([int(found[1]) if found else 0, *map(_largest_process, children)])


def _summary(runs, size_mb):
  seconds = statistics.median(run["seconds"] for run in runs)
  instances = runs[0]["instances"]
  return {
    "seconds": seconds,
    "text_mb_per_second": size_mb / seconds,
    "instances": instances,
    "instances_per_second": instances / seconds,
    "peak_anonymous_mb": max(run["peak_anonymous_mb"] for run in runs),
  }


if __name__ == "__main__":
  main()
