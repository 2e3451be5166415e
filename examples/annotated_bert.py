"""BERT piece by piece: tokens, masks, the model, pre-training, fine-tuning, scores.

  python examples/annotated_bert.py
  python examples/annotated_bert.py --model=uncased_L-12_H-768_A-12    # downloaded

Each function shows one piece under its name in the original. Without --model, a small model is
pre-trained for a few steps on the text in samples/ and then fine-tuned.
"""

import argparse
import os
import pathlib
import random
import shutil
import tempfile

import numpy as np
import tensorflow as tf

from bert import create_pretraining_data, modeling, run_classifier, run_pretraining, tokenization
from bert.keras3 import AdamWeightDecay, BertTokenizer, WarmUpLinearDecay
from bert.keras3.models import BertForSequenceClassification
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig
from bert.optimization import create_optimizer
from bert.run_classifier import DataProcessor, InputExample
from bert.tasks import metrics
from bert.training.estimator import Estimator, RunConfig
from bert.transformers import TFBertForSequenceClassification

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
VOCAB_FILE = str(SAMPLES / "vocab.txt")
MAX_SEQ_LENGTH, MAX_PREDICTIONS = 64, 10


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--model", help="folder with a checkpoint, or name of a released model")
  args = parser.parse_args()
  tokens_of_words()
  masked_words()
  model_and_its_outputs()
  train_examples = processor_of_a_task()
  optimizer_for(train_examples)
  classification()
  with tempfile.TemporaryDirectory() as folder:
    pre_training(folder)
    sentiment(args.model or folder)


def tokens_of_words() -> None:
  """`FullTokenizer`: `BasicTokenizer` finds words, `WordpieceTokenizer` splits them."""
  full = tokenization.FullTokenizer(VOCAB_FILE)
  basic = tokenization.BasicTokenizer()
  wordpiece = tokenization.WordpieceTokenizer(full.vocab)
  text = "The Company said unbelievably little."
  tokens = basic.tokenize(text)
  pieces = [sub_token for token in tokens for sub_token in wordpiece.tokenize(token)]
  print("Tokens:", pieces)
  print("The same at once:", pieces == full.tokenize(text))


def masked_words() -> None:
  """15% of the tokens are predicted; most of these become [MASK]."""
  rng = random.Random(12345)
  tokenizer = tokenization.FullTokenizer(VOCAB_FILE)
  tokens_a = tokenizer.tokenize("The company said on Monday that profits rose.")
  tokens_b = tokenizer.tokenize("It rained in the north for the whole day.")
  create_pretraining_data.truncate_seq_pair(tokens_a, tokens_b, 20, rng)
  tokens = ["[CLS]", *tokens_a, "[SEP]", *tokens_b, "[SEP]"]
  tokens, masked_lm_positions, masked_lm_labels = (
    create_pretraining_data.create_masked_lm_predictions(
      tokens,
      masked_lm_prob=0.15,
      max_predictions_per_seq=MAX_PREDICTIONS,
      vocab_words=list(tokenizer.vocab),
      rng=rng,
    )
  )
  print("Masked:", " ".join(tokens))
  print("Asked for:", dict(zip(masked_lm_positions, masked_lm_labels, strict=True)))


def model_and_its_outputs() -> None:
  """`BertModel` computes its outputs when constructed; `use_store` keeps its variables."""
  config = BertConfig.from_json_file(SAMPLES / "bert_config.json")
  input_ids = tf.constant([[2, 31, 51, 3], [2, 15, 3, 0]])
  input_mask = tf.constant([[1, 1, 1, 1], [1, 1, 1, 0]])
  with use_store(VariableStore(seed=1)):
    model = modeling.BertModel(
      config=config, is_training=False, input_ids=input_ids, input_mask=input_mask
    )
  print("Pooled output:", model.get_pooled_output().shape)
  print("Sequence output:", model.get_sequence_output().shape)
  print("Embedding output:", model.get_embedding_output().shape)
  print("Embedding table:", model.get_embedding_table().shape)
  print(f"GELU of 1: {modeling.gelu(tf.constant(1.0)):.6f}")


# ---------------------------------------------------------------------------------------------
# A task.


class GLUEProcessor(DataProcessor):
  """Reads texts and labels from the files of a task."""

  def get_train_examples(self, data_dir):
    return self._create_examples(self._read_tsv(os.path.join(data_dir, "train.tsv")), "train")

  def get_dev_examples(self, data_dir):
    return self._create_examples(self._read_tsv(os.path.join(data_dir, "dev.tsv")), "dev")

  def _create_examples(self, lines, set_type):
    examples = []
    for i, line in enumerate(lines):
      guid = f"{set_type}-{i}"
      text_a = line[3]
      text_b = line[4]
      label = line[1]
      examples.append(InputExample(guid=guid, text_a=text_a, text_b=text_b, label=label))
    return examples


def processor_of_a_task() -> list[InputExample]:
  processor = GLUEProcessor()
  train_examples = processor.get_train_examples(SAMPLES / "MRPC")
  dev_examples = processor.get_dev_examples(SAMPLES / "MRPC")
  print(f"Examples: {len(train_examples)} to train on, {len(dev_examples)} to evaluate on")
  return train_examples


