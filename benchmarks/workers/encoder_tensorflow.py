"""This project's encoder, for `encoder_inference.py`: each way to run it has a name.

A new way is one more function with a name in `WAYS`.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from encoder_inputs import make_inputs  # noqa: E402
from serving import milliseconds, serve  # noqa: E402

from bert import modeling  # noqa: E402
from bert.checkpoints import finding, load_report, reading  # noqa: E402
from bert.exporting import hub_encoder, saved_models  # noqa: E402
from bert.model import variables  # noqa: E402

# ---------------------------------------------------------------------------------------------
# Ways: `(weights folder, scratch folder)` to a function of three int32 tensors that returns
# sequence output and pooled output.


def exported(weights, scratch):
  """The SavedModel of `export_hub.py`, called as `hub.load(...)(inputs)`."""
  encoder = _load_exported(weights, scratch)

  def call(*inputs):
    outputs = encoder(dict(zip(hub_encoder.INPUTS, inputs, strict=True)))
    return outputs["sequence_output"], outputs["pooled_output"]

  return call


def signature(weights, scratch):
  """The same SavedModel's `serving_default`, as TensorFlow Serving runs it."""
  function = _load_exported(weights, scratch).signatures["serving_default"]

  def call(*inputs):
    outputs = function(**dict(zip(hub_encoder.INPUTS, inputs, strict=True)))
    return outputs["sequence_output"], outputs["pooled_output"]

  return call


def function_of(dtype):
  """`modeling.BertModel` inside a `tf.function`, batch and length unknown."""

  def build(weights, scratch):
    del scratch
    config = modeling.BertConfig.from_json_file(os.path.join(weights, "bert_config.json"))
    store = variables.VariableStore()

    @tf.function(autograph=False, input_signature=3 * [tf.TensorSpec([None, None], tf.int32)])
    def call(ids, mask, segments):
      with variables.use_store(store):
        model = modeling.BertModel(config, False, ids, mask, segments, dtype=tf.as_dtype(dtype))
      return model.get_sequence_output(), model.get_pooled_output()

    call.get_concrete_function()
    prefix = finding.find_checkpoint(weights)
    saved_models.load_all(prefix, store.variables.values())
    return call

  return build


WAYS = {
  "exported": exported,
  "signature": signature,
  "function": function_of("float32"),
  "function bfloat16": function_of("bfloat16"),
}


def _load_exported(weights, scratch):
  path = os.path.join(scratch, "exported")
  if not os.path.isdir(path):
    config = modeling.BertConfig.from_json_file(os.path.join(weights, "bert_config.json"))
    hub_encoder.export_encoder(path, config, weights, os.path.join(weights, "vocab.txt"), True)
  return tf.saved_model.load(path)


# ---------------------------------------------------------------------------------------------


class Encoders:
  """Answers requests; a way is built when it is first asked for."""

  def __init__(self, weights, scratch):
    self._weights, self._scratch = weights, scratch
    self._vocab_size = json.loads(pathlib.Path(weights, "bert_config.json").read_text())[
      "vocab_size"
    ]
    self._calls = {}

  def _prepare(self, way, batch, length, padded=False):
    if way not in self._calls:
      self._calls[way] = WAYS[way](self._weights, self._scratch)
    inputs = make_inputs(batch, length, self._vocab_size, padded)
    return self._calls[way], [tf.constant(array, tf.int32) for array in inputs]

  def time(self, way, batch, length, seconds):
    """Median milliseconds of a call, up to pooled output as a NumPy array."""
    call, inputs = self._prepare(way, batch, length)
    call(*inputs)
    return milliseconds(lambda: call(*inputs)[1].numpy(), seconds)

  def outputs(self, way, batch, length, path):
    """Writes the vectors of the first tokens for inputs with padding."""
    call, inputs = self._prepare(way, batch, length, padded=True)
    np.save(path, call(*inputs)[0][:, 0].numpy())

  def write_npz(self, path):
    """Writes the checkpoint's encoder as `.npz`, name by name."""
    prefix = finding.find_checkpoint(self._weights)
    names = [name for name in reading.names_and_shapes(prefix) if name.startswith("bert/")]
    names = [name for name in names if not load_report.is_training_state(name)]
    np.savez(path, **reading.read_tensors(prefix, names))


if __name__ == "__main__":
  encoders = Encoders(*sys.argv[1:])
  serve(
    {
      "time": encoders.time,
      "outputs": encoders.outputs,
      "write_npz": encoders.write_npz,
      "ways": lambda: list(WAYS),
    }
  )
