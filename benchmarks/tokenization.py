"""Texts to ids in one thread: `FullTokenizer` beside Rust's `tokenizers`.

  python benchmarks/tokenization.py --vocab_file=vocab.txt \\
    --texts glue/MRPC/train.tsv glue/MRPC/dev.tsv glue/MRPC/test.tsv wikitext2_valid.txt

Texts are the last two columns of `.tsv` files, without the header, and the lines of any other file.
Another set of texts is the worst case for a table of words: random words, each occurring once.

  ours                 FullTokenizer.texts_to_ids
  ours, tokens         tokenize, then convert_tokens_to_ids, text by text
  ours, step by step   the same without its table of words, which defines the result
  ours, encode_batch   arrays of 128 columns
  tokenizers           BertWordPieceTokenizer.encode_batch, then `.ids` of each
  tokenizers, arrays   the same with truncation and padding to 128, then three arrays

Each system has a process of its own, and they take turns. In every turn a new tokenizer meets all
texts first (cold), then once more (warm); making the tokenizer is not in the time. Speeds are those
of the wall clock, and of the processor's time, which other work on the machine disturbs less.

Before the clock runs, our ids must be those of the steps for all texts, and those of `tokenizers`
for all ASCII texts without brackets and with no word above 100 characters: it keeps `[SEP]` and the
like whole, drops longer words, and treats some characters otherwise. Other texts that differ are
counted. One JSON line comes last.
"""

import argparse
import array
import collections
import contextlib
import functools
import json
import pathlib
import random
import string
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

OURS = ["ours", "ours, tokens", "ours, step by step", "ours, encode_batch"]
PEERS = ["tokenizers", "tokenizers, arrays"]


def main():
  args = _parse()
  common.check_peer(args.peer_python)
  sets = {"texts": _read_texts(args.texts), "unique words": _unique_words(args.unique_words)}
  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    workers = _start(stack, args)
    rows, facts = [], {}
    for name, texts in sets.items():
      file = folder / f"{name}.json"
      file.write_text(json.dumps(texts))
      ids = _ids(workers, file, folder, texts)
      facts[name] = {"texts": len(texts), "characters": sum(map(len, texts))}
      facts[name] |= _check(texts, ids)
      rows += _measure(workers, name, file, facts[name]["ids"], args.repeats)
      print(f"{name}: {facts[name]}", flush=True)
  references = [f"tokenizers, {state}" for state in ("cold", "warm")] if args.peer_python else []
  common.report("tokenization", rows, references, **facts)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--vocab_file", required=True)
  parser.add_argument("--texts", nargs="+", required=True, help="files, see above")
  parser.add_argument("--unique_words", type=int, default=150_000)
  common.add_peer_flags(parser)
  return parser.parse_args()


def _read_texts(paths):
  texts = []
  for path in map(pathlib.Path, paths):
    lines = path.read_text(encoding="utf-8-sig").split("\n")
    if path.suffix == ".tsv":
      texts += [text for line in lines[1:] if line for text in line.split("\t")[-2:]]
    else:
      texts += [line for line in lines if line.strip()]
  return texts


def _unique_words(number):
  """Texts of 25 words; more words than a table holds."""
  rng = random.Random(0)
  words = set()
  while len(words) < number:
    words.add("".join(rng.choices(string.ascii_lowercase, k=rng.randint(4, 12))))
  words = sorted(words)
  rng.shuffle(words)
  return [" ".join(words[i : i + 25]) for i in range(0, number, 25)]


def _start(stack, args):
  """System -> its process."""
  pythons = dict.fromkeys(OURS, sys.executable)
  if args.peer_python:
    pythons |= dict.fromkeys(PEERS, args.peer_python)
  return {
    system: stack.enter_context(common.Worker(python, "text_ids.py", system, args.vocab_file))
    for system, python in pythons.items()
  }


def _measure(workers, name, file, num_ids, repeats):
  """Rows of all systems, cold and warm, in ids per second of either clock."""
  processor = collections.defaultdict(list)

  def turn(system, state):
    seconds = workers[system].ask("measure", file=str(file), warm=state == "warm")
    processor[f"{system}, {state}"].append(num_ids / seconds[1])
    return num_ids / seconds[0]

  systems = {
    f"{system}, {state}": functools.partial(turn, system, state)
    for system in workers
    for state in ("cold", "warm")
  }
  clocks = {"wall": common.take_turns(systems, repeats), "processor": processor}
  return [
    common.Row(f"{name}, {clock}", system, "ids/s", values[system])
    for clock, values in clocks.items()
    for system in systems
  ]


# ---------------------------------------------------------------------------------------------
# Equality.


def _ids(workers, file, folder, texts):
  """System -> ids of each text; without the systems that make arrays."""
  found = {}
  for system in ("ours", "ours, tokens", "ours, step by step", "tokenizers"):
    if system in workers:
      output = folder / "ids"
      workers[system].ask("write_ids", file=str(file), output=str(output))
      found[system] = _split_rows(output.read_bytes(), len(texts))
  return found


def _split_rows(data, num_rows):
  numbers = array.array("i", data)
  rows, start = [], num_rows
  for length in numbers[:num_rows]:
    rows.append(numbers[start : start + length])
    start += length
  return rows


def _check(texts, ids):
  steps = ids.pop("ours, step by step")
  facts = {"ids": sum(map(len, steps))}
  for system, rows in ids.items():
    different = [i for i, pair in enumerate(zip(rows, steps, strict=True)) if pair[0] != pair[1]]
    wrong = [i for i in different if system != "tokenizers" or _is_simple(texts[i])]
    if wrong:
      sys.exit(f"{system}: other ids than step by step for {len(wrong)} texts: {texts[wrong[0]]!r}")
    facts[f"texts that differ, {system}"] = len(different)
  return facts


def _is_simple(text):
  return text.isascii() and "[" not in text and all(len(word) <= 100 for word in text.split())


if __name__ == "__main__":
  main()
