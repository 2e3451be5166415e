"""Code for the transformers library on PyTorch, with other imports only.

  KERAS_BACKEND=torch python examples/keras_on_pytorch.py bert-base-uncased
  KERAS_BACKEND=torch python examples/keras_on_pytorch.py FOLDER

FOLDER contains an original checkpoint, its bert_config.json and vocab.txt, or was saved by
transformers. On PyTorch a Keras model is a `torch.nn.Module`, and works inside modules and training
loops of PyTorch.
"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")

import torch
import torch.nn as nn

from bert.keras3 import AdamW, AutoTokenizer, BertTokenizer, get_linear_schedule_with_warmup
from bert.keras3.models import AutoModel, BertForSequenceClassification, BertModel


class BertClassifier(nn.Module):
  """A custom head."""

  def __init__(self, name: str, num_classes: int = 2, dropout: float = 0.1):
    super().__init__()
    self.bert = BertModel.from_pretrained(name)
    self.dropout = nn.Dropout(dropout)
    self.fc = nn.Linear(self.bert.bert.hidden_size, num_classes)

  def forward(self, input_ids, attention_mask):
    outputs = self.bert(input_ids=input_ids, attention_mask=attention_mask)
    cls_output = outputs.pooler_output
    return self.fc(self.dropout(cls_output))


def main(name: str) -> None:
  device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
  print(f"Device: {device}")

  tokenizer = BertTokenizer.from_pretrained(name)
  model = BertModel.from_pretrained(name)
  text = "The cat sat on the mat."
  inputs = tokenizer(text, return_tensors="pt")
  print("Tokenized:")
  print(f"  input_ids: {inputs['input_ids']}")
  print(f"  tokens: {tokenizer.convert_ids_to_tokens(inputs['input_ids'][0])}")
  with torch.no_grad():
    outputs = model(**inputs)
  print("\nOutputs:")
  print(f"  last_hidden_state: {outputs.last_hidden_state.shape}")
  print(f"  pooler_output ([CLS]): {outputs.pooler_output.shape}")

  classifier = BertForSequenceClassification.from_pretrained(name, num_labels=2)
  inputs = tokenizer("This movie is great!", return_tensors="pt")
  with torch.no_grad():
    outputs = classifier(**inputs)
  print(f"Logits: {outputs.logits}")
  print(f"Prediction: {'Positive' if outputs.logits.argmax() == 1 else 'Negative'}")

  model = BertClassifier(name, num_classes=3)
  inputs = tokenizer("Hello world", return_tensors="pt")
  logits = model(inputs["input_ids"], inputs["attention_mask"])
  print(f"Custom classifier output: {logits.shape}")

  fine_tune(model, inputs)
  for model_name in [name]:  # or others, such as roberta-base and distilbert-base-uncased
    tokenizer = AutoTokenizer.from_pretrained(model_name)
    model = AutoModel.from_pretrained(model_name)
    params = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"{model_name}: {params:.1f}M parameters")


def fine_tune(model: nn.Module, inputs: dict) -> None:
  learning_rate = 2e-5
  warmup_steps = 500
  optimizer = AdamW(model.parameters(), lr=learning_rate, weight_decay=0.01)
  total_steps = 1000
  scheduler = get_linear_schedule_with_warmup(
    optimizer, num_warmup_steps=warmup_steps, num_training_steps=total_steps
  )
  print("Fine-tuning setup complete!")
  [factor] = scheduler.lr_lambdas
  rates = [learning_rate * factor(step) for step in (0, 250, 500, 750, 1000)]
  print("Rates:", ", ".join(f"{rate:.1e}" for rate in rates))

  optimizer = AdamW(model.parameters(), lr=1e-4)
  labels = torch.tensor([1])

  def loss_of_example():
    return nn.functional.cross_entropy(model(inputs["input_ids"], inputs["attention_mask"]), labels)

  model.eval()
  losses = [loss_of_example().item()]
  model.train()  # with dropout
  for _ in range(8):
    loss_of_example().backward()
    optimizer.step()
    optimizer.zero_grad()
  model.eval()
  losses.append(loss_of_example().item())
  print("Losses:", ", ".join(f"{loss:.3f}" for loss in losses))


if __name__ == "__main__":
  if len(sys.argv) != 2:
    sys.exit(__doc__)
  main(sys.argv[1])
