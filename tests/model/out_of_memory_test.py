"""Tests of bert/model/out_of_memory.py."""

import numpy as np
import pytest
import tensorflow as tf

from bert.model import out_of_memory

OOM = (
  "Graph execution error:\n\nDetected at node MatMul defined at (most recent call last):\n"
  'File "modeling.py", line 445, in attention_layer\n\nOOM when allocating tensor with '
  "shape[3000,12,128,128] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by "
  "allocator GPU_0_bfc\n\t [[{{node MatMul}}]]\nHint: if you want to see a list"
)


@pytest.mark.parametrize(
  ("error", "expected"),
  [
    (
      tf.errors.ResourceExhaustedError(None, None, OOM),
      "Out of memory for a tensor [3000,12,128,128] of float (2.2 GiB) on GPU:0. Lower it.",
    ),
    (
      tf.errors.InternalError(None, None, "XLA\nOut of memory while trying to allocate 2.2GiB."),
      "Out of memory: while trying to allocate 2.2GiB. Lower it.",
    ),
    (MemoryError("std::bad_alloc"), "Out of memory: std::bad_alloc. Lower it."),
    (MemoryError(), "Out of memory. Lower it."),
  ],
)
def test_errors_of_every_library_say_in_one_line_what_to_lower(error, expected):
  with pytest.raises(MemoryError) as caught, out_of_memory.explained("Lower it."):
    raise error
  assert str(caught.value) == expected


def test_numpy_says_what_it_could_not_allocate():
  with (
    pytest.raises(out_of_memory.OutOfMemoryError, match=r"Unable to allocate .* Lower it\.$"),
    out_of_memory.explained("Lower it."),
  ):
    np.zeros(10**15)


@pytest.mark.parametrize(
  "error",
  [
    ValueError("line 3: out of memory"),  # a text of the user's
    tf.errors.ResourceExhaustedError(None, None, "No space left on device"),
    tf.errors.InvalidArgumentError(None, None, "indices[0] = 99"),
  ],
)
def test_other_errors_stay_as_they_are(error):
  with pytest.raises(type(error)) as caught, out_of_memory.explained("Lower it."):
    raise error
  assert caught.value is error


def test_the_innermost_advice_stays():
  with (
    pytest.raises(MemoryError, match=r"Out of memory\. Lower the inner batch\.$"),
    out_of_memory.explained("Lower the outer batch."),
    out_of_memory.explained("Lower the inner batch."),
  ):
    raise MemoryError
