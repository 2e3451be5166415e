"""Answers to questions in a graph, against squad_features and squad_answers in Python.

Alone: python -m pytest tests/exporting/span_model_test.py (about half a minute)

Whole runs with `--do_export` are in tests/run_squad/export_test.py.
"""

import gzip
import json
import random
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import bundle_files, saving
from bert.exporting import graph_text, span_model
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel
from bert.tasks import answer_texts, squad, squad_answers, squad_features
from bert.tokenization import FullTokenizer
from tests.kit import tiny_bert

pytestmark = pytest.mark.usefixtures("one_tokenizer")

LETTERS = "abcdemnş½"
VOCAB = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + x for x in LETTERS)),
  *("'", ",", ".", "(", "-", "ame", "##ame", "cam", "##dem"),
]
SEQ_LENGTH, STRIDE, QUERY_LENGTH = 24, 8, 4


def config(vocab_size, seq_length):
  return BertConfig(**tiny_bert.sizes(vocab_size, 8, 1, 8, seq_length))


class Result(NamedTuple):
  unique_id: int
  start_logits: np.ndarray
  end_logits: np.ndarray


class ModelOfNoise(span_model.SpanModel):
  """Its logits are random numbers: rows of them are the same in `noise`."""

  def _logits(self, queries, parts):
    return noise(tf.shape(parts.row_lengths())[0], self._seq_length)


def noise(num_windows, length=SEQ_LENGTH):
  """Of few different values, so that some scores are equal; [CLS] is as good as the best."""
  return tuple(
    tf.round(tf.random.stateless_normal([num_windows, length], [seed, 0], stddev=8.0)) / 4
    + tf.one_hot(0, length, 4.0)
    for seed in (1, 2)
  )


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory) -> str:
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
  return str(path)


def model_of_noise(vocab_file, **options):
  return ModelOfNoise(
    config(len(VOCAB), SEQ_LENGTH),
    vocab_file,
    True,
    SEQ_LENGTH,
    max_query_length=QUERY_LENGTH,
    **{"doc_stride": STRIDE, **options},
  )


def answers_of(model, questions, contexts) -> dict[str, np.ndarray]:
  return {k: v.numpy() for k, v in model(tf.constant(questions), tf.constant(contexts)).items()}


def pythons_answers(
  vocab_file, questions, contexts, n_best=20, max_length=30, stride=STRIDE, **options
):
  """What run_squad would answer if its model gave `noise`."""
  examples = []
  for number, (question, context) in enumerate(zip(questions, contexts, strict=True)):
    words, starts = squad.split_words(context)
    examples.append(squad.SquadExample(number, question, words, word_starts=starts))
  lengths = (SEQ_LENGTH, stride, QUERY_LENGTH)
  tokenizer = FullTokenizer(vocab_file)
  features = list(squad_features.generate_features(examples, tokenizer, *lengths, False))
  rows = zip(features, *(x.numpy() for x in noise(len(features))), strict=True)
  results = [Result(feature.unique_id, start, end) for feature, start, end in rows]
  return squad_answers.answer_questions(
    examples, features, results, n_best, max_length, True, **options
  )


def assert_equal_answers(found, expected, null_odds=False):
  assert [text.decode() for text in found["answer"]] == [a.prediction.text for a in expected]
  spans = [answer_texts.context_span(a.example, a.prediction) or (-1, -1) for a in expected]
  assert list(zip(found["start"], found["end"], strict=True)) == spans
  numbers = {
    "probability": [a.probability for a in expected],
    "score": [a.prediction.score for a in expected],
  }
  if null_odds:
    numbers["null_odds"] = [a.null_odds for a in expected]
  for name, values in numbers.items():
    np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-6, err_msg=name)
  assert sorted(found) == sorted(["answer", "start", "end", *numbers])


# ---------------------------------------------------------------------------------------------
# Against Python.


def made_up(count, seed):
  """Questions and paragraphs of all lengths, with whatever normalisation drops or replaces.

  No letter is in a word twice, nor its capital: such a place is run_squad's own affair.
  """
  rng = random.Random(seed)
  extra = ["Ş", "ş", "s\u0327", "\u200b", "ö", "中", "😀", "\u00a0", "\u0085"]
  contexts = []
  for _ in range(count):
    words = [
      "".join(dict.fromkeys(rng.choices([*LETTERS, *"'.,(-", *extra], k=rng.randrange(1, 9))))
      for _ in range(rng.randrange(1, 40))
    ]
    contexts.append(
      "".join(word + rng.choice(" \t\n\u202f") * rng.randrange(1, 3) for word in words)
    )
  questions = [" ".join(rng.choices(["cam", "a", "x", ""], k=rng.randrange(8))) for _ in contexts]
  return questions, [f"Me {context}" for context in contexts]


@pytest.mark.ci
@pytest.mark.parametrize(
  ("n_best_size", "max_answer_length", "threshold"),
  [
    (3, 2, -1.0),
    *(
      pytest.param(*sizes, marks=pytest.mark.ci)
      for sizes in [(20, 30, 0.0), (1, 30, 2.0), (24, 24, 1e6), (5, 5, -1e6)]
    ),
  ],
)
def test_version_2_as_in_python(vocab_file, n_best_size, max_answer_length, threshold):
  questions, contexts = made_up(200, seed=n_best_size)
  options = {"version_2_with_negative": True, "null_score_diff_threshold": threshold}
  model = model_of_noise(
    vocab_file, n_best_size=n_best_size, max_answer_length=max_answer_length, **options
  )
  expected = pythons_answers(
    vocab_file, questions, contexts, n_best_size, max_answer_length, **options
  )
  assert_equal_answers(answers_of(model, questions, contexts), expected, null_odds=True)


