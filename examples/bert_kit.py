"""The training kit: configurations by name, models, loaders, losses, half precision, scores.

  python examples/bert_kit.py                            # small sizes, the vocabulary of samples/
  python examples/bert_kit.py --model=bert-base-uncased  # real sizes; the vocabulary is downloaded

The weights are random here; `BertForMaskedLM.from_pretrained` and the others load released ones.
"""

import argparse
import pathlib

from bert.keras3 import (
  AMPTrainer,
  BERTForMaskedLM,
  BERTForSequenceClassification,
  BERTModel,
  compute_mlm_loader_loss,
  create_classification_dataloader,
  create_mlm_dataloader,
  create_model_config,
  evaluate_classification_metrics,
  get_tokenizer,
)

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL |= {"intermediate_size": 128}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--model", help="name of a released model, for its sizes and vocabulary")
  args = parser.parse_args()
  sizes = {} if args.model else SMALL
  vocabulary = args.model or SAMPLES
  basic_model_creation(sizes)
  mlm_pretraining(sizes, vocabulary)
  evaluation(*classification_fine_tuning(sizes, vocabulary))


def basic_model_creation(sizes: dict) -> None:
  config = create_model_config("bert-base-uncased (110M)", **sizes)
  model = BERTModel(config)
  print(f"Encoder: {model.num_parameters():,} parameters")


def mlm_pretraining(sizes: dict, vocabulary) -> None:
  config = create_model_config("bert-base-uncased (110M)", **sizes)
  model = BERTForMaskedLM(config)

  tokenizer = get_tokenizer(vocabulary)
  train_loader = create_mlm_dataloader(
    texts=["Your training text...", "The company said on Monday that profits rose."] * 8,
    tokenizer=tokenizer,
    batch_size=8,
    mask_probability=0.15,
  )
  print(f"Loss before: {compute_mlm_loader_loss(model, train_loader):.3f}")
  trainer = AMPTrainer(dtype="bfloat16", learning_rate=1e-3, max_grad_norm=1.0)
  for _ in range(10):
    for batch in train_loader:
      trainer.train_mlm_step(model, batch)
  print(f"Loss after: {compute_mlm_loader_loss(model, train_loader):.3f}")


def classification_fine_tuning(sizes: dict, vocabulary) -> tuple:
  config = create_model_config("bert-base-uncased (110M)", **sizes)
  model = BERTForSequenceClassification(config, num_labels=2)

  texts = ["Great movie!", "Terrible experience"]
  labels = [1, 0]

  tokenizer = get_tokenizer(vocabulary)
  train_loader = create_classification_dataloader(
    texts=texts, labels=labels, tokenizer=tokenizer, batch_size=8
  )
  trainer = AMPTrainer(dtype="bfloat16", learning_rate=1e-3)
  for _ in range(20):
    for batch in train_loader:
      loss = trainer.train_classification_step(model, batch)
  print(f"Loss of classes: {float(loss):.3f}")
  return model, train_loader


def evaluation(model, val_loader) -> None:
  metrics = evaluate_classification_metrics(model, val_loader, device="cuda", num_classes=2)
  print(f"Accuracy: {metrics['accuracy']:.4f}")
  print(f"F1 Score: {metrics['f1']:.4f}")


if __name__ == "__main__":
  main()
