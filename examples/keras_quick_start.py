"""Quick start: a Keras 3 BERT that classifies three sentiments, on random data.

  python examples/keras_quick_start.py            # also with KERAS_BACKEND=jax or torch
  python examples/keras_quick_start.py --pretrained
  python examples/keras_quick_start.py --variant=tiny --num_layers=1

With --pretrained the released weights of the variant are downloaded.
"""

import argparse

import keras
import numpy as np

from bert.keras3 import NLPTaskConfig, NLPTaskType, create_bert_with_head


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--pretrained", action="store_true")
  parser.add_argument("--variant", default="base", help="base, large, small or tiny")
  parser.add_argument("--num_layers", type=int, help="instead of the variant's number of layers")
  args = parser.parse_args()

  # 1. Define the downstream task
  sentiment_config = NLPTaskConfig(
    name="sentiment_analysis",
    task_type=NLPTaskType.SENTIMENT_ANALYSIS,
    num_classes=3,  # e.g., positive, negative, neutral
  )

  # 2. Create a BERT model with the sentiment head
  model = create_bert_with_head(
    bert_variant=args.variant,
    task_config=sentiment_config,
    pretrained=args.pretrained,
    bert_config_overrides={"num_layers": args.num_layers} if args.num_layers else None,
  )

  # 3. Compile the model
  model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2e-5),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
  )
  model.summary()

  # 4. Use the model with dummy data
  batch_size, seq_len = 4, 128
  dummy_inputs = {
    "input_ids": np.random.randint(0, 30522, size=(batch_size, seq_len)),
    "attention_mask": np.ones((batch_size, seq_len), dtype="int32"),
    "token_type_ids": np.zeros((batch_size, seq_len), dtype="int32"),
  }
  dummy_labels = np.random.randint(0, 3, size=(batch_size,))
  model.fit(dummy_inputs, dummy_labels, epochs=1)

  predictions = model.predict(dummy_inputs)
  print(f"\nOutput predictions shape: {predictions.shape}")  # (4, 3)


if __name__ == "__main__":
  main()