def optimizer_for(train_examples) -> None:
  """A model with custom sizes, and an optimizer for the number of examples."""
  bert_config = BertConfig(
    vocab_size=30522,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=512,
  )
  model = BertForSequenceClassification(config=bert_config, num_labels=2)
  train_batch_size = 32
  learning_rate = 5e-5
  num_train_epochs = 3.0
  warmup_proportion = 0.1
  num_train_steps = int(len(train_examples) / train_batch_size * num_train_epochs)
  num_warmup_steps = int(num_train_steps * warmup_proportion)
  # A Keras optimizer gets the model's variables from `compile`. Without Keras, use
  # `optimization.create_optimizer`, which takes a loss: see `classification`.
  optimizer = AdamWeightDecay(WarmUpLinearDecay(learning_rate, num_train_steps, num_warmup_steps))
  model.compile(optimizer=optimizer)
  print(f"Steps: {num_train_steps}, of which warm-up: {num_warmup_steps}")


def classification() -> None:
  """`create_model` and `create_optimizer` in a custom training step."""
  config = BertConfig.from_json_file(SAMPLES / "bert_config.json")
  input_ids = tf.random.stateless_uniform([8, 16], [1, 2], 5, config.vocab_size, tf.int32)
  labels = tf.constant([0, 1] * 4)
  store = VariableStore(seed=1)

  @tf.function(autograph=False)
  def step():
    with use_store(store):
      (loss, per_example_loss, logits, _) = run_classifier.create_model(
        bert_config=config,
        is_training=False,
        input_ids=input_ids,
        input_mask=tf.ones_like(input_ids),
        segment_ids=tf.zeros_like(input_ids),
        labels=labels,
        num_labels=2,
        use_one_hot_embeddings=False,
      )
      train_op = create_optimizer(
        loss, init_lr=1e-3, num_train_steps=100, num_warmup_steps=0, use_tpu=False
      )
      train_op.apply(train_op.gradients)
    return loss, per_example_loss, logits

  first, *_ = step()
  for _ in range(20):
    last, per_example_loss, logits = step()
  print(f"Loss: {first:.3f}, later {last:.3f}")
  eval_metrics = (metric_fn, [per_example_loss, labels, logits])
  scores = eval_metrics[0](eval_metrics[1][0], eval_metrics[1][1], eval_metrics[1][2])
  print(f"Accuracy: {scores['eval_accuracy']}")
  print(f"Loss: {scores['eval_loss']:.3f}")
  print(f"F1: {metrics.f1(labels, np.argmax(logits, axis=-1))}")


def metric_fn(per_example_loss, label_ids, logits):
  predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)
  accuracy = metrics.accuracy(label_ids, predictions)
  loss = float(tf.reduce_mean(per_example_loss))
  return {
    "eval_accuracy": accuracy,
    "eval_loss": loss,
  }


# ---------------------------------------------------------------------------------------------
# Pre-training and fine-tuning.


def pre_training(folder: str) -> None:
  """From text to records to a checkpoint in `folder`, with configuration and vocabulary."""
  rng = random.Random(12345)
  tokenizer = tokenization.FullTokenizer(vocab_file=VOCAB_FILE, do_lower_case=True)
  input_files = [str(SAMPLES / "sample_text.txt")]
  instances = create_pretraining_data.create_training_instances(
    input_files,
    tokenizer,
    MAX_SEQ_LENGTH,
    dupe_factor=2,
    short_seq_prob=0.1,
    masked_lm_prob=0.15,
    max_predictions_per_seq=MAX_PREDICTIONS,
    rng=rng,
  )
  output_files = [os.path.join(folder, "examples.tf_record")]
  create_pretraining_data.write_instance_to_example_files(
    instances, tokenizer, MAX_SEQ_LENGTH, MAX_PREDICTIONS, output_files
  )
  shutil.copy(SAMPLES / "bert_config.json", folder)
  shutil.copy(VOCAB_FILE, folder)
  model_fn = run_pretraining.model_fn_builder(
    bert_config=BertConfig.from_json_file(SAMPLES / "bert_config.json"),
    init_checkpoint=None,
    learning_rate=1e-3,
    num_train_steps=20,
    num_warmup_steps=2,
    use_tpu=False,
    use_one_hot_embeddings=False,
  )
  params = {"train_batch_size": 8, "eval_batch_size": 8}
  estimator = Estimator(model_fn, RunConfig(model_dir=folder), params)
  arguments = (output_files, MAX_SEQ_LENGTH, MAX_PREDICTIONS)
  estimator.train(run_pretraining.input_fn_builder(*arguments, is_training=True), max_steps=20)
  input_fn = run_pretraining.input_fn_builder(*arguments, is_training=False)
  results = estimator.evaluate(input_fn, steps=5)
  print("Pre-training:", ", ".join(f"{name} {results[name]:.3f}" for name in sorted(results)))


def sentiment(name: str) -> None:
  """Fine-tunes a model with a head on two labelled sentences, with `fit`."""
  model = TFBertForSequenceClassification.from_pretrained(name)
  tokenizer = BertTokenizer.from_pretrained(name)

  def encode_examples(texts, labels):
    return tokenizer(texts, padding=True, truncation=True, return_tensors="tf", max_length=512)

  texts = ["I loved this movie!", "This was a terrible film."]
  labels = [1, 0]
  encoded_data = encode_examples(texts, labels)

  def fine_tune_bert(model, train_dataset):
    model.compile(
      optimizer=tf.keras.optimizers.Adam(learning_rate=2e-5),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      metrics=["accuracy"],
    )
    model.fit(train_dataset, epochs=3)

  train_dataset = tf.data.Dataset.from_tensor_slices((encoded_data["input_ids"], labels)).batch(2)
  fine_tune_bert(model, train_dataset)
  print("Fine-tuned:", model(**encoded_data).logits.shape)


if __name__ == "__main__":
  main()
