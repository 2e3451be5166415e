"""Steps of SQuAD beside the original's: equal without dropout, of one distribution with it.

  python benchmarks/original_steps.py --squad_dir=squad --weights=uncased_L-12_H-768_A-12 \\
    --original_dir=bert --original_python=python3.7 --output_dir=/tmp/steps

`--original_dir` is a checkout of google-research/bert, `--original_python` an interpreter with
TensorFlow 1.15. Both systems begin with the same weights, head and batches (12 windows of 256).

  steps    without dropout: the largest relative difference of losses and of gradients' norms
  draws    at the weights after those steps, on one batch, with dropout: losses and norms over draws
           of the masks; the variance of the gradients, ours by the original's; the squared
           difference of the mean gradients, by what two samples of one distribution would have
  orders   by how many places the shuffle delays a record, in orders of `train.tf_record`

The last two print p-values, and are 1 but for chance where they are ratios. Last, one JSON line.
What is in OUTPUT_DIR already is not made again.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

BATCH_SIZE, LENGTH, RATE = 12, 256, 5e-5
TASKS = ("steps", "draws", "orders")
# Records of a run of two epochs of the small SQuAD, and the batch that draws are made on.
ORDER_LENGTH, BATCH_OF_DRAWS = 3432, 5
HEAD = "cls/squad/output_weights"


def main():
  args = _parse()
  folder = pathlib.Path(args.output_dir)
  folder.mkdir(parents=True, exist_ok=True)
  if not (folder / "start.npz").exists():
    write_inputs(args, folder)
  counts = {"steps": args.steps, "draws": args.draws, "orders": args.orders}
  facts: dict = {"benchmark": "original_steps", "machine": common.machine(), "counts": counts}
  for task in TASKS:
    if not (folder / f"ours_{task}.npz").exists():
      print(f"ours: {task}", file=sys.stderr, flush=True)
      MAKE[task](args, folder, counts[task])
    if not (folder / f"original_{task}.npz").exists():
      print(f"original: {task}", file=sys.stderr, flush=True)
      worker = str(common.WORKERS / "squad_steps_original.py")
      places = [str(pathlib.Path(p).resolve()) for p in (args.original_dir, args.weights, folder)]
      command = [args.original_python, "-W", "ignore", worker, *places, task, str(counts[task])]
      # TensorFlow 2 leaves it behind, and 1.15 would become eager.
      environment = {name: value for name, value in os.environ.items() if name != "TF2_BEHAVIOR"}
      subprocess.run(command, check=True, env=environment)
    ours, theirs = (np.load(folder / f"{system}_{task}.npz") for system in ("ours", "original"))
    facts[task] = COMPARE[task](ours, theirs)
    print(task, facts[task], flush=True)
  print(json.dumps(facts))


def _parse():
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--squad_dir", required=True, help="folder with train-v1.1.json")
  common.add_weights_flag(parser)
  parser.add_argument("--original_dir", required=True, help="a checkout of google-research/bert")
  parser.add_argument("--original_python", required=True, help="with TensorFlow 1.15")
  parser.add_argument("--output_dir", required=True, help="folder of what both systems computed")
  parser.add_argument("--steps", type=int, default=60, help="at least 6")
  parser.add_argument("--draws", type=int, default=40)
  parser.add_argument("--orders", type=int, default=200)
  return parser.parse_args()


# ---------------------------------------------------------------------------------------------
# Ours.


def write_inputs(args, folder: pathlib.Path) -> None:
  """The records, the first batches of seed 1, and the weights with the head of seed 1."""
  import tensorflow as tf

  import run_squad
  import tokenization
  from bert.model import variables

  examples = run_squad.read_squad_examples(f"{args.squad_dir}/train-v1.1.json", True, False)
  random.Random(12345).shuffle(examples)
  tokenizer = tokenization.FullTokenizer(f"{args.weights}/vocab.txt")
  windows = run_squad.generate_features(examples, tokenizer, LENGTH, 128, 64, True)
  run_squad.write_features(str(folder / "train.tf_record"), windows, True)
  batches = [
    {name: value.numpy() for name, value in batch.items()}
    for batch in _input_fn(folder)(_order(1)).take(args.steps)
  ]
  np.savez(
    folder / "batches.npz", **{name: np.stack([b[name] for b in batches]) for name in batches[0]}
  )
  reader = tf.train.load_checkpoint(common.checkpoint_in(args.weights))
  names = [n for n in reader.get_variable_to_shape_map() if n.startswith("bert/")]
  weights = {name: reader.get_tensor(name) for name in names if not name.endswith(("_m", "_v"))}
  width = weights["bert/embeddings/word_embeddings"].shape[1]
  with variables.use_store(variables.VariableStore(1)):
    normal = variables.truncated_normal_initializer(0.02)
    head = variables.get_variable(HEAD, [2, width], normal).numpy()
  np.savez(folder / "start.npz", **{**weights, HEAD: head})


def _input_fn(folder):
  import run_squad

  return run_squad.input_fn_builder(str(folder / "train.tf_record"), LENGTH, True, True)


def _order(seed: int) -> dict:
  return {"batch_size": BATCH_SIZE, "seed": seed, "skip_examples": 0}


def _make_steps(args, folder, count):
  store, step, _ = _traced(args, folder, "steps", count)
  outputs = [[float(x) for x in step(i, 0)[:2]] for i in range(count)]
  np.savez(folder / "ours_steps.npz", outputs=np.array(outputs))
  trained = {n: v.numpy() for n, v in store.variables.items() if "/adam_" not in n}
  np.savez(folder / "trained.npz", **trained)


def _make_draws(args, folder, count):
  _, step, names = _traced(args, folder, "draws", count)
  outputs, sums, squares = [], {}, {}
  for draw in range(count):
    loss, norm, *gradients = step(BATCH_OF_DRAWS, draw)
    outputs.append([float(loss), float(norm)])
    for i, gradient in enumerate(gradients):
      value = gradient.numpy().astype(np.float64)
      sums[i], squares[i] = sums.get(i, 0.0) + value, squares.get(i, 0.0) + value**2
  arrays = {}
  for kind, totals in (("mean", sums), ("square", squares)):
    arrays |= {f"{kind}/{names[i]}": total / count for i, total in totals.items()}
  np.savez(folder / "ours_draws.npz", outputs=np.array(outputs), **arrays)


def _make_orders(args, folder, count):
  del args
  orders = []
  for seed in [12345, *range(count - 1)]:
    batches = _input_fn(folder)(_order(seed)).take(ORDER_LENGTH // BATCH_SIZE)
    orders.append(np.concatenate([batch["unique_ids"].numpy() for batch in batches]))
  np.savez(folder / "ours_orders.npz", orders=np.array(orders))


MAKE = {"steps": _make_steps, "draws": _make_draws, "orders": _make_orders}


def _traced(args, folder, task, total):
  """The store, `step(batch number, seed)` -> loss, norm, gradients; and their variables' names."""
  import tensorflow as tf

  import modeling
  import run_squad
  from bert.model.variables import VariableStore, random_stream, traced_once, use_store

  config = modeling.BertConfig.from_json_file(f"{args.weights}/bert_config.json")
  if task == "steps":
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
  model_fn = run_squad.model_fn_builder(config, None, RATE, total, total // 10, False, False)
  arrays = np.load(folder / "batches.npz")
  batches = {name: arrays[name] for name in arrays.files}
  store, names = VariableStore(1), []

  @tf.function(autograph=False)
  def step(batch, seed):
    with use_store(store), random_stream(seed, 0):
      spec = model_fn(batch, None, "train", {})
      train_op = spec.train_op
      pairs = [
        (g, v) for g, v in zip(train_op.gradients, train_op.variables, strict=True) if g is not None
      ]
      names[:] = [variable.name.split(":")[0] for _, variable in pairs]
      norm = tf.linalg.global_norm(train_op.gradients)
      if task == "draws":
        return spec.loss, norm, *(tf.convert_to_tensor(gradient) for gradient, _ in pairs)
      train_op.apply(train_op.gradients)
      return spec.loss, norm

  def run(number, seed):
    batch = {name: tf.constant(values[number]) for name, values in batches.items()}
    return step(batch, tf.constant(seed, tf.int64))

  first = {name: tf.constant(values[0]) for name, values in batches.items()}
  with traced_once():
    step.get_concrete_function(first, tf.constant(0, tf.int64))
  start = np.load(folder / ("start.npz" if task == "steps" else "trained.npz"))
  for name, variable in store.variables.items():
    if name in start.files:
      variable.assign(start[name])
  return store, run, names


# ---------------------------------------------------------------------------------------------
# Comparisons.


def compare_steps(ours, theirs) -> dict[str, float]:
  """The largest relative differences over all steps."""
  difference = np.abs(ours["outputs"] / theirs["outputs"] - 1).max(0)
  return dict(zip(("loss", "norm"), map(float, difference), strict=True))


def compare_draws(ours, theirs) -> dict[str, float]:
  """p-values of losses and norms, and two ratios of the gradients; see above."""
  from scipy import stats

  both = [ours, theirs]
  facts = {}
  for place, name in enumerate(("loss", "norm")):
    one, other = (arrays["outputs"][:, place] for arrays in both)
    facts |= {f"{name}_ours": float(one.mean()), f"{name}_original": float(other.mean())}
    facts[f"p_{name}"] = float(stats.ttest_ind(one, other, equal_var=False).pvalue)
    facts[f"p_spread_of_{name}"] = float(stats.levene(one, other).pvalue)
  counts = [len(arrays["outputs"]) for arrays in both]
  variances, difference, expected = [0.0, 0.0], 0.0, 0.0
  for key in (key for key in ours.files if key.startswith("mean/")):
    square = key.replace("mean/", "square/")
    for system, (arrays, n) in enumerate(zip(both, counts, strict=True)):
      variance = float(np.maximum(arrays[square] - arrays[key] ** 2, 0.0).sum()) * n / (n - 1)
      variances[system] += variance
      expected += variance / n
    difference += float(((ours[key] - theirs[key]) ** 2).sum())
  facts["variance_ratio"] = variances[0] / variances[1]
  facts["difference_ratio"] = difference / expected
  return facts


def compare_orders(ours, theirs) -> dict[str, float]:
  """Delays of records: their means and deviations, and that both have one distribution."""
  from scipy import stats

  delays = [delays_of(arrays["orders"]) for arrays in (ours, theirs)]
  facts = {}
  for name, values in zip(("ours", "original"), delays, strict=True):
    facts |= {f"mean_{name}": float(values.mean()), f"deviation_{name}": float(values.std())}
  # Delays in one order depend on each other a little: a part of them, far apart.
  one, other = (values[:, 500:-300:7].ravel() for values in delays)
  facts["p"] = float(stats.ks_2samp(one, other).pvalue)
  return facts


def delays_of(orders: np.ndarray) -> np.ndarray:
  """By how many places each record comes later than in the repeated file.

  Args:
    orders: int `[N, M]`: `unique_ids` of N orders, which count up through the file.

  Example:
    >>> delays_of(np.array([[1, 0, 2, 3, 4, 6, 5, 7, 0, 1]])).tolist()  # of a file of eight
    [[-1, 1, 0, 0, 0, -1, 1, 0, 0, 0]]
  """
  records = orders - orders.min()
  count = records.max() + 1
  places = np.arange(orders.shape[1])
  epochs = np.round((places - records) / count).astype(int)
  return places - (records + count * epochs)


COMPARE = {"steps": compare_steps, "draws": compare_draws, "orders": compare_orders}


if __name__ == "__main__":
  main()
