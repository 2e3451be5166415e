"""Pre-training steps on masked words: tokens per second, beside transformers.

  python benchmarks/pretraining_step.py --corpus=wiki.txt --vocab_file=vocab.txt

makes records of the text (20 masked words, as long as its documents and the original's rules make
them), and trains for `--steps` with `run_pretraining.py`. transformers' `BertForMaskedLM` trains on
the very same batches, masks included, in a loop like its run_mlm.py's: AdamW, clipping, linear
warm-up, float32 or bfloat16 autocast. Both start from random weights and have the same sizes:
`small` (4 layers, 512) and `minilm` (6 layers, 384).

Each turn is a whole command. A value is real tokens (padding does not count) over the time of all
steps but the first. Flags after `--` go to `run_pretraining.py` in every case.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

# layers, width, heads
SIZES = {"small": (4, 512, 8), "minilm": (6, 384, 12)}
SHAPE = {"max_seq_length": 128, "max_predictions_per_seq": 20}
LEARNING_RATE = 1e-4
SEED = 12345


def main():
  args = _parse()
  common.check_peer(args.peer_python)
  ceilings = common.measure_ceilings(args.peer_python)
  rows, losses = [], {}
  with tempfile.TemporaryDirectory() as folder:
    batches = _write_batches(args, folder)
    for size in args.sizes.split(","):
      config = _write_config(size, args.vocab_file, folder)
      losses[size] = {}
      systems = _systems(args, config, batches, losses[size])
      flops = flops_per_token(common.read_config(config.parent), batches)
      for name, values in common.take_turns(systems, args.repeats).items():
        rows.append(common.Row(size, name, "tokens/s", values, flops, name.split(", ")[1]))
      print(f"{size} is done", flush=True)
  references = [f"transformers, {dtype}" for dtype in ("bfloat16", "float32")]
  references = references if args.peer_python else []
  facts = {"steps": args.steps, "batch_size": args.batch_size, "flags": args.flags}
  common.report("pretraining_step", rows, references, ceilings, **facts, losses=losses)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--corpus", required=True, help="text, an empty line between documents")
  parser.add_argument("--vocab_file", required=True)
  parser.add_argument("--sizes", default="small,minilm", help=f"of {', '.join(SIZES)}")
  parser.add_argument("--dtypes", default="float32,bfloat16")
  parser.add_argument("--steps", type=int, default=40)
  parser.add_argument("--batch_size", type=int, default=32)
  common.add_peer_flags(parser)
  parser.add_argument("flags", nargs="*", help="further flags of run_pretraining.py, after --")
  return parser.parse_args()


def _write_batches(args, folder):
  """Records, and the batches that come of them, as `.npz`."""
  records = f"{folder}/records.tfrecord"
  shape = [f"--{name}={value}" for name, value in SHAPE.items()]
  files = [f"--input_file={args.corpus}", f"--vocab_file={args.vocab_file}"]
  script = str(ROOT / "create_pretraining_data.py")
  common.run_command(
    [sys.executable, script, *files, f"--output_file={records}", "--dupe_factor=1", *shape]
  )
  path = f"{folder}/batches.npz"
  numbers = [args.steps, args.batch_size, *SHAPE.values(), SEED]
  script = str(common.WORKERS / "pretraining_batches.py")
  common.run_command([sys.executable, script, records, path, *map(str, numbers)])
  return path


def _write_config(size, vocab_file, folder):
  layers, width, heads = SIZES[size]
  path = pathlib.Path(folder, size, "bert_config.json")
  path.parent.mkdir()
  config = {
    "vocab_size": len(pathlib.Path(vocab_file).read_text("utf-8").splitlines()),
    "hidden_size": width,
    "num_hidden_layers": layers,
    "num_attention_heads": heads,
    "intermediate_size": 4 * width,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
  }
  path.write_text(json.dumps(config))
  return path


def _systems(args, config, batches, losses):
  systems = {}
  for dtype in args.dtypes.split(","):
    systems[f"ours, {dtype}"] = lambda dtype=dtype: _ours(args, config, batches, dtype, losses)
    if args.peer_python:
      systems[f"transformers, {dtype}"] = lambda dtype=dtype: _peer(
        args, config, batches, dtype, losses
      )
  return systems


def _ours(args, config, batches, dtype, losses):
  with tempfile.TemporaryDirectory() as output_dir:
    finished = common.run_command(
      [
        *(sys.executable, str(ROOT / "run_pretraining.py"), "--do_train"),
        f"--input_file={pathlib.Path(batches).with_name('records.tfrecord')}",
        f"--bert_config_file={config}",
        f"--output_dir={output_dir}",
        *(f"--{name}={value}" for name, value in SHAPE.items()),
        f"--train_batch_size={args.batch_size}",
        f"--num_train_steps={args.steps}",
        f"--num_warmup_steps={args.steps // 10}",
        f"--learning_rate={LEARNING_RATE}",
        f"--seed={SEED}",
        f"--dtype={dtype}",
        # Computing accuracies costs time, in the steps that are logged.
        *(f"--save_summary_steps={10**6}", f"--log_every_steps={10**6}"),
        "--objective=mlm",
        *args.flags,
      ]
    )
  losses[f"ours, {dtype}"] = float(re.findall(r"\bloss ([\d.]+)", finished.log)[-1])
  return tokens_per_second(finished.log)


def tokens_per_second(log: str) -> float:
  """Speed in the last line of progress, which excludes the first step.

  Example:
    >>> tokens_per_second("step 9/9, loss 9.1, 30.1 examples/s, 2811.5 tokens/s, 00:00 left")
    2811.5
  """
  return float(re.findall(r"([\d.e+]+) tokens/s", log)[-1])


def _peer(args, config, batches, dtype, losses):
  finished = common.run_command(
    [
      *(args.peer_python, str(common.WORKERS / "pretraining_torch.py")),
      *(f"--config={config}", f"--batches={batches}", f"--dtype={dtype}"),
      f"--learning_rate={LEARNING_RATE}",
    ]
  )
  facts = common.last_json(finished.log)
  losses[f"transformers, {dtype}"] = facts["last_loss"]
  return facts["tokens_per_second"]


def flops_per_token(config, batches) -> float:
  """FLOPs of the matrix products of a step that are needed, divided by its real tokens.

  Forward and backward take three times those of forward, and only masked words need scores.
  """
  with np.load(batches) as arrays:
    masks = [arrays[name] for name in arrays.files if name.endswith("/input_mask")]
    weights = [arrays[name] for name in arrays.files if name.endswith("/masked_lm_weights")]
  lengths = [int(length) for mask in masks for length in mask.sum(axis=1)]
  words = sum(int((weight != 0).sum()) for weight in weights)
  width = config["hidden_size"]
  for_word = 2 * width * (width + config["vocab_size"])
  return 3 * (common.encoder_flops(config, lengths) + words * for_word) / sum(lengths)


if __name__ == "__main__":
  main()
