"""`tf.estimator`: what trains, evaluates, predicts and exports by the graph of a model_fn."""

from bert_tf1.errors import unknown_name
from bert_tf1.estimator import experimental as experimental
from bert_tf1.estimator import export as export
from bert_tf1.estimator import inputs as inputs
from bert_tf1.estimator import tpu as tpu
from bert_tf1.estimator.estimator import Estimator
from bert_tf1.estimator.exporters import BestExporter, Exporter, FinalExporter, LatestExporter
from bert_tf1.estimator.extenders import add_metrics
from bert_tf1.estimator.run_config import RunConfig
from bert_tf1.estimator.specs import EstimatorSpec, ModeKeys
from bert_tf1.estimator.training import EvalSpec, TrainSpec, train_and_evaluate
from bert_tf1.estimator.warm_start import WarmStartSettings
from bert_tf1.real import tf

__all__ = [
  "BestExporter",
  "CheckpointSaverHook",
  "CheckpointSaverListener",
  "Estimator",
  "EstimatorSpec",
  "EvalSpec",
  "Exporter",
  "FeedFnHook",
  "FinalExporter",
  "FinalOpsHook",
  "GlobalStepWaiterHook",
  "LatestExporter",
  "LoggingTensorHook",
  "ModeKeys",
  "NanLossDuringTrainingError",
  "NanTensorHook",
  "ProfilerHook",
  "RunConfig",
  "SecondOrStepTimer",
  "SessionRunArgs",
  "SessionRunContext",
  "SessionRunHook",
  "SessionRunValues",
  "StepCounterHook",
  "StopAtStepHook",
  "SummarySaverHook",
  "TrainSpec",
  "VocabInfo",
  "WarmStartSettings",
  "add_metrics",
  "experimental",
  "export",
  "inputs",
  "tpu",
  "train_and_evaluate",
]

# The same as in tf.train.
CheckpointSaverHook = tf.train.CheckpointSaverHook
CheckpointSaverListener = tf.train.CheckpointSaverListener
FeedFnHook = tf.train.FeedFnHook
FinalOpsHook = tf.train.FinalOpsHook
GlobalStepWaiterHook = tf.train.GlobalStepWaiterHook
LoggingTensorHook = tf.train.LoggingTensorHook
NanLossDuringTrainingError = tf.train.NanLossDuringTrainingError
NanTensorHook = tf.train.NanTensorHook
ProfilerHook = tf.train.ProfilerHook
SecondOrStepTimer = tf.train.SecondOrStepTimer
SessionRunArgs = tf.train.SessionRunArgs
SessionRunContext = tf.train.SessionRunContext
SessionRunHook = tf.train.SessionRunHook
SessionRunValues = tf.train.SessionRunValues
StepCounterHook = tf.train.StepCounterHook
StopAtStepHook = tf.train.StopAtStepHook
SummarySaverHook = tf.train.SummarySaverHook
VocabInfo = tf.train.VocabInfo

_CANNED = (
  *(
    "DNNClassifier",
    "DNNRegressor",
    "LinearClassifier",
    "LinearRegressor",
    "BoostedTreesRegressor",
  ),
  *("BoostedTreesClassifier", "DNNEstimator", "LinearEstimator", "BaselineClassifier"),
  *("DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor", "BaselineRegressor"),
)
__getattr__ = unknown_name(
  __name__,
  dict.fromkeys(
    _CANNED, "ready-made models are not here; write a model_fn for tf.estimator.Estimator."
  ),
)
