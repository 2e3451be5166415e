"""Answers made in Python around an engine are those of the graphs that take strings.

Alone: python -m pytest tests/predicting/answers_test.py (-m "not ci": one task, and all without
TensorFlow)

Both have the same weights: those drawn by the names of variables.
"""

import numpy as np
import pytest

from bert import tokenization
from bert.exporting import token_graph
from bert.exporting.model_folder import Described
from bert.model.task_head import SEQUENCES
from bert.modeling import BertConfig
from bert.predicting.engines import registry
from bert.predicting.engines.tensorflow import TensorFlowEngine
from bert.predicting.predictor import Predictor
from bert.predicting.processors import AnswerProcessor, TextProcessor
from bert.tasks import decoding, kinds
from tests.kit import byte_pairs, own_tasks, tiny_bert
from tests.kit.script_runs import run_python

WORDS = ["the", "film", "was", "Good", "good", "##s", "in", "?", ",", ".", "3", "-", "e", "a"]
VOCAB = [*tiny_bert.SPECIAL_TOKENS, *WORDS, "##a", "ö", "中"]
LENGTH = 16

TEXTS = [
  "",
  " ",
  "the film",
  "The Good film was good , 3-3 in . " * 5,
  "the film was in the end of the game. " * 4,
  "\x00\x07",
  "the \x07 film",
  "éa Ünder thé",
  "e\u0301 film",
  "\U0001f600 film \U0001f600\U0001f3fd",
  "中文 film 中",
  "שלום the עולם film",
  "the\u00a0film\u202fwas\tgood\r\nin",
  "\ufeffthe",
  "a" * 300,
  "straße Ǆ of 8,200 (1.2)",
  "[SEP] the ##s [CLS]",
]
PAIRS = [(a, b) for i, a in enumerate(TEXTS) for b in TEXTS[i % 5 :: 5]]
LABELS = {"labels": ["no", "yes", "päť"], "problem_type": "classification"}
TASKS = {
  "classes": (LABELS, {}, [*TEXTS, *PAIRS]),
  "score": ({"labels": ["x"], "problem_type": "regression"}, {}, PAIRS),
  "similarity": (
    {"task_name": "similarity", "pooling": "mean"},
    {},
    [pair for pair in PAIRS if pair[1].strip()],
  ),
}


def config_of(vocab_size: int, **keys) -> BertConfig:
  sizes = {"max_position_embeddings": 40, "initializer_range": 0.5, "type_vocab_size": 2}
  return BertConfig.from_dict(tiny_bert.config(vocab_size, **{**sizes, **keys}))


def word_pieces(folder):
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
  return str(folder / "vocab.txt")


def both(task, lower, folder):
  """Predictors of a graph from strings, and of an engine; and the items."""
  facts, settings, items = TASKS[task]
  vocab_file = word_pieces(folder)
  tokenizer = tokenization.load_tokenizer(vocab_file, lower)
  config = config_of(max(tokenizer.vocab.values()) + 1)
  described = Described(config, vocab_file, lower, LENGTH, facts, settings)
  kind = kinds.of_facts(facts)
  model = kind.model_class().from_description(described)
  signature = model.signature()
  names = signature.structured_input_signature[1], signature.structured_outputs
  texts = TextProcessor(sorted(names[0]), "similarity" in names[1])
  graph = Predictor(texts, TensorFlowEngine(signature, texts.inputs, model), 4, 64)
  head = kind.head_class().of_run(facts, settings)
  tokens = token_graph.of_task(config, head, skip_padding=True)
  engine = TensorFlowEngine(lambda **batch: tokens(batch), tokens.inputs, tokens)
  made = decoding.of_run(facts, settings, tokenizer, LENGTH)
  meaning = decoding.of_saved_model(*names, facts.get("labels", ()), tokenizer)
  return graph, Predictor(AnswerProcessor(made), engine, 4, 64), items, (made, meaning)


def differences(expected, found, place=""):
  """Where two answers differ in keys, types, texts or numbers."""
  if isinstance(expected, dict):
    assert list(expected) == list(found), place
    pairs = [(expected[name], found[name], f"{place}/{name}") for name in expected]
    return [each for pair in pairs for each in differences(*pair)]
  assert type(expected) is type(found), place
  if isinstance(expected, list) and expected and isinstance(expected[0], dict):
    pairs = zip(expected, found, strict=True)
    return [each for pair in pairs for each in differences(*pair, place)]
  if isinstance(expected, np.ndarray):
    assert (expected.dtype, expected.shape) == (found.dtype, found.shape), place
  if isinstance(expected, float | np.ndarray):
    is_same = np.allclose(expected, found, rtol=1e-5, atol=1e-5)
  else:
    is_same = expected == found
  return [] if is_same else [(place, expected, found)]


@pytest.mark.ci
@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
@pytest.mark.parametrize("task", TASKS)
def test_answers_are_those_of_the_graph(task, lower, tmp_path):
  graph, answer, items, (made, meaning) = both(task, lower, tmp_path)
  for name in ("display", "inputs", "label_names"):
    assert getattr(meaning, name) == getattr(made, name)
  for item, expected, found in zip(items, graph(items), answer(items), strict=True):
    assert not differences(expected, found), item
    assert not differences(meaning.predictions(expected, ()), made.predictions(expected, ()))


# ---------------------------------------------------------------------------------------------
# Engines.

