"""RoBERTa and DistilBERT against what transformers computed.

Alone: python -m pytest tests/model/roberta_and_distilbert_test.py
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import loading, safetensors_file, transformers_names
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel
from bert.optimization import Clipping, create_optimizer
from tests.kit.head_outputs import outputs_of

BATCHES = {
  "roberta": ("a", "full64", "left", "nomask", "odd"),
  "distilbert": ("a", "full64", "left", "nomask"),
}
QUICK = ("roberta", "odd"), ("distilbert", "left")
EVERY = [
  pytest.param(family, batch, marks=() if (family, batch) in QUICK else pytest.mark.ci)
  for family, batches in BATCHES.items()
  for batch in batches
]


def assign(variables, path, family):
  """Sets the variables that a safetensors file has a value for; returns their names."""
  file = safetensors_file.open_weights(path)
  places = transformers_names.variables_of(file.tensors, family)
  found = [name for name in variables if name in places]
  for name in found:
    value = file.read(places[name].name)
    variables[name].assign(value.T if places[name].is_transposed else value)
  return found


def outputs_with(folder, head, ids, mask, num_labels=2, **options):
  """The outputs of a recorded model; `ner`, `squad` and the pooler are in a file of their own."""
  sentences = head == "sentences"
  weights = folder / ("tiny_sequence_classification" if sentences else "tiny")
  config = BertConfig.from_json_file(weights / "config.json")
  inputs = tf.constant(ids, tf.int32), None if mask is None else tf.constant(mask, tf.int32)
  with use_store(VariableStore()) as store:
    outputs_of(config, head, *inputs, num_labels=num_labels)
    loading.init_from_checkpoint(str(weights / "model.safetensors"), store.variables)
    if head in ("ner", "squad"):
      found = assign(store.variables, folder / "tiny_other_heads.safetensors", config.family.name)
      assert len(found) == 2
    outputs = outputs_of(config, head, *inputs, num_labels=num_labels, **options)
  return {name: value.numpy() for name, value in outputs.items()}


def assert_close(actual, expected, name, atol=1e-5):
  np.testing.assert_allclose(actual, expected, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize(("family", "batch"), EVERY)
def test_forward_equals_transformers(golden_dir, family, batch):
  folder = golden_dir / family
  golden = np.load(folder / "tiny_forward.npz")
  ids = golden[f"{batch}/in_input_ids"]
  mask_name = f"{batch}/in_attention_mask"
  mask = golden[mask_name] if mask_name in golden.files else None
  config = BertConfig.from_json_file(folder / "tiny" / "config.json")
  if f"{batch}/hidden_states" in golden.files:
    with use_store(VariableStore()) as store:
      BertModel(config, False, ids, mask)
      loading.init_from_checkpoint(str(folder / "tiny" / "model.safetensors"), store.variables)
      model = BertModel(config, False, ids, mask, tf.ones_like(ids))  # segments are not read
      layers = [model.get_embedding_output(), *model.get_all_encoder_layers()]
      assert_close(tf.stack(layers), golden[f"{batch}/hidden_states"], "hidden states")
  else:
    outputs = outputs_with(folder, "none", ids, mask)
    expected = golden[f"{batch}/last_hidden_state"]
    assert_close(outputs["last_hidden_state"], expected, "last hidden state")
  words = outputs_with(folder, "masked_words", ids, mask)["logits"]
  # Logits are sums of 32 products of up to 8: their distance from float64 is up to 9e-6 there.
  assert_close(words[..., :16], golden[f"{batch}/mlm_logits_first16"], "words", 2e-5)
  assert_close(words[..., -4:], golden[f"{batch}/mlm_logits_last4"], "words", 2e-5)
  log_sum = tf.reduce_logsumexp(words, -1)
  assert_close(log_sum, golden[f"{batch}/mlm_logsumexp"], "sum of words", 2e-5)
  np.testing.assert_array_equal(words.argmax(-1), golden[f"{batch}/mlm_argmax"])
  sentences = outputs_with(folder, "sentences", ids, mask)["logits"]
  assert_close(sentences, golden[f"{batch}/sequence_logits"], "sentences")
  tokens = outputs_with(folder, "ner", ids, mask, 5)["logits"]
  assert_close(tokens, golden[f"{batch}/token_logits"], "tokens")
  for name, value in outputs_with(folder, "squad", ids, mask).items():
    assert_close(value, golden[f"{batch}/{name}"], name)


# ---------------------------------------------------------------------------------------------
# Training of RoBERTa: AdamW as PyTorch's.


def train(weights, data, head, hyper):
  """Twenty steps; returns the losses before each, and the variables after them by name."""
  config = BertConfig.from_json_file(weights / "config.json")
  store = VariableStore()
  clipping = Clipping(norm=hyper["clip_grad_norm"] or 1e30)

  @tf.function(autograph=False)
  def step(ids, mask, labels):
    with use_store(store):
      model = BertModel(config, True, ids, mask)
      if head == "masked_words":
        places = tf.broadcast_to(tf.range(ids.shape[1]), ids.shape)
        vectors, table = model.get_sequence_output(), model.get_embedding_table()
        is_word = tf.cast(labels >= 0, tf.float32)
        words = tf.maximum(labels, 0)
        loss = heads.get_masked_lm_output(config, vectors, table, places, words, is_word)[0]
      else:
        hidden = heads.hidden_of(config, head)
        logits = heads.get_classifier_logits(model.get_pooled_output(), 2, True, 0.0, hidden=hidden)
        loss = heads.get_classifier_loss(logits, labels, "classification")[0]
      train_op = create_optimizer(
        *(loss, hyper["lr"], hyper["total_steps"], hyper["warmup_steps"]),
        bias_correction=True,
        beta_2=hyper["betas"][1],
        weight_decay=hyper["weight_decay"],
        schedule="continuous",
        clipping=clipping,
      )
      train_op.apply(train_op.gradients)
    return loss, train_op.learning_rate

  batches = [
    [tf.constant(data[name][i], tf.int32) for name in ("input_ids", "attention_mask", "labels")]
    for i in range(hyper["total_steps"])
  ]
  step.get_concrete_function(*batches[0])
  report = loading.init_from_checkpoint(str(weights / "model.safetensors"), store.variables)
  assert all(name.endswith(("adam_m", "adam_v", "global_step")) for name in report.missing)
  losses, rates = zip(*(step(*batch) for batch in batches), strict=True)
  np.testing.assert_allclose(rates, data["learning_rate"][: len(rates)], rtol=1e-5)
  return np.array(losses), store.trainable_variables


@pytest.mark.ci
@pytest.mark.parametrize(
  ("run", "folder", "head", "noise"),
  [
    ("mlm", "tiny", "masked_words", 1e-5),
    ("sequence_classification", "tiny_sequence_classification", "sentences", 2e-5),
  ],
)
def test_training_equals_pytorch(golden_dir, run, folder, head, noise):
  golden = golden_dir / "roberta"
  hyper = json.loads((golden / "training.json").read_text())[run]
  data, final = np.load(golden / f"{run}_training.npz"), np.load(golden / f"{run}_final.npz")
  losses, variables = train(golden / folder, data, head, hyper)
  np.testing.assert_allclose(losses, data["losses"], rtol=1e-5)
  assert {transformers_names.key_of(name, "roberta", head).name for name in variables} == set(
    final.files
  )
  for name, variable in variables.items():
    key, is_transposed = transformers_names.key_of(name, "roberta", head)
    expected = final[key].T if is_transposed else final[key]
    # The true gradient of the keys' biases is zero: they hold rounding alone.
    assert_close(variable, expected, name, 1e-4 if name.endswith("key/bias") else noise)
