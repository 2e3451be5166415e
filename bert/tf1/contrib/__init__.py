"""`tf.contrib`: the parts that scripts around BERT use, one module each.

TensorFlow 2 dropped `tf.contrib`. What is here computes what 1.15 computed, under the same names.
"""

import os

from bert.tf1.errors import NotAvailable

# The parts there are; `bert.tf1.face` imports each of them.
PARTS = sorted(
  file.removesuffix(".py")
  for file in os.listdir(os.path.dirname(__file__))
  if file.endswith(".py") and not file.startswith("_")
)


def __getattr__(name: str):
  if name.startswith("__"):
    raise AttributeError(name)
  raise NotAvailable(
    f"tf.contrib.{name} is not available on this TensorFlow. tf.contrib has: {', '.join(PARTS)}."
  )
