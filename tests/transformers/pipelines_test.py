"""Pipelines: what they answer, checked by hand on tiny models, and what they refuse."""

import keras
import numpy as np
import pytest

from bert.transformers import (
  BertConfig,
  BertTokenizerFast,
  TFBertForMaskedLM,
  TFBertForQuestionAnswering,
  TFBertForSequenceClassification,
  TFBertModel,
  answers,
  pipeline,
)
from tests.kit.tiny_bert import SPECIAL_TOKENS

WORDS = [*SPECIAL_TOKENS, "ann", "##a", "lives", "in", "new", "york", "good", "bad", ".", "who"]
TEXT = "Anna lives in New York."
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
  return BertTokenizerFast(str(path))


def model_of(model_class, **options):
  keras.utils.set_random_seed(1)
  sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
  sizes |= {"intermediate_size": 16, "max_position_embeddings": 24, "initializer_range": 0.4}
  return model_class(BertConfig(vocab_size=len(WORDS), **sizes, **options))


def test_texts_and_pairs(tokenizer, tmp_path):
  model = model_of(TFBertForSequenceClassification, id2label={0: "a", 1: "b", 2: "c"})
  model.save_pretrained(tmp_path)
  tokenizer.save_pretrained(tmp_path)
  classify = pipeline("sentiment-analysis", model=str(tmp_path))
  logits = model(**tokenizer([TEXT], return_tensors="tf")).logits[0].numpy()
  shares = np.exp(logits) / np.exp(logits).sum()
  [best] = classify(TEXT)
  assert best["label"] == "abc"[shares.argmax()]
  assert best["score"] == pytest.approx(shares.max(), rel=1e-5)
  every = classify(TEXT, top_k=None)
  assert [each["score"] for each in every] == pytest.approx(sorted(shares, reverse=True), rel=1e-5)
  together = classify([TEXT, "good .", TEXT], batch_size=3)
  assert together[0] == together[2]
  assert together[1]["score"] == pytest.approx(classify("good .")[0]["score"], rel=1e-5)
  assert classify({"text": TEXT, "text_pair": "bad"})["label"] in "abc"
  long = classify(TEXT * 20)  # cut to what the model can read
  assert 0 < long[0]["score"] <= 1


def test_entities_are_joined_as_their_strategy_says(tokenizer):
  tag = {name: np.eye(5, dtype=np.float32)[index] * 9 for index, name in enumerate(TAGS)}
  logits = [tag["B-PER"], tag["O"], tag["O"], tag["O"], tag["B-LOC"], tag["I-LOC"], tag["O"]]
  encoded = tokenizer(
    TEXT, return_tensors="np", return_offsets_mapping=True, return_special_tokens_mask=True
  )
  logits = np.stack([tag["O"], *logits, tag["O"]])
  config = BertConfig(id2label=dict(enumerate(TAGS)))
  tokens = answers.tokens_of(TEXT, encoded, logits, tokenizer)

  def found(strategy):
    return answers.of_tokens(TEXT, tokens, config, tokenizer, strategy)

  assert [(x["word"], x["entity"], x["index"]) for x in found("none")] == [
    ("ann", "B-PER", 1),
    ("new", "B-LOC", 5),
    ("york", "I-LOC", 6),
  ]
  assert [(x["word"], x["start"], x["end"]) for x in found("simple")] == [
    ("ann", 0, 3),
    ("new york", 14, 22),
  ]
  assert [(x["word"], x["entity_group"]) for x in found("first")] == [
    ("anna", "PER"),
    ("new york", "LOC"),
  ]
  assert TEXT[found("first")[0]["start"] : found("first")[0]["end"]] == "Anna"
  # The average of both parts of "Anna" is between them.
  assert found("max")[0]["score"] > 0.99


def test_answers_are_parts_of_the_context(tokenizer):
  answer = pipeline(
    "question-answering", model=model_of(TFBertForQuestionAnswering), tokenizer=tokenizer
  )
  several = answer(question="Who?", context=TEXT, top_k=3)
  assert len(several) == 3
  assert sorted((each["score"] for each in several), reverse=True) == [x["score"] for x in several]
  for each in several:
    assert TEXT[each["start"] : each["end"]] == each["answer"] != ""
  assert answer(question="Who?", context=TEXT)["answer"] == several[0]["answer"]
  windows = answer(question="Who?", context=f"{TEXT} " * 9, max_seq_len=16, doc_stride=4)
  assert windows["answer"] in f"{TEXT} " * 9


def test_masked_words(tokenizer):
  fill = pipeline("fill-mask", model=model_of(TFBertForMaskedLM), tokenizer=tokenizer)
  found = fill("anna lives in [MASK] .", top_k=2)
  assert len(found) == 2
  assert found[0]["score"] >= found[1]["score"]
  assert tokenizer.convert_ids_to_tokens(found[0]["token"]) == found[0]["token_str"]
  assert [x["token_str"] for x in fill("[MASK] .", targets=["good", "bad"])] in (
    ["good", "bad"],
    ["bad", "good"],
  )
  assert len(fill("[MASK] in [MASK]")) == 2


def test_feature_extraction(tokenizer):
  vectors = pipeline(task="feature-extraction", model=model_of(TFBertModel), tokenizer=tokenizer)
  assert np.shape(vectors(TEXT)) == (1, 9, 16)


@pytest.mark.parametrize(
  ("call", "words"),
  [
    (lambda model, tokenizer: pipeline("translation"), "translation"),
    (lambda model, tokenizer: pipeline("fill-mask"), "Name the model"),
    (lambda model, tokenizer: pipeline("ner", model=model, tokenizer=tokenizer), "TF...ForToken"),
    (lambda model, tokenizer: pipeline(model=model), "give its tokenizer"),
    (lambda model, tokenizer: pipeline(model=model, framework="pt"), "TensorFlow alone"),
    (lambda model, tokenizer: pipeline(model=model, tokenizer=tokenizer)(5), "A text is needed"),
    (
      lambda model, tokenizer: pipeline(model=model, tokenizer=tokenizer)("no mask"),
      "There is no",
    ),
    (
      lambda model, tokenizer: pipeline(model=model, tokenizer=tokenizer)("[MASK]", targets=[""]),
      "At least one target",
    ),
    (
      lambda model, tokenizer: answers.of_tokens("", [], BertConfig(), tokenizer, "middle"),
      "aggregation_strategy is 'middle'",
    ),
    (
      lambda model, tokenizer: answers.of_texts(np.zeros(2), BertConfig(), "relu"),
      "function_to_apply is 'relu'",
    ),
  ],
)
def test_what_cannot_be_is_refused(tokenizer, call, words):
  with pytest.raises(ValueError, match=words.replace("...", r"\.\.\.")):
    call(model_of(TFBertForMaskedLM), tokenizer)
