"""Functions whose activations 1.15 computes again for their gradients."""

from collections.abc import Callable


def recompute_grad(fn: Callable, use_data_dep=None, tupleize_grads=False) -> Callable:
  """Returns `fn`: the same outputs and gradients, with the memory that recomputing would save."""
  del use_data_dep, tupleize_grads
  return fn
