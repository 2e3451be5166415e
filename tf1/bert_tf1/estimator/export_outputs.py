"""What a served model gives: outputs, and the signatures that a SavedModel has for them.

TensorFlow still carries the classes of outputs and their checks. Which signatures are written
follows 1.15.5: later versions leave out one that needs a placeholder beyond its inputs.
"""

from collections.abc import Mapping
from typing import Any

from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.saved_model import signature_def_utils
from tensorflow.python.saved_model.model_utils import export_utils
from tensorflow.python.saved_model.model_utils.export_output import ExportOutput

from bert_tf1.estimator.receivers import INPUT_NAME
from bert_tf1.real import tf


def checked(export_outputs: Any, predictions: Any) -> dict[str, ExportOutput]:
  """Returns the outputs of a model that predicts, `serving_default` among them.

  Args:
    export_outputs: name to output, or None for the predictions as the sole output. The name
      `serving_default` is added for a sole output of another name.
    predictions: a tensor, or name to tensor.

  Raises:
    TypeError: if it is no dictionary of outputs.
    ValueError: if there are several and none is called `serving_default`.
  """
  return export_utils.get_export_outputs(export_outputs, predictions)


def _warn_of_unfed(name: str, inputs: Mapping[str, Any], outputs: Any) -> None:
  """Says so if a signature cannot be served, because it needs more than its inputs."""
  try:
    export_utils._ensure_servable(inputs.values(), outputs)
  except ValueError as error:
    tf.logging.warning("Signature %r: %s", name, error)


def signatures(
  receiver_tensors: Mapping[str, Any],
  alternatives: Mapping[str, Mapping[str, Any]] | None,
  outputs: Mapping[str, ExportOutput],
  serving: bool,
) -> dict[str, meta_graph_pb2.SignatureDef]:
  """Returns a signature per output, and one called `ALTERNATIVE:OUTPUT` per alternative receiver.

  Args:
    receiver_tensors: name to tensor to be fed.
    alternatives: name to other tensors to be fed.
    outputs: name to output.
    serving: leave out what TensorFlow Serving could not serve; the log names them.
  """
  receivers = {"": receiver_tensors}
  for alternative, tensors in (alternatives or {}).items():
    receivers[f"{alternative or 'None'}:"] = (
      tensors if isinstance(tensors, dict) else {INPUT_NAME: tensors}
    )
  found: dict[str, meta_graph_pb2.SignatureDef] = {}
  excluded: dict[str, str] = {}
  for prefix, tensors in receivers.items():
    for key, output in outputs.items():
      name = f"{prefix}{key or 'None'}"
      try:
        found[name] = output.as_signature_def(tensors)
      except ValueError as error:
        excluded[name] = str(error)
      else:
        _warn_of_unfed(name, tensors, found[name].outputs)
  export_utils._log_signature_report(found, excluded)
  if not serving:
    return found
  valid = signature_def_utils.is_valid_signature
  return {name: signature for name, signature in found.items() if valid(signature)}
