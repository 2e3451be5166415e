"""The backend of Keras on which the models of this package are: TensorFlow."""

import os


def use_tensorflow() -> None:
  """Chooses it, before Keras is imported.

  Raises:
    ImportError: Keras is on another one already.
  """
  os.environ.setdefault("KERAS_BACKEND", "tensorflow")
  import keras

  if keras.backend.backend() != "tensorflow":
    raise ImportError(
      f"bert.transformers needs Keras on TensorFlow, which is on {keras.backend.backend()} here: "
      "set KERAS_BACKEND=tensorflow. On other backends, bert.keras3 has the same models."
    )
