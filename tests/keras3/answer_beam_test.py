"""ELECTRA's own head for questions in Keras 3: the original's recorded outputs, files.

Run alone: python -m pytest tests/keras3/answer_beam_test.py (elsewhere: KERAS_BACKEND=torch)
"""

import json

import keras
import numpy as np
import pytest

from bert import keras3
from bert.checkpoints import bundle_files, numpy_reader
from bert.model.configuration import BertConfig
from tests.kit.families import recorded_weight
from tests.kit.keras_models import numpy_of, random_inputs, randomized
from tests.kit.recorded_configs import electra_config

SCOPE = "task_specific/squad"
BEAM = ("start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index")
VARIANTS = {
  "": {},
  "independent_": {"joint_prediction": False},
  "simple_answerable_": {"answerable_uses_start_logits": False},
  "no_answerable_": {"answerable_classifier": False},
}
TINY = BertConfig.from_dict(
  {
    **dict(model_type="electra", vocab_size=40, hidden_size=16, num_hidden_layers=2),
    **dict(num_attention_heads=2, intermediate_size=24, max_position_embeddings=32),
    **dict(embedding_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
  }
)


def make(config=TINY, **parts):
  head = keras3.AnswerBeamHead(**parts, name="squad")
  return keras3.BertForAnswerBeam(config, head=head)


def inputs_of(length=9):
  segments = np.arange(length) > 3
  return {**random_inputs(3, length), "token_type_ids": np.tile(segments.astype(int), (3, 1))}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_original_s_outputs(golden_dir, variant):
  golden = np.load(golden_dir / "electra" / "finetune_squad.npz")
  model = make(electra_config(golden_dir), beam_size=5, **VARIANTS[variant])
  model.load_pretrained_weights(golden_dir / "electra" / "model.ckpt")
  for name, variable in model.squad.checkpoint_variables().items():
    recorded = recorded_weight(name, variable.shape)
    variable.assign(recorded if variant else golden[f"head/{name}"])
  inputs = {
    "input_ids": golden["in_input_ids"],
    "attention_mask": golden["in_input_mask"],
    "token_type_ids": golden["in_segment_ids"],
  }
  places = {
    name: golden[f"in_squad_{name}"]
    for name in ("start_positions", "end_positions", "is_impossible")
  }
  outputs = model(inputs, **places)
  found = {
    "train_start_logits": outputs.start_logits,
    "train_end_logits": outputs.end_logits,
    "train_answerable_logit": outputs.null_logit,
    **{f"predict_{name}": outputs[name] for name in BEAM},
  }
  found = {
    name: numpy_of(value)
    for name, value in found.items()
    if value is not None and f"{variant}{name}" in golden.files
  }
  assert variant or len(found) == 7
  losses = golden[f"{variant}train_loss"]
  np.testing.assert_allclose(float(numpy_of(outputs.loss)), losses.mean(), rtol=1e-5)
  for name, value in found.items():
    expected = golden[f"{variant}{name}"]
    if np.issubdtype(expected.dtype, np.integer):
      np.testing.assert_array_equal(value, expected, err_msg=name)
    else:
      np.testing.assert_allclose(value, expected, rtol=1e-6, atol=2e-5, err_msg=name)


def test_a_beam_wider_than_the_text_repeats_the_first_token():
  outputs = randomized(make(beam_size=12))(inputs_of())
  index, scores = (numpy_of(outputs[name]) for name in BEAM[1::-1])
  assert index.shape == (3, 12)
  assert (index[:, 9:] == 0).all()
  assert (scores[:, 9:] < -1e29).all()
  assert sorted(index[0, :9]) == list(range(9))


@pytest.mark.parametrize("variant", VARIANTS)
def test_files(tmp_path, variant):
  """A checkpoint says which parts the head has; its scope is free."""
  model = randomized(make(**VARIANTS[variant]))
  outputs = model(inputs_of())
  model.save_checkpoint(tmp_path)
  names = numpy_reader.CheckpointReader(str(tmp_path / "bert_model.ckpt")).shapes
  assert f"{SCOPE}/dense_1/kernel" in names
  facts = bundle_files.read_sidecar(str(tmp_path / "bert_model.ckpt"))["state"]["fingerprint"]
  assert facts["answer_head"] == "electra"
  assert {name: facts[name] for name in VARIANTS[variant]} == VARIANTS[variant]
  loaded = keras3.BertForAnswerBeam.from_pretrained(tmp_path)
  copy = keras.models.model_from_json(json.dumps(json.loads(model.to_json())))
  copy.set_weights(model.get_weights())
  for other in (loaded, copy):
    again = other(inputs_of())
    for name, value in zip(outputs.keys(), outputs, strict=True):
      if value is not None:
        np.testing.assert_allclose(numpy_of(again[name]), numpy_of(value), atol=1e-6)


def test_what_cannot_be(tmp_path):
  with pytest.raises(ValueError, match="BERT has no such head for questions; ELECTRA has"):
    keras3.BertForAnswerBeam(BertConfig(40, 16, 1, 2, 24))
  with pytest.raises(ValueError, match="An answer lies in segment 1: give token_type_ids"):
    make()(np.ones([2, 5]))
  keras3.BertForQuestionAnswering(TINY).save_checkpoint(tmp_path)
  with pytest.raises(ValueError, match="no head of ELECTRA's own for questions"):
    keras3.BertForAnswerBeam.from_pretrained(tmp_path)