@pytest.mark.ci
@pytest.mark.parametrize("stride", [3, 40])
def test_version_1_as_in_python(vocab_file, stride):
  """A stride that is longer than a window leaves nothing out."""
  questions, contexts = made_up(200, seed=7)
  found = answers_of(model_of_noise(vocab_file, doc_stride=stride), questions, contexts)
  expected = pythons_answers(vocab_file, questions, contexts, stride=stride)
  assert all(a.best_answer for a in expected)
  assert_equal_answers(found, expected)


@pytest.mark.ci
def test_the_same_text_in_two_places_counts_once(vocab_file):
  questions, contexts = ["a"] * 3, ["cam " * 20, "cam, " * 20, "a b c " * 7]
  expected = pythons_answers(vocab_file, questions, contexts, max_length=2)
  assert [len(answers.nbest) for answers in expected] == [2, 4, 6]
  model = model_of_noise(vocab_file, max_answer_length=2)
  assert_equal_answers(answers_of(model, questions, contexts), expected)


@pytest.mark.ci
def test_no_span_makes_sense(vocab_file):
  """No paragraph, or one whose only piece is not among the best."""
  contexts = ["", " \n", "\u200b"]
  found = answers_of(model_of_noise(vocab_file), ["a"] * 3, contexts)
  assert found["answer"].tolist() == [b""] * 3
  assert found["start"].tolist() == found["end"].tolist() == [-1] * 3
  assert found["probability"].tolist() == found["score"].tolist() == [0.0] * 3
  may_be_none = model_of_noise(vocab_file, version_2_with_negative=True)
  found = answers_of(may_be_none, ["a"] * 4, [*contexts, "a b c d e"])
  assert found["answer"].tolist()[:3] == [b""] * 3
  assert found["null_odds"].tolist()[:3] == [squad_answers.NO_ANSWER_ODDS] * 3
  assert found["null_odds"][3] < 100


@pytest.mark.ci
@pytest.mark.parametrize("mask_padding", [False, True])
def test_an_empty_batch(vocab_file, mask_padding):
  sizes = config(len(VOCAB), SEQ_LENGTH)
  model = span_model.SpanModel(
    sizes, vocab_file, True, SEQ_LENGTH, max_query_length=QUERY_LENGTH, mask_padding=mask_padding
  )
  found = model(tf.constant([], tf.string), tf.constant([], tf.string))
  assert {values.shape[0] for values in found.values()} == {0}


# ---------------------------------------------------------------------------------------------
# Against the original.


@pytest.mark.parametrize("version", ["1.1", pytest.param("2.0", marks=pytest.mark.ci)])
def test_the_originals_answers(golden_dir, data_dir, version):
  folder, is_2 = golden_dir / "squad", version == "2.0"
  logits = np.load(folder / f"logits-v{version}.npz")
  with gzip.open(folder / f"predict_features-v{version}.jsonl.gz", "rt") as lines:
    input_ids = [json.loads(line)["input_ids"] for line in lines]

  class GoldenModel(span_model.SpanModel):
    """Has the recorded logits, if its windows are the recorded ones."""

    def _logits(self, queries, parts):
      has_b = tf.ones_like(parts.row_lengths(), tf.bool)
      inputs = graph_text.join(queries, parts, has_b, self._frame, self._seq_length)
      tf.debugging.assert_equal(inputs["input_word_ids"], input_ids)
      return tf.constant(logits["start"]), tf.constant(logits["end"])

  vocab_file = str(data_dir / "vocab" / "uncased_vocab.txt")
  model = GoldenModel(
    config(30522, 192), vocab_file, True, 192, 64, 32, 20, 30, is_2, -1.0 if is_2 else 0.0
  )
  document = json.loads((folder / f"input-v{version}.json").read_text())
  paragraphs = [paragraph for entry in document["data"] for paragraph in entry["paragraphs"]]
  pairs = [(qa["question"], p["context"]) for p in paragraphs for qa in p["qas"]]
  found = answers_of(model, *zip(*pairs, strict=True))
  texts = json.loads((folder / f"predictions-v{version}.json").read_text())
  assert [text.decode() for text in found["answer"]] == list(texts.values())
  nbest = json.loads((folder / f"nbest-v{version}.json").read_text())
  probabilities = [
    sum(answer["probability"] for answer in nbest[qid] if answer["text"] == text)
    for qid, text in texts.items()
  ]
  np.testing.assert_allclose(found["probability"], probabilities, rtol=0, atol=1e-6)
  if is_2:
    odds = json.loads((folder / "null_odds-v2.0.json").read_text())
    np.testing.assert_allclose(found["null_odds"], list(odds.values()), rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------------------------------
# Writing.


@pytest.mark.ci
def test_a_checkpoint_without_the_head_is_refused(vocab_file, tmp_path):
  sizes = config(len(VOCAB), SEQ_LENGTH)
  with use_store(VariableStore()) as store:
    BertModel(sizes, False, tf.zeros([1, 1], tf.int32))
  saving.save(str(tmp_path), 1, store.variables, {})
  model = span_model.SpanModel(sizes, vocab_file, True, max_seq_length=SEQ_LENGTH)
  with pytest.raises(bundle_files.CheckpointError, match="cls/squad/output_weights"):
    model.export(str(tmp_path / "task"), str(tmp_path))
  assert not (tmp_path / "task").exists()
