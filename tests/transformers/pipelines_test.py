"""Pipelines: what they predict, checked by hand on tiny models, and what they refuse."""

import keras
import numpy as np
import pytest
import transformers

from bert.transformers import (
  BertConfig,
  TFBertForMaskedLM,
  TFBertForQuestionAnswering,
  TFBertForSequenceClassification,
  TFBertForTokenClassification,
  TFBertModel,
  pipeline,
)
from tests.kit.tiny_bert import SPECIAL_TOKENS

WORDS = [*SPECIAL_TOKENS, "ann", "##a", "lives", "in", "new", "york", "good", "bad", ".", "who"]
TEXT = "Anna lives in New York."
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@pytest.fixture(scope="module")
def tokenizer():
  vocab = {word: number for number, word in enumerate(WORDS)}
  return transformers.BertTokenizer(vocab=vocab, model_max_length=24)


def model_of(model_class, **options):
  keras.utils.set_random_seed(1)
  sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
  sizes |= {"intermediate_size": 16, "max_position_embeddings": 24, "initializer_range": 0.4}
  return model_class(BertConfig(vocab_size=len(WORDS), **sizes, **options))


def softmax(logits):
  return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


def test_texts_and_pairs(tokenizer, tmp_path):
  model = model_of(TFBertForSequenceClassification, id2label={0: "a", 1: "b", 2: "c"})
  model.save_pretrained(tmp_path)
  tokenizer.save_pretrained(tmp_path)
  classify = pipeline("sentiment-analysis", model=str(tmp_path))
  shares = softmax(model(dict(tokenizer([TEXT], return_tensors="np"))).logits[0].numpy())
  [best] = classify(TEXT)
  assert best["label"] == "abc"[shares.argmax()]
  assert best["score"] == pytest.approx(shares.max(), rel=1e-5)
  every = classify(TEXT, top_k=None)
  assert [each["score"] for each in every] == pytest.approx(sorted(shares, reverse=True), rel=1e-5)
  together = classify([TEXT, "good .", TEXT], batch_size=3)
  assert together[0] == together[2]
  assert together[1]["score"] == pytest.approx(classify("good .")[0]["score"], rel=1e-5)
  assert classify({"text": TEXT, "text_pair": "bad"})["label"] in "abc"
  long = classify(TEXT * 20)  # truncated to what the model can read
  assert 0 < long[0]["score"] <= 1


def test_entities_are_joined_as_their_strategy_says(tokenizer, monkeypatch):
  model = model_of(TFBertForTokenClassification, id2label=dict(enumerate(TAGS)))
  find = pipeline("ner", model=model, tokenizer=tokenizer)
  tags = ["O", "B-PER", "O", "O", "O", "B-LOC", "I-LOC", "O", "O"]  # of [CLS] ann ##a lives ...
  logits = 9 * np.eye(5, dtype=np.float32)[[TAGS.index(tag) for tag in tags]]
  monkeypatch.setattr(find, "_outputs", lambda encoded: {"logits": logits[None]})
  share = np.exp(9) / (np.exp(9) + 4)
  found = find(TEXT)
  assert [(x["word"], x["entity"], x["index"]) for x in found] == [
    ("ann", "B-PER", 1),
    ("new", "B-LOC", 5),
    ("york", "I-LOC", 6),
  ]
  assert [set(x) for x in found] == [{"entity", "score", "index", "word", "start", "end"}] * 3
  assert found[0]["score"] == pytest.approx(share)
  simple = find(TEXT, aggregation_strategy="simple")
  assert [(x["word"], x["start"], x["end"]) for x in simple] == [
    ("ann", 0, 3),
    ("new york", 14, 22),
  ]
  kept = find(TEXT, aggregation_strategy="first", ignore_labels=["O", "LOC"])
  assert [(x["word"], x["entity_group"], x["score"]) for x in kept] == [
    ("anna", "PER", pytest.approx(share))
  ]


def test_windows_of_a_long_text_have_each_entity_once(tokenizer):
  model = model_of(TFBertForTokenClassification, id2label=dict(enumerate(["X", "Y"])))
  find = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="first")
  text = "good bad " * 20
  assert find(text)[-1]["end"] < 120  # truncated
  found = find(text, stride=8)
  assert found[-1]["end"] == len(text) - 1
  starts = [each["start"] for each in found]
  assert starts == sorted(set(starts))


def test_answers_are_parts_of_the_context(tokenizer):
  model = model_of(TFBertForQuestionAnswering)
  answer = pipeline("question-answering", model=model, tokenizer=tokenizer)
  several = answer(question="Who?", context=TEXT, top_k=3)
  assert len(several) == 3
  assert sorted((each["score"] for each in several), reverse=True) == [x["score"] for x in several]
  for each in several:
    assert TEXT[each["start"] : each["end"]] == each["answer"] != ""
  assert answer(question="Who?", context=TEXT)["answer"] == several[0]["answer"]
  windows = answer(question="Who?", context=f"{TEXT} " * 9, max_seq_len=16, doc_stride=4)
  assert windows["answer"] in f"{TEXT} " * 9
  # The likeliest span of tokens, by the products of the shares of both ends.
  encoded = tokenizer("who", "good", return_tensors="np")  # [CLS] who [SEP] good [SEP]
  outputs = model(dict(encoded))
  allowed = [0, 3]
  start, end = (softmax(x[0].numpy()[allowed]) for x in (outputs.start_logits, outputs.end_logits))
  found = answer(question="who", context="good", top_k=2, handle_impossible_answer=True)
  scores = {each["answer"]: each["score"] for each in found}
  assert scores == pytest.approx({"good": start[1] * end[1], "": start[0] * end[0]}, rel=1e-4)


def test_masked_words(tokenizer):
  model = model_of(TFBertForMaskedLM)
  fill = pipeline("fill-mask", model=model, tokenizer=tokenizer)
  text = "anna lives in [MASK] ."
  shares = softmax(model(dict(tokenizer([text], return_tensors="np"))).logits[0, 5].numpy())
  found = fill(text, top_k=2)
  assert [each["token"] for each in found] == np.argsort(-shares)[:2].tolist()
  assert found[0]["score"] == pytest.approx(shares.max(), rel=1e-4)
  assert found[0]["token_str"] == WORDS[found[0]["token"]]
  assert fill(text, targets=["good"])[0]["sequence"] == "anna lives in good."
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
    (lambda model, tokenizer: pipeline("ner", model=model, tokenizer=tokenizer), "TF...ForToken"),
    (lambda model, tokenizer: pipeline(model=model), "give its tokenizer"),
    (lambda model, tokenizer: pipeline(model=model, framework="pt"), "TensorFlow alone"),
    (lambda model, tokenizer: pipeline(model=model, tokenizer=tokenizer)(5), "A text is needed"),
    (
      lambda model, tokenizer: pipeline(model=model, tokenizer=tokenizer)("no mask"),
      "There is no",
    ),
    (
      lambda model, tokenizer: pipeline(
        model=model_of(TFBertForSequenceClassification), tokenizer=tokenizer
      )("", function_to_apply="relu"),
      "function_to_apply is 'relu'",
    ),
  ],
)
def test_what_cannot_be_is_refused(tokenizer, call, words):
  with pytest.raises(ValueError, match=words.replace("...", r"\.\.\.")):
    call(model_of(TFBertForMaskedLM), tokenizer)
