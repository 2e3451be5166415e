"""Strings to model inputs: our exported preprocess beside tensorflow_text's two tokenizers.

  python benchmarks/hub_preprocess.py --vocab_file=vocab.txt --text_file=glue/MRPC/train.tsv

Texts are the fourth column of a tab-separated file, or the lines of any other. Three models are
exported and loaded again, and turn strings into int32 `[batch, 128]`:

  exact      our preprocess, `tokenization.FullTokenizer`'s tokens
  published  `text.BertTokenizer`, as in the published preprocess models
  fast       `text.FastBertTokenizer` with the same packing; it cannot separate words exactly

They take turns, so that other work on the machine hits all of them; a model's time is the median
of its turns. The table shows milliseconds a batch and texts a second, and the last line is JSON.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main():
  args = _parse()
  texts = _read_texts(args.text_file)
  summary = {"repeats": args.repeats, "characters_per_text": statistics.mean(map(len, texts))}
  with tempfile.TemporaryDirectory() as folder:
    models = _export_and_load(folder, args)
    print(f"{'batch':>6} {'model':<10} {'ms':>9} {'texts/s':>9} {'to published':>13}")
    for batch_size in map(int, args.batch_sizes.split(",")):
      seconds = _time_in_turn(models, _batches(texts, batch_size, args.texts_per_turn), args)
      summary[str(batch_size)] = _report(batch_size, seconds)
  print(json.dumps(summary))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--vocab_file", required=True)
  parser.add_argument("--text_file", required=True)
  parser.add_argument("--cased", action="store_true")
  parser.add_argument("--batch_sizes", default="1000,32")
  parser.add_argument("--texts_per_turn", type=int, default=1000)
  parser.add_argument("--repeats", type=int, default=15)
  return parser.parse_args()


def _read_texts(path):
  lines = pathlib.Path(path).read_text(encoding="utf-8-sig").split("\n")
  rows = [line.split("\t") for line in lines if line]
  return [row[3] for row in rows[1:] if len(row) > 3] or [row[0] for row in rows]


def _batches(texts, batch_size, texts_per_turn):
  import tensorflow as tf

  count = max(1, texts_per_turn // batch_size)
  repeated = texts * (1 + count * batch_size // len(texts))
  return [
    tf.constant(repeated[start : start + batch_size])
    for start in range(0, count * batch_size, batch_size)
  ]


def _export_and_load(folder, args):
  import tensorflow as tf

  from bert.exporting import hub_preprocess

  path = f"{folder}/exact"
  hub_preprocess.export_preprocess(path, args.vocab_file, not args.cased)
  models = {"exact": tf.saved_model.load(path)}
  for name, tokenizer in _tokenizers(args).items():
    path = f"{folder}/{name}"
    tf.saved_model.save(_model(tokenizer, models["exact"].bert_pack_inputs), path)
    models[name] = tf.saved_model.load(path)
  return models


def _tokenizers(args):
  """The two of tensorflow_text."""
  import tensorflow as tf
  import tensorflow_text

  with open(args.vocab_file, encoding="utf-8") as reader:
    tokens = [line.strip() for line in reader]
  fast = tensorflow_text.FastBertTokenizer(
    tokens, token_out_type=tf.int32, lower_case_nfd_strip_accents=not args.cased
  )
  published = tensorflow_text.BertTokenizer(
    args.vocab_file, lower_case=not args.cased, token_out_type=tf.int32
  )
  return {"published": published, "fast": fast}


def _model(tokenizer, pack):
  import tensorflow as tf

  model = tf.train.Checkpoint(pack=pack, tokenizer=tokenizer)
  model.__call__ = tf.function(
    lambda texts: pack([tokenizer.tokenize(texts)]),
    input_signature=[tf.TensorSpec([None], tf.string)],
    autograph=False,
  )
  return model


def _time_in_turn(models, batches, args):
  """Seconds a batch, of each model and each turn."""
  import tensorflow as tf

  # As in a tf.data pipeline or a larger model: one graph call, and no Python around it.
  calls = {name: tf.function(model.__call__, autograph=False) for name, model in models.items()}
  seconds = {name: [] for name in models}
  for turn in range(args.repeats + 1):
    for name, call in calls.items():
      start = time.perf_counter()
      for batch in batches:
        call(batch)
      if turn:  # the first one builds the graph
        seconds[name].append((time.perf_counter() - start) / len(batches))
  return seconds


def _report(batch_size, seconds):
  medians = {name: statistics.median(times) for name, times in seconds.items()}
  results = {}
  for name, median in medians.items():
    ratio = medians["published"] / median
    speed = batch_size / median
    print(f"{batch_size:>6} {name:<10} {1e3 * median:>9.2f} {speed:>9.0f} {ratio:>12.2f}x")
    results[name] = {"ms": 1e3 * median, "texts_per_second": speed, "times_published": ratio}
  return results


if __name__ == "__main__":
  main()
