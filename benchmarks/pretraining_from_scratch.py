"""From a text alone to a model: vocabulary, records, training, and what the model is worth.

  python benchmarks/pretraining_from_scratch.py --corpus=wiki.txt --output_dir=/tmp/scratch

The last tenth of the documents is held out: neither vocabulary nor training sees it. A model that
knew only how often each piece occurs among the held-out masked pieces would reach their unigram
entropy; `nats_below_unigram` says how much better the trained model does. Prints each command with
its time, then one JSON line, and draws the curve, OUTPUT_DIR/curve.png.
"""

import argparse
import collections
import json
import math
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402
from bert.scripts import result_files  # noqa: E402

SHAPE = ["--max_seq_length=64", "--max_predictions_per_seq=10"]


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--corpus", required=True, help="text, an empty line between documents")
  parser.add_argument("--output_dir", required=True)
  parser.add_argument("--vocab_size", type=int, default=4000)
  parser.add_argument("--hidden_size", type=int, default=128)
  parser.add_argument("--layers", type=int, default=2)
  parser.add_argument("--steps", type=int, default=3000)
  parser.add_argument("--learning_rate", type=float, default=2e-3)
  args = parser.parse_args()
  folder = pathlib.Path(args.output_dir)
  folder.mkdir(parents=True)
  common.split_documents(args.corpus, folder)
  common.write_config(folder, args.vocab_size, args.layers, args.hidden_size)

  begin = time.monotonic()
  common.run_script(
    "create_vocab",
    f"--input_file={folder}/train.txt",
    f"--output_file={folder}/vocab.txt",
    f"--vocab_size={args.vocab_size}",
  )
  for name, passes in (("train", 20), ("held_out", 2)):
    common.run_script(
      "create_pretraining_data",
      f"--input_file={folder}/{name}.txt",
      f"--output_file={folder}/{name}.tfrecord",
      f"--vocab_file={folder}/vocab.txt",
      f"--dupe_factor={passes}",
      "--num_workers=2",
      *SHAPE,
    )
  common.run_script(
    "run_pretraining",
    f"--input_file={folder}/train.tfrecord",
    f"--eval_input_file={folder}/held_out.tfrecord",
    f"--output_dir={folder}/model",
    f"--bert_config_file={folder}/bert_config.json",
    "--do_train",
    "--do_eval",
    *SHAPE,
    "--train_batch_size=64",
    "--eval_batch_size=32",
    f"--max_eval_steps={_count(folder / 'held_out.tfrecord') // 32}",
    f"--num_train_steps={args.steps}",
    f"--num_warmup_steps={args.steps // 10}",
    f"--learning_rate={args.learning_rate}",
    f"--eval_every_steps={args.steps // 10}",
    "--nokeep_best",
    "--save_summary_steps=20",
  )
  seconds = time.monotonic() - begin
  entropy = _unigram_entropy(folder / "held_out.tfrecord")
  results = result_files.read_eval_results(f"{folder}/model/eval_results.txt")
  common.run_script(
    "plots",
    f"--model_dir={folder}/model",
    f"--output_file={folder}/curve.png",
    "--tags=masked_lm_loss",
  )
  print(
    json.dumps(
      {
        **vars(args),
        "seconds": round(seconds),
        "unigram_entropy": entropy,
        "nats_below_unigram": entropy - results["masked_lm_loss"],
        **results,
      }
    )
  )


def _count(records):
  manifest = records.with_name(f".{records.name}.manifest.json")
  return json.loads(manifest.read_text())["records"]


def _unigram_entropy(records):
  """In nats, of the pieces that stood where the masks are."""
  import tensorflow as tf

  counts = collections.Counter()
  for record in tf.data.TFRecordDataset(str(records)):
    features = tf.train.Example.FromString(record.numpy()).features.feature
    ids = features["masked_lm_ids"].int64_list.value
    weights = features["masked_lm_weights"].float_list.value
    counts.update(piece for piece, weight in zip(ids, weights, strict=True) if weight)
  total = counts.total()
  return -sum(n / total * math.log(n / total) for n in counts.values())


if __name__ == "__main__":
  main()
