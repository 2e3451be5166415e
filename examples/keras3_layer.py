"""An exported encoder as a layer of a Keras 3 model, trained together with its head.

  python export_hub.py --init_checkpoint=uncased_L-12_H-768_A-12 --export_dir=export
  python examples/keras3_layer.py export

`hub.KerasLayer` is a layer of tf_keras and cannot be used in a Keras 3 model. Keras 3's layer for a
SavedModel, `TFSMLayer`, calls functions by name: one for training, with dropout, and one otherwise.
"""

import sys

import keras
import numpy as np
import tensorflow as tf
import tensorflow_text as text  # noqa: F401 (registers ops of the preprocess model)

TEXTS = [
  ("a warm and funny film", 1),
  ("i loved every minute of it", 1),
  ("a great story, well told", 1),
  ("wonderful actors", 1),
  ("a dull and empty film", 0),
  ("i wanted my money back", 0),
  ("a bad story, badly told", 0),
  ("terrible actors", 0),
]


def main(export_dir: str) -> None:
  preprocess = tf.saved_model.load(f"{export_dir}/preprocess")
  encoder = keras.layers.TFSMLayer(
    f"{export_dir}/encoder",
    call_endpoint="__call__",
    call_training_endpoint="with_dropout",
    trainable=True,
  )

  names = ("input_word_ids", "input_mask", "input_type_ids")
  inputs = {name: keras.Input([None], dtype="int32", name=name) for name in names}
  pooled = encoder(inputs)["pooled_output"]  # [B, W]
  model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(pooled))
  model.compile(keras.optimizers.Adam(1e-4), "binary_crossentropy", metrics=["accuracy"])

  # Built here because inside `fit` the names of a SavedModel's variables are invalid as scopes.
  model.optimizer.build(model.trainable_variables)

  texts, labels = zip(*TEXTS, strict=True)
  features = preprocess(tf.constant(texts))
  before = [weight.numpy() for weight in encoder.trainable_weights]
  model.fit(features, np.array(labels), epochs=10, verbose=0)
  print(model.evaluate(features, np.array(labels), return_dict=True, verbose=0))
  changed = [np.any(w.numpy() != b) for w, b in zip(encoder.trainable_weights, before, strict=True)]
  print(f"{sum(changed)} of {len(changed)} variables of the encoder were trained.")


if __name__ == "__main__":
  if len(sys.argv) != 2:
    sys.exit(__doc__)
  main(sys.argv[1])