_WITHOUT_TENSORFLOW = """
import sys

class Hidden:
  def find_spec(self, name, path=None, target=None):
    if name.partition(".")[0] in ("tensorflow", "tensorflow_text", "keras"):
      raise ImportError(f"{name} was imported.")

sys.meta_path.insert(0, Hidden())
import numpy as np
from bert import tokenization
from bert.predicting.predictor import Predictor
from bert.predicting.processors import AnswerProcessor
from bert.tasks import decoding

class Engine:
  name, inputs = "made up", ("input_ids", "input_mask", "segment_ids")

  def __init__(self, *outputs, per_token=False):
    self._outputs, self._per_token = outputs, per_token

  def __call__(self, batch):
    ids = batch["input_ids"].astype(np.float32)
    scores = ids if self._per_token else ids[:, 1:3]
    return {name: scores for name in self._outputs}

def answers(facts, engine, items):
  tokenizer = tokenization.load_tokenizer(sys.argv[1])
  made = decoding.of_run(facts, {}, tokenizer, 16)
  return Predictor(AnswerProcessor(made), engine)(items)

classes = {"labels": ["a", "b"], "problem_type": "classification"}
print([a["label"] for a in answers(classes, Engine("logits"), ["the film", ("film", "the")])])
spans = Engine("start_logits", "end_logits", per_token=True)
print(answers({"task_name": "squad"}, spans, [("the ?", "the film was in")])[0]["answer"])
tags = type("Tags", (Engine,), {"__call__": lambda self, batch: {
  "logits": np.stack([batch["input_ids"], 8 * batch["input_mask"]], -1).astype(np.float32)}})()
print(answers({"task_name": "ner", "labels": ["O", "B-X"]}, tags, ["the film was"])[0]["tags"])
one = type("One", (Engine,), {"__call__": lambda self, batch: {
  "logits": batch["input_ids"][:, 3:4].astype(np.float32)}})()
print(answers({"task_name": "swag"}, one, [("the", ["film", "was", "the"])])[0]["choice"])
cosine = answers({"task_name": "similarity"}, Engine("vectors"), [("the", "the")])
print(round(cosine[0]["similarity"], 5))
"""


def test_an_engine_answers_without_tensorflow(tmp_path):
  vocab_file = word_pieces(tmp_path)
  done = run_python("-c", _WITHOUT_TENSORFLOW, vocab_file)
  assert done.returncode == 0, done.stderr
  assert done.stdout.splitlines() == ["['b', 'a']", "in", "['B-X', 'B-X', 'B-X']", "1", "1.0"]


class Spy:
  """A model whose logits are sums over tokens; remembers its batches."""

  name, inputs = "spy", SEQUENCES

  def __init__(self):
    self.batches = []

  def __call__(self, batch):
    self.batches.append(batch)
    ids = batch["input_ids"] * batch["input_mask"]
    return {"logits": ids.sum(axis=1, keepdims=True).astype(np.float32)}


def choices(vocab_file, **options):
  spy = Spy()
  tokenizer = tokenization.load_tokenizer(vocab_file)
  made = decoding.of_run({"task_name": "swag"}, {}, tokenizer, LENGTH)
  return spy, Predictor(AnswerProcessor(made), spy, **options)


def test_batches_hold_rows_of_all_items_of_a_chunk(tmp_path):
  vocab_file = word_pieces(tmp_path)
  spy, choose = choices(vocab_file, batch_size=4)
  items = [("the", ["film", "the film was"]), ("film", ["the"]), ("in", ["a", "e ?", "the . ."])]
  together = choose(items)
  assert [batch["input_ids"].shape for batch in spy.batches] == [(4, 6), (2, 7)]
  assert [len(answer["probabilities"]) for answer in together] == [2, 1, 3]
  spy, alone = choices(vocab_file, batch_size=1, chunk_size=2)
  np.testing.assert_equal([alone([item])[0] for item in items], together)
  assert {len(batch["input_ids"]) for batch in spy.batches} == {1}


def test_rows_are_filled_up_with_the_padding_of_the_tokenizer(tmp_path):
  spy, choose = choices(byte_pairs.write(tmp_path))
  choose([("the", ["and", "and and and"])])
  [batch] = spy.batches
  assert set(batch["input_ids"][batch["input_mask"] == 0]) == {1}


def test_an_unknown_engine_is_refused(tmp_path):
  with pytest.raises(ValueError, match="no engine 'tpu'; known are auto, onnxruntime, openvino"):
    Predictor.load(tmp_path, "tpu")
  with pytest.raises(ValueError, match="no engine 'auto'; known are onnxruntime"):
    registry.load("auto", str(tmp_path))


def test_a_task_of_ones_own_answers_for_each_token(tmp_path):
  with own_tasks.loaded("token_scores"):
    facts = {"task_name": "token_scores", "head": {}}
    tokenizer = tokenization.load_tokenizer(word_pieces(tmp_path))
    made = decoding.of_run(facts, {}, tokenizer, LENGTH)
    halves = type("Halves", (Spy,), {"__call__": lambda self, b: {"scores": b["input_ids"] / 2}})
    long, short = Predictor(AnswerProcessor(made), halves())(["the film was 中", "the"])
  assert (list(long), long["words"]) == (["words", "scores"], ["the", "film", "was", "中"])
  assert long["scores"] == [tokenizer.vocab[word] / 2 for word in long["words"]]
  assert short == {"words": ["the"], "scores": [tokenizer.vocab["the"] / 2]}
