"""Training by `fit` of `bert.transformers`, beside `run_classifier.py` and transformers 4.

  python benchmarks/transformers_fit.py --data_dir=glue/MRPC --weights=uncased_L-12_H-768_A-12 \\
    --transformers4_path=FOLDER

FOLDER holds transformers 4.57 and what it needs but TensorFlow (`pip install --target=FOLDER
transformers==4.57.6`); it runs on this interpreter, with Keras 2. All train on MRPC for `--steps`
steps of 32 examples of at most 128 tokens, in float32 and in bfloat16 (`mixed_bfloat16`), and take
turns. `fit` gets batches padded to their longest text, and in another turn all of 128 tokens;
`run_classifier.py` pads as it does by default.

  later steps    examples/s without the first steps
  first step     seconds from the command to the end of its first step
"""

import argparse
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

BATCH_SIZE = 32
MAX_SEQ_LENGTH = 128


def main():
  args = _parse()
  figures: dict[str, dict[str, list[float]]] = {}
  with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/model"
    convert = ["to_transformers", f"--init_checkpoint={args.weights}", f"--output_dir={model}"]
    common.run_command([sys.executable, str(ROOT / "convert_checkpoint.py"), *convert])
    for turn in range(args.repeats):
      for dtype in args.dtypes.split(","):
        for name, command, variables in _systems(
          args, model, f"{folder}/run_{turn}_{dtype}", dtype
        ):
          finished = common.run_command(["env", *variables, sys.executable, *command])
          for what, value in _speeds(finished, args.skip).items():
            figures.setdefault(what, {}).setdefault(name, []).append(value)
          print(name, figures["later steps"][name], flush=True)
  units = {"later steps": "examples/s", "first step": "s"}
  rows = [
    common.Row(what, name, units[what], values, dtype=name.rpartition(", ")[2])
    for what, systems in figures.items()
    for name, values in systems.items()
  ]
  references = [name for name in figures["first step"] if name.startswith("run_classifier")]
  common.report("transformers_fit", rows, references, steps=args.steps)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--data_dir", required=True)
  common.add_weights_flag(parser)
  parser.add_argument("--transformers4_path", help="folder of transformers 4; without: ours alone")
  parser.add_argument("--dtypes", default="float32,bfloat16")
  parser.add_argument("--steps", type=int, default=40)
  parser.add_argument("--skip", type=int, default=10, help="first steps, which are not counted")
  parser.add_argument("--repeats", type=int, default=3, help="turns of each system")
  return parser.parse_args()


def _systems(args, model, output_dir, dtype):
  """Yields the name, the command and the environment of each system."""
  weights = pathlib.Path(args.weights)
  flags = ["--task_name=MRPC", "--do_train", f"--data_dir={args.data_dir}", f"--dtype={dtype}"]
  num_examples = (pathlib.Path(args.data_dir) / "train.tsv").read_bytes().count(b"\n") - 1
  epochs = (args.steps + 0.5) * BATCH_SIZE / num_examples  # rounded down to whole steps
  flags += [f"--vocab_file={weights / 'vocab.txt'}", f"--num_train_epochs={epochs}"]
  flags += [f"--bert_config_file={weights / 'bert_config.json'}", f"--output_dir={output_dir}"]
  flags += [f"--max_seq_length={MAX_SEQ_LENGTH}", "--log_every_steps=1"]
  yield f"run_classifier.py, {dtype}", [str(ROOT / "run_classifier.py"), *flags], []
  worker = [str(common.WORKERS / "fit_tensorflow.py"), f"--model={model}", f"--dtype={dtype}"]
  worker += [f"--data_dir={args.data_dir}", f"--steps={args.steps}"]
  packages = {"bert.transformers": [f"PYTHONPATH={ROOT}"]}
  if args.transformers4_path:
    path = os.path.abspath(args.transformers4_path)
    packages["transformers"] = [f"PYTHONPATH={path}", "TF_USE_LEGACY_KERAS=1"]
  for package, variables in packages.items():
    for padding, flags in (("", []), (" padded to 128", [f"--pad_to={MAX_SEQ_LENGTH}"])):
      command = [*worker, f"--package={package}", *flags]
      yield f"{package}{padding}, {dtype}", command, variables


def _speeds(finished: common.Finished, skip: int) -> dict[str, float]:
  """What a run's log says of its time.

  Example:
    >>> steps = [(1, 5.0), (2, 6.0), (3, 6.5), (4, 7.0)]
    >>> _speeds(common.Finished(log="", seconds=8.0, steps=steps), skip=2)
    {'later steps': 64.0, 'first step': 5.0}
  """
  first, begin = finished.steps[skip - 1]
  last, end = finished.steps[-1]
  return {
    "later steps": BATCH_SIZE * (last - first) / (end - begin),
    "first step": finished.first_step_seconds(),
  }


if __name__ == "__main__":
  main()
