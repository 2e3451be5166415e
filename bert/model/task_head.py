"""The form of a head: what is computed of a batch, from values alone.

  @dataclasses.dataclass(frozen=True)
  class Stars(Head):
    num_levels: int = 5

    def outputs(self, batch):
      vectors = batch.bert(only_pooled_output=True).get_pooled_output()
      return {"logits": heads.get_classifier_logits(vectors, self.num_levels, batch.is_training)}

    def loss(self, batch, outputs): ...

A run trains a head, a teacher computes its outputs once more with another model, an export serves
them, and the functions of 2018 build on it. So a head holds numbers and names, no settings, no
files and no data: its fields are what a run's folder remembers of it.

Importing this module imports no TensorFlow, so that `--help` is instant; methods that take tensors
import it themselves.

Letters in shapes: B = batch size, S = sequence length, N = texts of an example, C = classes.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

SEQUENCES = ("input_ids", "input_mask", "segment_ids")

Tensors = dict[str, Any]  # name -> tensor

# Flags of earlier versions that decided what a model's outputs mean, and the value of all others.
_RETIRED = {"label_scale": 1.0, "segment_id": 0}


def check_retired(values: Mapping[str, Any]) -> None:
  """Refuses a model of a flag without which its outputs would be read wrongly.

  Args:
    values: facts and flags of the run that trained it.

  Raises:
    ValueError: names the flag.
  """
  for name, usual in _RETIRED.items():
    if values.get(name, usual) != usual:
      raise ValueError(
        f"The model was trained with --{name}={values[name]}, which this version does not support. "
        "Train it again without the flag, or use the version that trained it."
      )


def model_options(use_one_hot_embeddings: bool = False, dtype: Any = "float32") -> dict[str, Any]:
  """Returns the keywords of `modeling.BertModel` that depend on the device (one-hot for TPUs)."""
  import tensorflow as tf

  return {
    "use_one_hot_embeddings": use_one_hot_embeddings,
    "dtype": tf.as_dtype(dtype),
    # TPUs compile for fixed shapes, which skipping padding does not have.
    "skip_padding": not use_one_hot_embeddings,
  }


@dataclasses.dataclass(frozen=True)
class Batch:
  """A batch, and the model that reads it.

  Attributes:
    config: the `modeling.BertConfig` of the run's model, or of its teacher.
    features: name -> tensor `[B, ...]`, as in the task's records.
    is_training: whether to drop out.
    options: keywords of `modeling.BertModel`, see `model_options`.
    parts: the number of micro-batches of a step, see `heads.loss_divisor`.
    mode: one of `estimator.ModeKeys`; a teacher computes outputs of training without dropout.
  """

  config: Any
  features: Mapping[str, Any]
  is_training: bool = False
  options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  parts: int = 1
  mode: str = "infer"

  def bert(self, *inputs: Any, **options: Any):
    """Applies the encoder.

    Args:
      *inputs: int `[B, S]`: token ids, mask and segments; by default those of the batch. Sequences
        of several texts, `[B, N, S]`, become rows of their own, `[B * N, S]`.
      **options: further keywords of `modeling.BertModel`.

    Returns:
      A `modeling.BertModel`, with `get_pooled_output()` and `get_sequence_output()`.
    """
    import tensorflow as tf

    from bert import modeling

    inputs = inputs or tuple(self.features[n] for n in SEQUENCES if n in self.features)
    if len(inputs[0].shape) > 2:
      length = modeling.get_shape_list(inputs[0])[-1]
      inputs = tuple(tf.reshape(each, [-1, length]) for each in inputs)
    return modeling.BertModel(self.config, self.is_training, *inputs, **{**self.options, **options})


@dataclasses.dataclass(frozen=True)
class Head:
  """What is computed of a batch. Subclasses are frozen dataclasses of JSON values.

  Attributes:
    per_token: whether all outputs are of tokens, `[B, S, ...]`: an export then adds the tokens, and
      a student does not learn padding.
    token_outputs: otherwise the names of the distilled outputs that are.
  """

  per_token: ClassVar[bool] = False
  token_outputs: ClassVar[Sequence[str]] = ()

  @classmethod
  def of_run(cls, facts: Mapping[str, Any], settings: Mapping[str, Any]) -> "Head":
    """Makes the head of a run that has trained, whose values its facts hold.

    Args:
      facts: the fingerprint of the run.
      settings: its flags.
    """
    del settings
    return cls(**facts["head"])

  @classmethod
  def is_of_tokens(cls, name: str) -> bool:
    """Returns whether the distilled output of that name has a value for each token."""
    return cls.per_token or name in cls.token_outputs

  def outputs(self, batch: Batch) -> Tensors:
    """Computes the head's tensors, `[B, ...]` each."""
    raise NotImplementedError

  def distilled(self, outputs: Tensors) -> Tensors:
    """Selects the outputs that a student learns of its teacher; by default all of them."""
    return outputs

  def loss(self, batch: Batch, outputs: Tensors) -> tuple[Any, Any]:
    """Computes the loss, float32 `[]`, and that of each example `[B]`, or of each token `[B, S]`.

    The latter may be None where only the mean of a batch exists.
    """
    raise NotImplementedError

  def predictions(self, batch: Batch, outputs: Tensors) -> Tensors:
    """Computes what `--do_predict` reads of a batch, `[B, ...]` each.

    By default `probabilities` of the outputs' `logits`; the outputs themselves if there are none.
    """
    import tensorflow as tf

    del batch
    if "logits" not in outputs:
      return outputs
    return {"probabilities": tf.nn.softmax(outputs["logits"])}

  def eval_tensors(self, batch: Batch, outputs: Tensors, losses: Any) -> Tensors:
    """Selects what the task's `metrics` gets of each batch, `[B, ...]` each.

    By default the predictions, `losses`, and `label_ids` and `is_real_example` of the records.
    """
    names = [name for name in ("label_ids", "is_real_example") if name in batch.features]
    known = {name: batch.features[name] for name in names}
    return {**self.predictions(batch, outputs), **known, "losses": losses}

  def row_scores(self, batch: Batch, outputs: Tensors) -> Tensors:
    """Selects what `scores` gives for the rows of a batch, by default the predictions.

    Empty where the outputs of a batch are not those of its rows, as far as one can tell.
    """
    return self.predictions(batch, outputs) if type(self).scores is Head.scores else {}

  def scores(self, batch: Batch) -> Tensors:
    """Computes what an engine gives for rows of one sequence each: name -> `[R, ...]`.

    From these `tasks/decoding.py` makes answers in Python. An example may have several rows, such
    as windows or choices.

    Args:
      batch: its features are `SEQUENCES`, int32 `[R, S]` each.
    """
    return self.row_scores(batch, self.outputs(batch))
