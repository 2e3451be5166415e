"""Words of raw text, and words that are split already, of a tagger.

Alone: python -m pytest tests/tasks/tag_answers_test.py (seconds; no TensorFlow)
"""

import numpy as np
import pytest

from bert.predicting.processors import AnswerProcessor
from bert.tasks import kinds
from bert.tasks.tag_decoder import TagDecoder
from bert.tokenization import FullTokenizer
from tests.kit.tokenizer_definition import write_vocab

LABELS = ["O", "B-LOC", "I-LOC"]
PIECES = ["he", "is", "in", "paris", "new", "york", "was", "(", ")", ".", ",", '"', "北", "京", "-"]


@pytest.fixture
def tagger(tmp_path):
  tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *PIECES]
  tokenizer = FullTokenizer(write_vocab(tmp_path, "\n".join(tokens) + "\n"))
  return TagDecoder(kinds.find("ner"), tokenizer, 32, LABELS)


def scores_of(tagger, rows):
  """The scores of a model that knows three names by their pieces."""
  names = {tagger.tokenizer.vocab[piece]: label for piece, label in NAMES.items()}
  labels = [[names.get(index, 0) for index in row["input_ids"]] for row in rows]
  return [{"logits": np.eye(3, dtype=np.float32)[each] * 9} for each in labels]


NAMES = {"paris": 1, "new": 1, "york": 2, "北": 1, "京": 2}


def answer_to(tagger, item):
  processor = AnswerProcessor(tagger)
  rows = processor.featurize(item)
  return processor.finish(rows, scores_of(tagger, rows))


def places(answer):
  return [(each["text"], each["start"], each["end"]) for each in answer["entities"]]


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("He is in ( Paris ) .", [("Paris", 11, 16)]),
    ("He is in (Paris).", [("Paris", 10, 15)]),
    ('"Paris," he was.', [("Paris", 1, 6)]),
    ("he was in Paris.", [("Paris", 10, 15)]),
    ("(New York), Paris", [("New York", 1, 9), ("Paris", 12, 17)]),
    ("he北京was", [("北京", 2, 4)]),
    ("Paris\u2014New\u00a0York\u3002", [("Paris", 0, 5), ("New\u00a0York", 6, 14)]),
    ("\u200b Pa\u200bris!", [("Pa\u200bris", 2, 8)]),
    ("...", []),
    (" \n", []),
  ],
)
def test_entities_are_found_without_their_punctuation(tagger, text, expected):
  answer = answer_to(tagger, text)
  assert places(answer) == expected
  assert all(text[start:end] == found for found, start, end in expected)


TEXTS = [
  "Où est-il?  «Ici», 北京の\u00a0x.",
  "don't\u200bU.S. $5 — a_b^c",
  "e\u0301!\u0301 É\tß\x00ﬁ",
]


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_those_of_the_library(tagger, text):
  library = pytest.importorskip("tokenizers")
  cleaned = library.normalizers.BertNormalizer(lowercase=False, strip_accents=False)
  split = library.pre_tokenizers.BertPreTokenizer()
  expected = [word for word, _ in split.pre_tokenize_str(cleaned.normalize_str(text))]
  rows = AnswerProcessor(tagger).featurize(text)
  answer = tagger.decode(rows.item, rows, scores_of(tagger, rows))
  assert [word.replace("\u200b", "").replace("\0", "") for word in answer["words"]] == expected
  spans = zip(answer["starts"], answer["ends"], strict=True)
  assert [text[start:end] for start, end in spans] == answer["words"]


def test_words_that_are_split_already_stay_as_they_are(tagger):
  words = ["He", "was", "in", "(Paris)", "New York", ".", "北京"]
  answer = answer_to(tagger, {"words": words})
  assert answer["words"] == words
  assert answer["num_words"] == len(words)
  text = " ".join(words)
  assert places(answer) == [("New York", 18, 26), ("北京", 29, 31)]
  assert [text[a:b] for a, b in zip(answer["starts"], answer["ends"], strict=True)] == words
  assert tagger.shown().case({"words": words}, None, answer).passages[0].text == text


@pytest.mark.parametrize(
  "item", [{"words": []}, {"words": "He"}, {"words": [1]}, {"words": [""]}, {"words": 1, "text": 2}]
)
def test_malformed_words_are_refused(tagger, item):
  with pytest.raises(ValueError, match=r'is not \{"words": \[...\]\} with a list of texts'):
    AnswerProcessor(tagger).featurize(item)


def test_chinese_characters_are_words_only_for_models_that_split_them(tmp_path):
  vocab_file = write_vocab(tmp_path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n北京\n")
  made = TagDecoder(
    kinds.find("ner"), FullTokenizer(vocab_file, tokenize_chinese_chars=False), 32, LABELS
  )
  assert [word.text for word in made._words({"text": "a 北京。"})] == ["a", "北京", "。"]
