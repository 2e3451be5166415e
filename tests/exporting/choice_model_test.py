"""Multiple choice from strings, against bert/tasks/multiple_choice.py and run_swag's model.

Alone: python -m pytest tests/exporting/choice_model_test.py (seconds; one test starts a Python)
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, loading, saving
from bert.exporting import choice_model
from bert.model.task_heads import ChoiceHead
from bert.model.variables import VariableStore, use_store
from bert.tasks import multiple_choice
from bert.tokenization import FullTokenizer
from tests.kit import exports, task_outputs
from tests.kit.script_runs import run_elsewhere

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##s", "."]
SEQ_LENGTH = 9
CONFIG = exports.config(
  len(VOCAB), intermediate_size=16, max_position_embeddings=SEQ_LENGTH, initializer_range=0.5
)
QUESTIONS = [
  ("a as. b", ["a", "b b", "C. cs", "a a a a a a a a"]),
  ("", ["a", "\u200b", "x"]),
  ("a b c " * 9, ["c " * 9, "s"]),
]


def logits(*inputs):
  *sequences, choice_mask = inputs
  return task_outputs.logits(ChoiceHead(), CONFIG, False, *sequences, choice_mask=choice_mask)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """A folder with a vocabulary and a checkpoint."""
  folder = tmp_path_factory.mktemp("trained")
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
  with use_store(VariableStore(seed=5)) as store:
    ones = tf.ones([1, 2, 3], tf.int32)
    logits(ones, ones, ones, ones[..., 0])
  store.variables["output_weights"].assign_add(tf.random.stateless_normal([1, 16], [1, 2]))
  saving.save(str(folder), 1, store.variables, {})
  return folder


@pytest.fixture(scope="module")
def probabilities(trained) -> np.ndarray:
  """What run_swag's model says, float32 `[B, N]`."""
  tokenizer = FullTokenizer(str(trained / "vocab.txt"))
  examples = [multiple_choice.ChoiceExample(None, *question) for question in QUESTIONS]
  features = list(multiple_choice.convert_examples_to_features(examples, 4, SEQ_LENGTH, tokenizer))
  names = ("input_ids", "input_mask", "segment_ids", "choice_mask")
  inputs = [tf.constant([getattr(f, name) for f in features]) for name in names]
  with use_store(VariableStore()) as store:
    logits(*inputs)
    loading.restore(finding.find_checkpoint(str(trained)), store.variables)
    return tf.nn.softmax(logits(*inputs)).numpy()


_ELSEWHERE = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
context, choices = map(tf.constant, json.load(sys.stdin))
served = model.signatures["serving_default"](context=context, choices=choices)
outputs = {name: values.numpy().tolist() for name, values in model(context, choices).items()}
assert outputs == {name: values.numpy().tolist() for name, values in served.items()}
empty = model(tf.constant([], tf.string), tf.zeros([0, 2], tf.string))
assert empty["probabilities"].shape == [0, 2]
print(json.dumps(outputs))
"""


def padded_questions():
  """Contexts, and their choices padded to four with empty strings."""
  return [context for context, _ in QUESTIONS], [
    found + [""] * (4 - len(found)) for _, found in QUESTIONS
  ]


@pytest.mark.ci
def test_it_chooses_as_in_training(trained, probabilities):
  model = choice_model.ChoiceModel(CONFIG, str(trained / "vocab.txt"), True, SEQ_LENGTH)
  model.load(finding.find_checkpoint(str(trained)))
  outputs = model(*map(tf.constant, padded_questions()))
  np.testing.assert_allclose(outputs["probabilities"], probabilities, rtol=0, atol=1e-5)
  assert outputs["choice"].numpy().tolist() == probabilities.argmax(axis=1).tolist()


@pytest.mark.slow
def test_an_exported_model_chooses_as_in_training(trained, probabilities, tmp_path):
  model = choice_model.ChoiceModel(CONFIG, str(trained / "vocab.txt"), True, SEQ_LENGTH)
  model.export(str(tmp_path / "task"), str(trained))
  questions = json.dumps(padded_questions())
  printed = run_elsewhere(_ELSEWHERE, tmp_path / "task", cwd=tmp_path, stdin=questions)
  found = json.loads(printed)
  np.testing.assert_allclose(found["probabilities"], probabilities, rtol=0, atol=1e-5)
  assert found["choice"] == probabilities.argmax(axis=1).tolist()
  assert probabilities[1, 3] == 0
  assert probabilities.std() > 0.05
