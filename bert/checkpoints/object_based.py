"""Object-based checkpoints of TensorFlow 2, under the original's names.

  weights = named(bundle)      # None unless they have BERT's variables
  weights.read("bert/pooler/dense/bias")

Such a checkpoint stores values under paths of Python attributes, for instance
`variables/0/.ATTRIBUTES/VARIABLE_VALUE`, and beside them the graph of objects with the names of
variables. Two kinds have BERT's: encoders of the TensorFlow Model Garden (`model_garden.py`), and
the encoders that this project exports.
"""

from collections.abc import Mapping

import numpy as np

from bert.checkpoints import model_garden
from bert.checkpoints.bundle_files import IN_SAVED_MODEL, OBJECT_GRAPH, is_saved_model
from bert.checkpoints.load_report import ENCODER_SCOPES
from bert.checkpoints.model_garden import Place


class NamedWeights:
  """The weights in a bundle by other names; see `reading.Checkpoint`."""

  def __init__(self, bundle, places: Mapping[str, Place], case_key: str | None):
    """Takes the place of each variable, and the key of `do_lower_case`."""
    self._bundle, self._places, self._case_key = bundle, places, case_key
    self.contents = {
      name: (list(place.shape), bundle.contents[place.key][1]) for name, place in places.items()
    }

  @property
  def do_lower_case(self) -> bool | None:
    """See `reading.Checkpoint`."""
    return bool(self._bundle.read(self._case_key)) if self._case_key else None

  def read(self, name: str) -> np.ndarray:
    """See `reading.Checkpoint`."""
    place = self._places[name]
    return model_garden.arranged(self._bundle.read(place.key), place)


def named(bundle) -> NamedWeights | None:
  """Returns the weights of a bundle with an `OBJECT_GRAPH`; None if they are not BERT's.

  Raises:
    CheckpointError: it is damaged, or another encoder of the Model Garden.
  """
  if encoder := model_garden.find_encoder(bundle):
    case_key = model_garden.DO_LOWER_CASE
    return NamedWeights(bundle, encoder.places, case_key if case_key in bundle.contents else None)
  keys = {name: every[0] for name, every in sorted(bundle.variable_keys().items())}
  if not (_is_export(bundle.prefix) and any(name.startswith(ENCODER_SCOPES) for name in keys)):
    return None
  # Other variables, such as `do_lower_case`, are not weights.
  places = {
    name: Place(key, tuple(bundle.contents[key][0]))
    for name, key in keys.items()
    if bundle.contents[key][1].kind == "f"
  }
  return NamedWeights(bundle, places, keys.get("do_lower_case"))


def about_unnamed(prefix: str) -> str:
  """Says what to do with a checkpoint in which `named` finds nothing."""
  return (
    f"{prefix} is an object-based checkpoint of Keras or TensorFlow 2 (it has a tensor "
    f"{OBJECT_GRAPH}): its tensors are named after Python attributes, not after BERT's "
    f"variables. Of such checkpoints {model_garden.READ_HERE}. Load it with the code that wrote "
    "it, and write its values under BERT's names with `saving.save`; or use the model's "
    "TensorFlow 1 release."
  )


def _is_export(prefix: str) -> bool:
  folder = prefix.removesuffix(IN_SAVED_MODEL)
  return folder != prefix and is_saved_model(folder)
