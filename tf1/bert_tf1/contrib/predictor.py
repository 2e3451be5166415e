"""`tf.contrib.predictor`: a SavedModel or an Estimator as a function of arrays.

predict = tf.contrib.predictor.from_saved_model("out/export/1700000000")
predict({"input_ids": ids, "input_mask": mask})["probabilities"]
"""

from collections.abc import Callable, Mapping
from typing import Any

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

__all__ = ["from_estimator", "from_saved_model"]

_DEFAULT = "serving_default"


class Predictor:
  """Runs a graph from named arrays to named arrays.

  Args:
    graph: with the tensors.
    session: that holds the variables' values.
    inputs: name to the name of the tensor that is fed.
    outputs: name to the name of the tensor that is fetched.
  """

  def __init__(self, graph: tf.Graph, session: Any, inputs: Mapping, outputs: Mapping):
    self.graph = graph
    self.session = session
    self.feed_tensors = {key: graph.get_tensor_by_name(name) for key, name in inputs.items()}
    self.fetch_tensors = {key: graph.get_tensor_by_name(name) for key, name in outputs.items()}

  def __repr__(self):
    return (
      f"{type(self).__name__} with feed tensors {self.feed_tensors} "
      f"and fetch_tensors {self.fetch_tensors}"
    )

  def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the outputs for arrays, both by name; None, or a name left out, is not fed.

    Raises:
      ValueError: a name that is no input.
    """
    unexpected = set(input_dict) - set(self.feed_tensors)
    if unexpected:
      raise ValueError(
        f"Got unexpected keys in input_dict: {unexpected}\nexpected: {set(self.feed_tensors)}"
      )
    given = {key: value for key, value in input_dict.items() if value is not None}
    feed = {self.feed_tensors[key]: value for key, value in given.items()}
    return self.session.run(self.fetch_tensors, feed)


def _tensor_names(tensors: Mapping[str, Any]) -> dict[str, str]:
  return {key: info.name for key, info in tensors.items()}


def from_saved_model(
  export_dir: str | bytes,
  signature_def_key: str | None = None,
  signature_def: Any = None,
  input_names: Mapping[str, str] | None = None,
  output_names: Mapping[str, str] | None = None,
  tags: str | None = None,
  graph: tf.Graph | None = None,
  config: Any = None,
) -> Predictor:
  """Loads a SavedModel as a function.

  Args:
    export_dir: its folder.
    signature_def_key: name of a signature; `serving_default` by default.
    signature_def: a signature of one's own, instead.
    input_names, output_names: name to name of a tensor, instead.
    tags: of the graph, with commas between; `serve` by default.
    graph: to load it into; a new one by default.
    config: of the session, a `tf.ConfigProto`.

  Raises:
    ValueError: several ways to say which tensors, or a signature that is not there.
  """
  if (input_names is None) != (output_names is None):
    raise ValueError("input_names and output_names must both be specified or both be unspecified.")
  ways = (signature_def_key, signature_def, input_names)
  if sum(way is not None for way in ways) > 1:
    raise ValueError(
      "You must specify at most one of signature_def_key OR signature_def OR "
      "(input_names AND output_names)."
    )
  graph = graph or tf.Graph()
  with graph.as_default():
    session = tf.Session(config=config)
    path = tf.compat.as_str_any(export_dir)
    loaded = tf.saved_model.loader.load(session, (tags or "serve").split(","), path)
  if input_names is not None:
    return Predictor(graph, session, input_names, output_names or {})
  key = signature_def_key or _DEFAULT
  if signature_def is None and key not in loaded.signature_def:
    known = sorted(loaded.signature_def)
    raise ValueError(f'Got signature_def_key "{key}". Available signatures are {known}.')
  signature = signature_def or loaded.signature_def[key]
  return Predictor(
    graph, session, _tensor_names(signature.inputs), _tensor_names(signature.outputs)
  )


def from_estimator(
  estimator: Any,
  serving_input_receiver_fn: Callable[[], Any],
  output_key: str | None = None,
  graph: tf.Graph | None = None,
  config: Any = None,
) -> Predictor:
  """Loads the newest checkpoint of an Estimator as a function.

  Args:
    estimator: a `tf.estimator.Estimator`.
    serving_input_receiver_fn: makes the receiver of the inputs.
    output_key: name of an export output; `serving_default` by default.
    graph: to build it in; a new one by default.
    config: of the session, a `tf.ConfigProto`.

  Raises:
    KeyError: the model has no such output.
  """
  graph = graph or tf.Graph()
  key = output_key or _DEFAULT
  with graph.as_default():
    received = serving_input_receiver_fn()
    spec = estimator.model_fn(received.features, None, "infer", estimator.config)
    if key not in spec.export_outputs:
      raise KeyError(f"output_key must be one of {list(spec.export_outputs)}; got {key}")
    signature = spec.export_outputs[key].as_signature_def(received.receiver_tensors)
    session = tf.train.MonitoredSession(
      tf.train.ChiefSessionCreator(config=config, checkpoint_dir=estimator.model_dir)
    )
  return Predictor(
    graph, session, _tensor_names(signature.inputs), _tensor_names(signature.outputs)
  )


__getattr__ = unknown_name(
  __name__, {"from_contrib_estimator": "tf.contrib.learn is not here; use from_estimator."}
)
