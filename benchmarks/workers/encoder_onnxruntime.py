"""onnxruntime's encoder for `encoder_inference.py`, at its default level of optimization."""

import os
import sys

import numpy as np
import onnxruntime
from encoder_inputs import make_inputs
from serving import milliseconds, serve


class Encoders:
  """Answers requests."""

  def __init__(self, path, vocab_size):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    self._session = onnxruntime.InferenceSession(path, options)
    self._names = [node.name for node in self._session.get_inputs()]
    self._vocab_size = int(vocab_size)

  def _feed(self, batch, length, padded=False):
    arrays = make_inputs(batch, length, self._vocab_size, padded)
    return dict(zip(self._names, arrays, strict=True))

  def time(self, way, batch, length, seconds):
    """Median milliseconds of a call."""
    del way
    feed = self._feed(batch, length)
    self._session.run(None, feed)
    return milliseconds(lambda: self._session.run(None, feed), seconds)

  def outputs(self, way, batch, length, path):
    """Writes the vectors of the first tokens for inputs with padding."""
    del way
    np.save(path, self._session.run(None, self._feed(batch, length, True))[0][:, 0])


if __name__ == "__main__":
  encoders = Encoders(*sys.argv[1:])
  serve({"time": encoders.time, "outputs": encoders.outputs})
