"""`tf.estimator.export`: what an exported model takes and gives."""

from tensorflow.python.saved_model.model_utils.export_output import (
  ClassificationOutput,
  ExportOutput,
  PredictOutput,
  RegressionOutput,
)

from bert_tf1.errors import unknown_name
from bert_tf1.estimator.receivers import (
  ServingInputReceiver,
  TensorServingInputReceiver,
  build_parsing_serving_input_receiver_fn,
  build_raw_serving_input_receiver_fn,
)

__all__ = [
  "ClassificationOutput",
  "ExportOutput",
  "PredictOutput",
  "RegressionOutput",
  "ServingInputReceiver",
  "TensorServingInputReceiver",
  "build_parsing_serving_input_receiver_fn",
  "build_raw_serving_input_receiver_fn",
]

__getattr__ = unknown_name(__name__)
