"""Answers of ALBERT's and RoBERTa's pieces in a graph, against squad_features and squad_answers."""

import json
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert import tokenization
from bert.exporting import span_model
from bert.modeling import BertConfig
from bert.tasks import answer_texts, squad, squad_answers, squad_features

SEQ_LENGTH, STRIDE, QUERY_LENGTH = 64, 24, 16


class Result(NamedTuple):
  unique_id: int
  start_logits: np.ndarray
  end_logits: np.ndarray


class ModelOfNoise(span_model.SpanModel):
  """Its logits are random numbers: rows of them are the same in `noise`."""

  def _logits(self, queries, parts):
    return noise(tf.shape(parts.row_lengths())[0])


def noise(num_windows):
  return tuple(
    tf.round(tf.random.stateless_normal([num_windows, SEQ_LENGTH], [seed, 0], stddev=8.0)) / 4
    for seed in (1, 2)
  )


# Family -> its vocabulary and its configuration.
FILES = {
  "albert": ("tiny_spm.model", "config_A.json"),
  "roberta": ("tiny/tokenizer.json", "tiny/config.json"),
}


@pytest.mark.ci
@pytest.mark.parametrize("family", FILES)
def test_answers_as_in_python(golden_dir, family):
  """All questions of the recorded SQuAD files, and a paragraph with blanks of all kinds."""
  path, config_file = (golden_dir / family / name for name in FILES[family])
  content = json.loads(config_file.read_text())
  config = BertConfig.from_dict({**content, "model_type": family})
  data = json.loads((golden_dir / "squad" / "train_input-v2.0.json").read_text())["data"]
  paragraphs = [paragraph for article in data for paragraph in article["paragraphs"]]
  pairs = [(q["question"], each["context"]) for each in paragraphs for q in each["qas"]]
  pairs += [("What?", "  The of\t\t2008,  ( the ) end\u00a0of it. ")] * 3
  questions, contexts = zip(*pairs, strict=True)

  model = ModelOfNoise(
    config, str(path), True, SEQ_LENGTH, doc_stride=STRIDE, max_query_length=QUERY_LENGTH
  )
  found = {
    name: value.numpy()
    for name, value in model(tf.constant(questions), tf.constant(contexts)).items()
  }

  examples = []
  for number, (question, context) in enumerate(pairs):
    words, starts = squad.split_words(context)
    example = squad.SquadExample(number, question, words, word_starts=starts)
    example.context = context
    examples.append(example)
  lengths = (SEQ_LENGTH, STRIDE, QUERY_LENGTH)
  features = list(
    squad_features.generate_features(
      examples, tokenization.load_tokenizer(path), *lengths, False, shown=0
    )
  )
  rows = zip(features, *(x.numpy() for x in noise(len(features))), strict=True)
  results = [Result(feature.unique_id, start, end) for feature, start, end in rows]
  expected = squad_answers.answer_questions(examples, features, results, 20, 30, True)

  assert [text.decode() for text in found["answer"]] == [a.prediction.text for a in expected]
  spans = [answer_texts.context_span(a.example, a.prediction) or (-1, -1) for a in expected]
  assert list(zip(found["start"], found["end"], strict=True)) == spans
  probabilities = [a.probability for a in expected]
  np.testing.assert_allclose(found["probability"], probabilities, rtol=1e-6, atol=1e-6)
