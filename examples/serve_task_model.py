"""Labels of strings from a model fine-tuned with `--do_export`, without this project.

  python run_classifier.py --task_name=MRPC --do_train --do_export --output_dir=output/mrpc ...
  python examples/serve_task_model.py output/mrpc/export/task

It needs only TensorFlow and tensorflow_text. TensorFlow Serving calls the same signature.
"""

import sys

import tensorflow as tf
import tensorflow_text as text  # noqa: F401 (registers the model's ops)


def main(folder: str) -> None:
  model = tf.saved_model.load(folder)
  first = ["The company said profits rose.", "The company said profits rose."]
  second = ["Profits went up, the company said.", "It rained in the north."]
  outputs = model(tf.constant(first), tf.constant(second))
  names = [name.decode() for name in outputs["label_names"].numpy()]
  for a, b, label, probabilities in zip(
    first, second, outputs["label"].numpy(), outputs["probabilities"].numpy(), strict=True
  ):
    shares = ", ".join(f"{n} {p:.3f}" for n, p in zip(names, probabilities, strict=True))
    print(f"{a} | {b}\n  {label.decode()} ({shares})")

  serving = model.signatures["serving_default"]
  print(serving(text_a=tf.constant(first), text_b=tf.constant(second)).keys())


if __name__ == "__main__":
  if len(sys.argv) != 2:
    sys.exit(__doc__)
  main(sys.argv[1])
