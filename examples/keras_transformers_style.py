"""Keras 3 tokenizer and models with the calls of the transformers library.

  python examples/keras_transformers_style.py bert-base-uncased
  python examples/keras_transformers_style.py FOLDER

FOLDER contains an original checkpoint, its bert_config.json and vocab.txt.
"""

import sys

import keras
import numpy as np

from bert.keras3 import AdamWeightDecay, BertTokenizer, LinearWithWarmup
from bert.keras3.models import BertForMaskedLM, BertForSequenceClassification, BertModel


def main(name: str) -> None:
  tokenizer = BertTokenizer.from_pretrained(name)
  vectors(name, tokenizer)
  fill_in(name, tokenizer)
  fine_tune(name, tokenizer)
  custom_head(name, tokenizer)


def vectors(name: str, tokenizer: BertTokenizer) -> None:
  model = BertModel.from_pretrained(name)

  text = "The cat sat on the mat."
  inputs = tokenizer(text, return_tensors="np")
  print("Tokenized:")
  print(f"  input_ids: {inputs['input_ids']}")
  print(f"  tokens: {tokenizer.convert_ids_to_tokens(inputs['input_ids'][0])}")

  outputs = model(**inputs)
  print("\nOutputs:")
  print(f"  last_hidden_state: {tuple(outputs.last_hidden_state.shape)}")
  print(f"  pooler_output ([CLS]): {tuple(outputs.pooler_output.shape)}")
  print(f"{name}: {model.num_parameters() / 1e6:.1f}M parameters")


def fill_in(name: str, tokenizer: BertTokenizer) -> None:
  model = BertForMaskedLM.from_pretrained(name)
  inputs = tokenizer("The cat [MASK] on the mat.", return_tensors="np")
  logits = keras.ops.convert_to_numpy(model(**inputs).logits)[0]
  position = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
  best = np.argsort(-logits[position])[:3]
  print("The cat [MASK] on the mat:", tokenizer.convert_ids_to_tokens(best))


def fine_tune(name: str, tokenizer: BertTokenizer) -> None:
  model = BertForSequenceClassification.from_pretrained(name, num_labels=2)
  texts = ["I loved this movie!", "This was a terrible film."]
  labels = np.array([1, 0])
  encoded = tokenizer(texts, padding=True, truncation=True, return_tensors="np", max_length=512)
  model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2e-5),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
  )
  model.fit(dict(encoded), labels, epochs=3, verbose=2)
  outputs = model(**tokenizer("This movie is great!", return_tensors="np"))
  logits = keras.ops.convert_to_numpy(outputs.logits)
  print(f"Logits: {logits}")
  print(f"Prediction: {'Positive' if logits.argmax() == 1 else 'Negative'}")


class BertClassifier(keras.Model):
  """A custom head."""

  def __init__(self, name_or_path: str, num_classes: int = 2, dropout: float = 0.1):
    super().__init__()
    self.bert = BertModel.from_pretrained(name_or_path)
    self.dropout = keras.layers.Dropout(dropout)
    self.fc = keras.layers.Dense(num_classes)

  def call(self, input_ids, attention_mask=None):
    outputs = self.bert(input_ids=input_ids, attention_mask=attention_mask)
    return self.fc(self.dropout(outputs.pooler_output))


def custom_head(name: str, tokenizer: BertTokenizer) -> None:
  model = BertClassifier(name, num_classes=3)
  inputs = tokenizer("Hello world", return_tensors="np")
  logits = model(inputs["input_ids"], inputs["attention_mask"])
  print(f"Custom classifier output: {tuple(logits.shape)}")
  schedule = LinearWithWarmup(2e-5, num_train_steps=1000, num_warmup_steps=500)
  model.compile(optimizer=AdamWeightDecay(schedule, weight_decay_rate=0.01))
  print("Fine-tuning setup complete!")


if __name__ == "__main__":
  if len(sys.argv) != 2:
    sys.exit(__doc__)
  main(sys.argv[1])
