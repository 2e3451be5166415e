"""Uses of a Keras 3 BERT: features, several tasks at once, tags, half precision, saving.

  python examples/keras_patterns.py
  python examples/keras_patterns.py --variant=base --pretrained

The data are random, and without --pretrained the weights are, too.
"""

import argparse
import os
import tempfile

import keras
import numpy as np

from bert.keras3 import (
  BERT,
  AdamWeightDecay,
  NLPTaskConfig,
  NLPTaskType,
  TextClassificationHead,
  TokenClassificationHead,
  WarmUpLinearDecay,
  create_bert_with_head,
)

BATCH_SIZE, SEQ_LEN = 4, 32


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--variant", default="tiny")
  parser.add_argument("--pretrained", action="store_true")
  args = parser.parse_args()
  feature_extractor(args)
  multi_task(args)
  tags(args)
  half_precision(args)


def make_inputs() -> dict:
  """Three inputs of any length."""
  return {
    "input_ids": keras.Input(shape=(None,), dtype="int32"),
    "attention_mask": keras.Input(shape=(None,), dtype="int32"),
    "token_type_ids": keras.Input(shape=(None,), dtype="int32"),
  }


def make_data() -> dict:
  """A random batch."""
  return {
    "input_ids": np.random.randint(0, 30522, (BATCH_SIZE, SEQ_LEN)),
    "attention_mask": np.ones((BATCH_SIZE, SEQ_LEN), dtype="int32"),
    "token_type_ids": np.zeros((BATCH_SIZE, SEQ_LEN), dtype="int32"),
  }


def feature_extractor(args) -> None:
  """A model on top of a frozen BERT."""
  bert_encoder = BERT.from_variant(args.variant, pretrained=args.pretrained)
  bert_encoder.trainable = False
  inputs = make_inputs()
  bert_outputs = bert_encoder(inputs)
  sequence_output = bert_outputs["last_hidden_state"]  # Shape: (batch, seq_len, hidden_size)

  downstream_layer = keras.layers.Bidirectional(keras.layers.LSTM(128, return_sequences=True))(
    sequence_output
  )
  outputs = keras.layers.Dense(9, activation="softmax")(downstream_layer)

  feature_model = keras.Model(inputs, outputs)
  feature_model.summary()
  feature_model.compile("adam", "sparse_categorical_crossentropy")
  feature_model.fit(make_data(), np.random.randint(0, 9, (BATCH_SIZE, SEQ_LEN)), verbose=2)


def multi_task(args) -> None:
  """One encoder that learns from two tasks."""
  bert_encoder = BERT.from_variant(args.variant, pretrained=args.pretrained)
  bert_encoder.trainable = True  # Fine-tune the encoder
  inputs = make_inputs()
  bert_outputs = bert_encoder(inputs)

  sentiment_head = TextClassificationHead(num_classes=2, name="sentiment")
  ner_head = TokenClassificationHead(num_classes=9, name="ner")
  sentiment_output = sentiment_head(bert_outputs)
  ner_output = ner_head(bert_outputs)

  multi_task_model = keras.Model(
    inputs=inputs, outputs={"sentiment": sentiment_output, "ner": ner_output}
  )
  loss = "sparse_categorical_crossentropy"
  multi_task_model.compile("adam", loss={"sentiment": loss, "ner": loss})
  labels = {
    "sentiment": np.random.randint(0, 2, BATCH_SIZE),
    "ner": np.random.randint(0, 9, (BATCH_SIZE, SEQ_LEN)),
  }
  history = multi_task_model.fit(make_data(), labels, epochs=2, verbose=2).history
  print("Multi-task losses:", ", ".join(f"{value:.3f}" for value in history["loss"]))


def tags(args) -> None:
  """Named entities: a head that learns faster than the encoder; saving and loading."""
  ner_config = NLPTaskConfig(
    name="ner",
    task_type=NLPTaskType.NAMED_ENTITY_RECOGNITION,
    num_classes=9,  # e.g., O, B-PER, I-PER, B-LOC, I-LOC, etc.
  )
  ner_model = create_bert_with_head(
    bert_variant=args.variant, task_config=ner_config, pretrained=args.pretrained
  )
  ner_model.summary()
  schedule = WarmUpLinearDecay(1e-3, num_train_steps=100, num_warmup_steps=10)
  ner_model.compile(
    optimizer=AdamWeightDecay(schedule, learning_rate_multipliers={"^bert/": 0.03}),
    loss="sparse_categorical_crossentropy",
    jit_compile=True,
  )
  data = make_data()
  ner_model.fit(data, np.random.randint(0, 9, (BATCH_SIZE, SEQ_LEN)), verbose=2)
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "my_bert_ner_model.keras")
    ner_model.save(path)
    loaded_model = keras.models.load_model(path)
  predictions = loaded_model.predict(data, verbose=0)
  print("Tags:", predictions.shape, "equal:", (predictions == ner_model.predict(data)).all())


def half_precision(args) -> None:
  """Products in float16, variables in float32."""
  keras.mixed_precision.set_global_policy("mixed_float16")
  model = BERT.from_variant(args.variant, pretrained=args.pretrained)
  keras.mixed_precision.set_global_policy("float32")
  states = model(make_data())["last_hidden_state"]
  finite = np.isfinite(keras.ops.convert_to_numpy(states)).all()
  print("Half precision:", keras.backend.standardize_dtype(states.dtype), "finite:", finite)


if __name__ == "__main__":
  main()
