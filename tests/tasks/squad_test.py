"""Tests of bert/tasks/squad.py and its parts: reading, windows, answers, official scores.

Alone: python -m pytest tests/tasks/squad_test.py (seconds; TensorFlow is not needed)
"""

import contextlib
import doctest
import functools
import gzip
import json
import math
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.tasks import squad, squad_answers, squad_features, squad_scores
from bert.tasks.squad import DataError, InputFeatures, SquadExample, read_squad_examples
from bert.tasks.squad_features import WindowMap
from bert.tokenization import BasicTokenizer, FullTokenizer
from tests.kit.paths import ROOT

VERSIONS = {"1.1": False, "2.0": True}


class Result(NamedTuple):
  unique_id: int
  start_logits: object
  end_logits: object


LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PIECES = ["the", "man", "went", "to", "store", "bought", "##s", "japan", "japanese", "smith"]
VOCAB = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, "'", ",", ".", "?", "(", ")", "-"),
  *("##" + letter for letter in LETTERS if letter != "s"),
  *PIECES,
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> FullTokenizer:
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("\n".join(VOCAB) + "\n")
  return FullTokenizer(path)


# ---------------------------------------------------------------------------------------------
# Against the original.


class Golden(NamedTuple):
  folder: object
  version: str
  examples: list
  features: list


def features_of(examples, tokenizer, lengths=(192, 64, 32), is_training=False):
  features = []
  squad.convert_examples_to_features(examples, tokenizer, *lengths, is_training, features.append)
  return features


@pytest.fixture(scope="module")
def golden_tokenizer(data_dir):
  return FullTokenizer(data_dir / "vocab" / "uncased_vocab.txt")


@pytest.fixture(scope="module", params=VERSIONS)
def golden(request, golden_dir, golden_tokenizer) -> Golden:
  folder, version = golden_dir / "squad", request.param
  examples = read_squad_examples(folder / f"input-v{version}.json", False, VERSIONS[version])
  return Golden(folder, version, examples, features_of(examples, golden_tokenizer))


def assert_features_equal(features, path):
  with gzip.open(path, "rt", encoding="utf-8") as lines:
    expected = [json.loads(line) for line in lines]
  assert len(features) == len(expected) > 100
  for feature, golden_feature in zip(features, expected, strict=True):
    assert vars(feature).keys() == golden_feature.keys()
    for name, value in golden_feature.items():
      found = getattr(feature, name)
      if isinstance(found, WindowMap):
        value = {int(position): v for position, v in value.items()}
        found = dict(found)
      assert found == value, name


def test_predict_features_equal_the_originals(golden):
  path = golden.folder / f"predict_features-v{golden.version}.jsonl.gz"
  assert_features_equal(golden.features, path)


@pytest.mark.parametrize("version", VERSIONS)
def test_train_features_equal_the_originals(golden_dir, golden_tokenizer, version):
  folder = golden_dir / "squad"
  examples = read_squad_examples(folder / f"train_input-v{version}.json", True, VERSIONS[version])
  features = features_of(examples, golden_tokenizer, is_training=True)
  assert_features_equal(features, folder / f"train_features-v{version}.jsonl.gz")
  assert any(feature.start_position for feature in features)


def write_golden(golden, folder):
  logits = np.load(golden.folder / f"logits-v{golden.version}.npz")
  rows = zip(golden.features, logits["start"], logits["end"], strict=True)
  results = [Result(feature.unique_id, start, end) for feature, start, end in rows]
  names = ("predictions.json", "nbest.json", "null_odds.json")
  return squad.write_predictions(
    golden.examples,
    golden.features,
    results,
    20,
    30,
    True,
    *(folder / name for name in names),
    version_2_with_negative=VERSIONS[golden.version],
    null_score_diff_threshold=-1.0 if golden.version == "2.0" else 0.0,
    output_detailed_file=folder / "detailed.jsonl",
  )


def test_predictions_equal_the_originals(golden, tmp_path):
  write_golden(golden, tmp_path)
  for name in ("predictions", "null_odds"):
    path = golden.folder / f"{name}-v{golden.version}.json"
    assert (tmp_path / f"{name}.json").exists() == path.exists()
    if path.exists():
      assert (tmp_path / f"{name}.json").read_bytes() == path.read_bytes(), name


def test_nbest_equals_the_originals(golden, tmp_path):
  write_golden(golden, tmp_path)
  found = json.loads((tmp_path / "nbest.json").read_text())
  expected = json.loads((golden.folder / f"nbest-v{golden.version}.json").read_text())
  assert list(found) == list(expected)
  for qid, answers in expected.items():
    assert [a["text"] for a in found[qid]] == [a["text"] for a in answers]
    for key in ("probability", "start_logit", "end_logit"):
      values, golden_values = ([a[key] for a in each] for each in (found[qid], answers))
      np.testing.assert_allclose(values, golden_values, rtol=0, atol=1e-6, err_msg=key)


def test_scores_equal_the_official_script(golden_dir):
  folder = golden_dir / "squad"
  examples = read_squad_examples(folder / "input-v2.0.json", False, True)
  answers = {example.qas_id: example.answers for example in examples}
  predictions = json.loads((folder / "predictions-v2.0.json").read_text())
  null_odds = json.loads((folder / "null_odds-v2.0.json").read_text())
  found = squad_scores.evaluate_v2(answers, predictions, null_odds)
  assert found == json.loads((folder / "evaluate-v2.0.json").read_text())


def test_characters_of_the_details_are_the_answer(golden, tmp_path):
  write_golden(golden, tmp_path)
  document = json.loads((golden.folder / f"input-v{golden.version}.json").read_text())
  contexts = {
    qa["id"]: paragraph["context"]
    for entry in document["data"]
    for paragraph in entry["paragraphs"]
    for qa in paragraph["qas"]
  }
  lines = (tmp_path / "detailed.jsonl").read_text(encoding="utf-8").splitlines()
  details = [json.loads(line) for line in lines]
  assert [detail["id"] for detail in details] == list(contexts)
  predictions = json.loads((tmp_path / "predictions.json").read_text())
  for detail in details:
    assert detail["text"] == predictions[detail["id"]]
    text = detail["text"] and contexts[detail["id"]][detail["start"] : detail["end"]]
    assert " ".join(text.split()) == " ".join(detail["text"].split())
    assert 0 < detail["probability"] < 1


# ---------------------------------------------------------------------------------------------
# Reading.

CONTEXT = "The Japanese man (1895-1943) went\n to the store."


def question(qid="q1", text="When?", answers=("1895",), context=CONTEXT, **more) -> dict:
  qa = {"id": qid, "question": text}
  if answers is not None:
    qa["answers"] = [{"text": a, "answer_start": max(context.find(a), 0)} for a in answers]
  return {**qa, **more}


def write_squad(folder, *qas, context=CONTEXT):
  path = folder / "squad.json"
  paragraph = {"context": context, "qas": list(qas)}
  document = {"version": "x", "data": [{"title": "t", "paragraphs": [paragraph]}]}
  path.write_text(json.dumps(document), encoding="utf-8")
  return path


def test_a_question_to_train_on(tmp_path):
  [example] = read_squad_examples(write_squad(tmp_path, question()), True)
  assert example.qas_id == "q1"
  assert example.question_text == "When?"
  assert example.doc_tokens == CONTEXT.split()
  assert (example.start_position, example.end_position) == (3, 3)
  assert example.orig_answer_text == "1895"
  assert example.is_impossible is False
  assert example.answers == ["1895"]
  assert example.word_starts[3:5] == [17, 29]


def test_blanks_are_the_originals(tmp_path):
  """Five characters separate words; a no-break space, or any other of Unicode's, does not."""
  context = "a\tb\rc\nd\u202fe\u00a0f\u2009g\x0bh"
  [example] = read_squad_examples(
    write_squad(tmp_path, question(answers=None), context=context), False
  )
  assert example.doc_tokens == ["a", "b", "c", "d", "e\u00a0f\u2009g\x0bh"]


def test_answers_that_are_not_there_are_left_out_and_counted(tmp_path, caplog):
  wrong_place = question("q2")
  wrong_place["answers"][0]["answer_start"] = 3
  outside = question("q3")
  outside["answers"][0]["answer_start"] = len(CONTEXT) - 2
  negative = question("q4")
  negative["answers"][0]["answer_start"] = -4
  path = write_squad(
    tmp_path, question(), wrong_place, outside, negative, question("q5", answers=("",))
  )
  assert [example.qas_id for example in read_squad_examples(path, True)] == ["q1"]
  assert "Could not find answer: '1895' at character 3 of the context of question 'q2'" in (
    caplog.text
  )
  assert f"{path}: 4 of 5 questions were left out" in caplog.text
  assert len(read_squad_examples(path, False)) == 5


def test_an_answer_before_the_context_is_not_its_last_word():
  assert squad._find_words(squad._Paragraph("Rome", ["Rome"], [0]), "Rome", 0) == (0, 0)
  assert squad._find_words(squad._Paragraph("Rome", ["Rome"], [0]), "Rome", -1) is None


def test_of_several_answers_the_first_is_trained_on(tmp_path, caplog):
  path = write_squad(tmp_path, question(answers=("1943", "1895")), question("q2"))
  first, _ = read_squad_examples(path, True)
  assert first.orig_answer_text == "1943"
  assert first.answers == ["1943", "1895"]
  assert "1 of 2 questions have several answers: the first one is trained on" in caplog.text


def test_questions_without_answers_can_be_predicted(tmp_path):
  path = write_squad(tmp_path, question(answers=None), question("q2", answers=()))
  assert [example.answers for example in read_squad_examples(path, False)] == [None, None]
  assert [example.answers for example in read_squad_examples(path, False, True)] == [None, None]


def test_impossible_questions_of_2_0(tmp_path):
  path = write_squad(
    tmp_path,
    question(is_impossible=False),
    question("q2", answers=(), is_impossible=True, plausible_answers=[]),
  )
  first, second = read_squad_examples(path, True, version_2_with_negative=True)
  assert (first.is_impossible, first.start_position) == (False, 3)
  assert (second.is_impossible, second.start_position, second.end_position) == (True, -1, -1)
  assert second.orig_answer_text == ""
  assert [e.answers for e in read_squad_examples(path, False, True)] == [["1895"], []]


def test_compressed_and_with_byte_order_mark(tmp_path):
  path = write_squad(tmp_path, question())
  packed = tmp_path / "squad.json.gz"
  packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
  [example] = read_squad_examples(str(packed), False)
  assert example.qas_id == "q1"


def as_file(value) -> bytes:
  return json.dumps(value).encode()


def paragraph(*qas, **more) -> bytes:
  return as_file({"data": [{"paragraphs": [{"context": CONTEXT, "qas": list(qas), **more}]}]})


# Content of the file, (is_training, version 2), what the message says.
ERRORS = {
  "cut short": (b'{"data":\n[{"par', (1, 0), "line 2: this is not JSON"),
  "empty": (b"", (0, 0), "this is not JSON"),
  "not UTF-8": (b'{"data": "\xff"}', (0, 0), "byte 10 is not UTF-8"),
  "nested": (b"[" * 200000, (0, 0), "nested too deeply"),
  "a list": (b"[]", (0, 0), "the file is [], not an object {...}."),
  "no data": (b'{"version": "1.1"}', (0, 0), "the file: 'data' is missing; there is version."),
  "data is text": (b'{"data": "x"}', (0, 0), "the file: 'data' is \"x\", not a list [...]."),
  "no question": (b'{"data": []}', (0, 0), "there is no question in the file"),
  "entry": (as_file({"data": [3]}), (0, 0), "data[0] is 3, not an object {...}."),
  "no paragraphs": (as_file({"data": [{}]}), (0, 0), "data[0]: 'paragraphs' is missing"),
  "no context": (
    as_file({"data": [{"paragraphs": [{"qas": []}]}]}),
    (0, 0),
    "data[0].paragraphs[0]: 'context' is missing; there is qas.",
  ),
  "no qas": (
    as_file({"data": [{"paragraphs": [{"context": "a"}]}]}),
    (0, 0),
    "data[0].paragraphs[0]: 'qas' is missing; there is context.",
  ),
  "no id": (paragraph({"question": "?"}), (0, 0), "data[0].paragraphs[0].qas[0]: 'id' is missing"),
  "id": (paragraph(question([1])), (0, 0), "'id' is [1], not a text."),
  "no question text": (paragraph({"id": "q1"}), (0, 0), "question 'q1': 'question' is missing"),
  "question text": (paragraph(question(text=None)), (0, 0), "'question' is null, not a text."),
  "answers": (paragraph(question(answers=None, answer="x")), (1, 0), "it has none"),
  "answers is text": (
    paragraph({**question(), "answers": "1895"}),
    (0, 0),
    "question 'q1': 'answers' is \"1895\", not a list [...].",
  ),
  "answer is text": (
    paragraph({**question(), "answers": ["1895"]}),
    (0, 0),
    "question 'q1', an answer is \"1895\", not an object {...}.",
  ),
  "no start": (
    paragraph({**question(), "answers": [{"text": "1895"}]}),
    (1, 0),
    "question 'q1', an answer: 'answer_start' is missing; there is text.",
  ),
  "start is text": (
    paragraph({**question(), "answers": [{"text": "1895", "answer_start": "17"}]}),
    (1, 0),
    "'answer_start' is \"17\", not a whole number.",
  ),
  "2.0 read as 1.1": (
    paragraph(question(answers=(), is_impossible=True)),
    (1, 0),
    "question 'q1': to train, each question needs an answer, and it has none. It is marked as "
    "impossible: --version_2_with_negative",
  ),
  "1.1 read as 2.0": (
    paragraph(question()),
    (1, 1),
    "question 'q1': 'is_impossible' is missing. Is this a file of SQuAD 1.1?",
  ),
  "is_impossible": (
    paragraph(question(is_impossible="no")),
    (1, 1),
    "question 'q1': 'is_impossible' is \"no\", not true or false.",
  ),
  "empty context": (
    paragraph(question("q7"), context=" \n"),
    (0, 0),
    "question 'q7': its context is empty.",
  ),
  "same id": (
    paragraph(question("q7"), question("q7")),
    (0, 0),
    "question 'q7': a question with this id came before.",
  ),
  "same id in the files of answers": (
    paragraph(question(7), question("7")),
    (0, 0),
    "question '7': a question with this id came before.",
  ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_file_question_and_reason(tmp_path, name):
  content, (is_training, version_2), expected = ERRORS[name]
  path = tmp_path / "bad.json"
  path.write_bytes(content)
  with pytest.raises(DataError) as raised:
    read_squad_examples(path, bool(is_training), bool(version_2))
  assert expected in str(raised.value)
  assert str(raised.value).startswith(str(path))


def test_a_missing_file_is_named(tmp_path):
  for path in (tmp_path / "none.json", tmp_path):
    with pytest.raises(DataError, match="cannot be read") as raised:
      read_squad_examples(str(path), False)
    assert str(path) in str(raised.value)


def test_the_same_id_twice_trains_and_is_told(tmp_path, caplog):
  path = write_squad(tmp_path, question(), question())
  assert len(read_squad_examples(path, True)) == 2
  assert "1 of 2 questions have the id of an earlier question" in caplog.text


JSON = st.recursive(
  st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
  lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
  max_leaves=5,
)


def places(value, path=()):
  """The way to every value within a JSON document."""
  items = value.items() if isinstance(value, dict) else enumerate(value)
  for key, inner in items:
    yield (*path, key)
    if isinstance(inner, dict | list):
      yield from places(inner, (*path, key))


@settings(max_examples=300, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_whatever_is_changed_in_a_file_the_error_is_about_data(
  tmp_path_factory, data, is_training, version_2
):
  document = json.loads(paragraph(question(is_impossible=False), question("q2", answers=())))
  *way, last = data.draw(st.sampled_from(list(places(document))))
  place = functools.reduce(lambda value, key: value[key], way, document)
  if data.draw(st.booleans()):
    del place[last]
  else:
    place[last] = data.draw(JSON)
  path = tmp_path_factory.getbasetemp() / "any.json"
  path.write_text(json.dumps(document))
  with contextlib.suppress(DataError):
    for example in read_squad_examples(path, is_training, version_2):
      assert example.doc_tokens
      assert isinstance(repr(example), str)


def test_an_answer_at_word_0_is_shown():
  example = SquadExample("q", "Who?", ["Ann", "."], "Ann", 0, 0)
  assert repr(example) == (
    "qas_id: q, question_text: Who?, doc_tokens: [Ann .], start_position: 0, end_position: 0"
  )


# ---------------------------------------------------------------------------------------------
# Windows.


def test_windows_of_a_long_paragraph(tokenizer):
  words = ["the", "man", "went", "to", "the", "store", "."]
  example = SquadExample("q", "the store ?", words, "the store.", 4, 6)
  # 5 pieces of the paragraph fit beside 3 special ones and 2 of the question.
  first, second = features_of([example], tokenizer, (10, 2, 2), is_training=True)
  assert first.tokens == ["[CLS]", "the", "store", "[SEP]", *words[:5], "[SEP]"]
  assert second.tokens == ["[CLS]", "the", "store", "[SEP]", *words[2:], "[SEP]"]
  assert [f.unique_id for f in (first, second)] == [1000000000, 1000000001]
  assert [f.doc_span_index for f in (first, second)] == [0, 1]
  assert first.segment_ids == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
  assert dict(second.token_to_orig_map) == {4: 2, 5: 3, 6: 4, 7: 5, 8: 6}
  assert dict(first.token_is_max_context) == {4: True, 5: True, 6: True, 7: True, 8: False}
  assert (first.start_position, first.end_position) == (0, 0), "not wholly in this window"
  assert (second.start_position, second.end_position) == (6, 8)


def test_short_windows_are_padded(tokenizer):
  [feature] = features_of([SquadExample("q", "to", ["store"])], tokenizer, (8, 4, 2))
  assert feature.tokens == ["[CLS]", "to", "[SEP]", "store", "[SEP]"]
  assert feature.input_ids[:5] == tokenizer.convert_tokens_to_ids(feature.tokens)
  assert feature.input_ids[5:] == feature.input_mask[5:] == feature.segment_ids[5:] == [0, 0, 0]
  assert feature.input_mask[:5] == [1] * 5
  assert feature.start_position is feature.end_position is None


def test_answers_are_narrowed_to_their_pieces(tokenizer):
  words = ["the", "japanese", "man", "(1895-1943)."]
  for answer, start, end, tokens in (
    ("1895", 3, 3, ["1", "##8", "##9", "##5"]),
    ("1895-1943", 3, 3, ["1", "##8", "##9", "##5", "-", "1", "##9", "##4", "##3"]),
    ("Japan", 1, 1, ["japanese"]),
    ("the Japanese", 0, 1, ["the", "japanese"]),
  ):
    example = SquadExample("q", "to", words, answer, start, end)
    [feature] = features_of([example], tokenizer, (32, 16, 4), is_training=True)
    assert feature.tokens[feature.start_position : feature.end_position + 1] == tokens


@given(st.data())
def test_the_narrowed_span_is_the_first_whose_text_is_the_answers(data):
  pieces = data.draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=8))
  start = data.draw(st.integers(0, len(pieces) - 1))
  end = data.draw(st.integers(start, len(pieces) - 1))
  answer = "".join(data.draw(st.lists(st.sampled_from("ab"), max_size=4)))

  class Letters:
    def tokenize(self, text):
      return list(text)

  spans = [(i, j) for i in range(start, end + 1) for j in range(end, i - 1, -1)]
  matching = (s for s in spans if "".join(pieces[s[0] : s[1] + 1]) == answer)
  expected = next(matching, (start, end))
  assert squad._improve_answer_span(pieces, start, end, Letters(), answer) == expected


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 25))
def test_context_of_all_pieces_at_once(num_pieces, max_length, doc_stride):
  spans = squad_features._doc_spans(num_pieces, max_length, doc_stride)
  flags = squad_features._max_context_flags(spans, num_pieces)
  owners = np.zeros(num_pieces, int)
  for index, span in enumerate(spans):
    for offset in range(span.length):
      position = span.start + offset
      expected = squad._check_is_max_context(spans, index, position)
      assert bool(flags[index][offset]) == expected
      owners[position] += expected
  covered = sorted({span.start + i for span in spans for i in range(span.length)})
  if doc_stride <= max_length:
    assert covered == list(range(num_pieces)), "a stride within the window leaves no gap"
  assert (owners[covered] == 1).all(), "each piece belongs to one window"


def test_lengths_without_room(tokenizer):
  examples = [SquadExample("q", "to", ["store"])]
  with pytest.raises(
    ValueError, match=r"max_seq_length \(67\) must be greater than .* \(64\) \+ 3"
  ):
    features_of(examples, tokenizer, (67, 16, 64))
  with pytest.raises(ValueError, match="doc_stride is 0"):
    features_of(examples, tokenizer, (68, 0, 64))
  assert len(features_of(examples, tokenizer, (68, 1, 64))) == 1


def test_the_first_20_examples_are_logged(tokenizer, caplog):
  examples = [SquadExample(str(i), "to", ["store"], "store", 0, 0) for i in range(22)]
  with caplog.at_level("INFO", logger="absl"):
    features_of(examples, tokenizer, (8, 4, 2), is_training=True)
  assert caplog.messages.count("*** Example ***") == 20
  assert "token_is_max_context: 3:True" in caplog.messages
  assert "answer: store" in caplog.messages


def test_a_window_map_reads_like_a_dict():
  flags = WindowMap(3, b"\1\0", bool)
  assert flags == {3: True, 4: False}
  assert (flags[3], flags.get(2, False), 5 in flags, len(flags)) == (True, False, False, 2)
  for position in (2, 5, -1):
    with pytest.raises(KeyError):
      flags[position]


# ---------------------------------------------------------------------------------------------
# Answers.


def window(words, unique_id=1, first=2, example_index=0, max_context=None) -> InputFeatures:
  """A window over words of one piece each: [CLS] [SEP] words [SEP]."""
  tokens = ["[CLS]", "[SEP]", *(word.lower() for word in words), "[SEP]"]
  positions = range(first, first + len(words))
  return InputFeatures(
    unique_id=unique_id,
    example_index=example_index,
    doc_span_index=0,
    tokens=tokens,
    token_to_orig_map={p: p - first for p in positions},
    token_is_max_context=max_context or dict.fromkeys(positions, True),
    input_ids=None,
    input_mask=None,
    segment_ids=None,
  )


def logits(size, values) -> list[float]:
  """Logits of -10 but where `values` tells."""
  return [values.get(i, -10.0) for i in range(size)]


WORDS = ["Ann", "met", "Bob", "in", "Rome"]


def answer_of(start, end, n_best_size=20, length=30, max_context=None, **more):
  example = SquadExample("q", "Who?", WORDS)
  feature = window(WORDS, max_context=max_context)
  result = Result(1, logits(10, start), logits(10, end))
  return squad_answers.find_answers(
    example,
    [feature],
    {1: result},
    n_best_size,
    length,
    True,
    **more,
  )


def test_the_best_span_is_the_answer():
  found = answer_of({2: 1.0, 4: 3.0}, {2: 1.0, 6: 2.0})
  assert found.prediction.text == "Bob in Rome"
  assert (found.prediction.start_logit, found.prediction.end_logit) == (3.0, 2.0)
  assert found.nbest[0] == found.prediction
  assert sum(found.probabilities) == pytest.approx(1.0)
  assert found.null_odds is None


def test_spans_that_make_no_sense_are_none():
  """Beginning behind the end, in the question, in padding, too long."""
  assert answer_of({6: 5.0, 2: 1.0}, {2: 5.0}).prediction.text == "Ann"
  assert answer_of({1: 9.0, 2: 1.0}, {1: 9.0, 2: 5.0}).prediction.text == "Ann"
  assert answer_of({2: 1.0, 8: 9.0}, {2: 5.0, 9: 9.0}).prediction.text == "Ann"
  assert answer_of({2: 5.0}, {6: 5.0, 3: 1.0}, length=4).prediction.text == "Ann met"
  assert answer_of({2: 5.0}, {6: 5.0, 3: 1.0}, length=5).prediction.text == " ".join(WORDS)


def test_only_the_window_with_most_context_answers():
  context = {2: False, 3: True, 4: True, 5: True, 6: True}
  assert answer_of({2: 9.0, 3: 1.0}, {3: 5.0}, max_context=context).prediction.text == "met"


def test_padding_takes_places_among_the_best():
  """With room for one beginning, and that in padding, there is no answer: so it is in 2018."""
  found = answer_of({9: 9.0, 2: 5.0}, {2: 5.0}, n_best_size=1)
  assert found.prediction.text == "empty"
  assert found.probabilities == [1.0]


def test_no_answer_where_its_odds_exceed_the_threshold():
  start, end = {0: 1.0, 2: 1.0}, {0: 2.0, 2: 1.5}
  for threshold, text in ((0.0, ""), (0.4, ""), (0.5, "Ann"), (1.0, "Ann")):
    found = answer_of(start, end, version_2_with_negative=True, null_score_diff_threshold=threshold)
    assert found.null_odds == 0.5
    assert found.prediction.text == text
    assert found.best_answer.text == "Ann"
    assert found.nbest[0].text == "", "the list does not depend on the threshold"
    assert found.probability == found.probabilities[0 if text == "" else 1]


def test_the_null_answer_is_listed_though_it_is_not_among_the_best():
  found = answer_of(
    {0: -9.0, 2: 1.0}, {2: 1.0, 3: 0.5}, n_best_size=2, version_2_with_negative=True
  )
  assert [answer.text for answer in found.nbest] == ["Ann", "Ann met", ""]


def test_the_null_score_is_the_least_of_all_windows():
  features = [window(WORDS, 1), window(WORDS, 2)]
  results = {
    1: Result(1, logits(8, {0: 5.0, 2: 1.0}), logits(8, {0: 5.0, 2: 1.0})),
    2: Result(2, logits(8, {0: -1.0}), logits(8, {0: -2.0})),
  }
  found = squad_answers.find_answers(
    SquadExample("q", "Who?", WORDS), features, results, 20, 30, True, version_2_with_negative=True
  )
  assert found.null_odds == -3.0 - 2.0
  assert found.prediction.text == "Ann"


@pytest.mark.parametrize("features", [[window(WORDS)], []])
def test_without_any_span_there_is_no_answer_and_no_crash(features, tmp_path):
  """In the original the first ended in an AttributeError, the second in an IndexError."""
  results = [Result(1, logits(10, {9: 9.0, 0: 1.0}), logits(10, {0: 1.0}))]
  paths = [tmp_path / name for name in ("p.json", "n.json", "o.json")]
  for threshold in (0.0, 100.0):
    [found] = squad.write_predictions(
      [SquadExample("q", "Who?", WORDS)],
      features,
      results,
      1,
      30,
      True,
      *paths,
      version_2_with_negative=True,
      null_score_diff_threshold=threshold,
      output_detailed_file=tmp_path / "d.jsonl",
    )
    assert found.best_answer is None
    predictions, nbest, odds = (json.loads(path.read_text()) for path in paths)
    assert predictions == {"q": ""}
    assert [entry["text"] for entry in nbest["q"]] == [""]
    assert math.isfinite(odds["q"])
    assert odds["q"] > 1e5
    detail = json.loads((tmp_path / "d.jsonl").read_text())
    assert (detail["start"], detail["end"], detail["probability"]) == (None, None, 1.0)


def test_of_equal_scores_the_first_is_best():
  logits_of_window = np.tile([1.0, 3.0, 2.0], 128)
  expected = sorted(range(384), key=lambda i: -logits_of_window[i])
  assert squad._get_best_indexes(logits_of_window, 200) == expected[:200]


def test_a_window_without_result_is_told():
  with pytest.raises(ValueError, match="no result for the window with unique_id 1"):
    squad_answers.find_answers(SquadExample("q", "?", WORDS), [window(WORDS)], {}, 20, 30, True)


def test_the_same_text_is_listed_once():
  words = ["Rome", "Rome"]
  example, feature = SquadExample("q", "?", words), window(words)
  result = Result(1, logits(6, {2: 1.0, 3: 2.0}), logits(6, {2: 1.0, 3: 2.0}))
  found = squad_answers.find_answers(example, [feature], {1: result}, 20, 30, True)
  assert [answer.text for answer in found.nbest] == ["Rome", "Rome Rome"]
  assert found.nbest[0].first_word == 1


@pytest.mark.parametrize(
  ("pred_text", "orig_text", "expected"),
  [
    ("steve smith", "Steve Smith's", "Steve Smith"),
    ("steve smith", "(Steve  Smith),", "Steve  Smith"),
    ("steve  smith", "(Steve Smith),", "(Steve Smith),"),  # nowhere with two spaces
    ("1895 - 1943", "(1895-1943).", "1895-1943"),
    ("resume", "Résumé,", "Résumé"),
    ("nothing", "Steve Smith's", "Steve Smith's"),
    ("", "Steve", "Steve"),
    ("i", "İstanbul", "İ"),
    ("a", "a\u0001b c", "a\u0001b c"),  # a dropped character: lengths differ
    ("smith", "Smith\ufffds Smith", "Smith\ufffds Smith"),
  ],
)
def test_final_text(pred_text, orig_text, expected):
  assert squad.get_final_text(pred_text, orig_text, do_lower_case=True) == expected


def test_final_text_keeps_case_for_cased_models():
  assert squad.get_final_text("Smith", "Smith's", do_lower_case=False) == "Smith"
  assert squad.get_final_text("smith", "Smith's", do_lower_case=False) == "Smith's"


def test_a_failure_to_align_is_logged_on_request(caplog):
  with caplog.at_level("INFO", logger="absl"):
    squad.get_final_text("x", "y", True)
    assert caplog.messages == []
    squad.get_final_text("x", "y", True, verbose_logging=True)
    squad.get_final_text("a", "a\u0001", True, verbose_logging=True)
  assert caplog.messages[0] == "Unable to find text: 'x' in 'y'"
  assert caplog.messages[1].startswith("Length not equal after stripping spaces")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.booleans())
def test_words_are_tokenized_as_the_whole_text(text, do_lower_case):
  """What a cache of words rests on."""
  whole = BasicTokenizer(do_lower_case).tokenize(text)
  by_word = [
    token for word in text.split(" ") for token in squad_answers._tokenize_word(word, do_lower_case)
  ]
  assert by_word == whole


def test_characters_in_the_context():
  context = "  Ann  (met\nBob's) dog"
  words, starts = squad.split_words(context)
  example = SquadExample("q", "?", words, word_starts=starts)
  joined = " ".join(words)
  for text in ("Ann (met Bob", "met Bob's", "Bob", "dog", "Ann"):
    answer = squad_answers.Answer(text, 0.0, 0.0, 0, joined.index(text), 0)
    start, end = squad_answers.context_span(example, answer)
    assert context[start:end].split() == text.split()
  assert squad_answers.context_span(example, squad_answers.Answer("", 0.0, 0.0)) is None


def test_one_object_a_line_whatever_the_text(tmp_path):
  words = ["a\u2028b", "c\x85d\u2029"]
  example = SquadExample("q", "?", words, word_starts=[0, 4])
  result = Result(1, logits(6, {2: 1.0}), logits(6, {3: 1.0}))
  names = ("p.json", "n.json", "o.json")
  squad.write_predictions(
    *([example], [window(words)], [result], 20, 30, False),
    *(tmp_path / name for name in names),
    output_detailed_file=tmp_path / "d.jsonl",
  )
  [line] = (tmp_path / "d.jsonl").read_text(encoding="utf-8").splitlines()
  assert json.loads(line)["text"] == " ".join(words)
  assert not (tmp_path / "o.json").exists()


# ---------------------------------------------------------------------------------------------
# Official scores. The expected figures are worked out by hand from the rules.


def test_normalized_answers():
  assert squad_scores.normalize_answer("The  Theatre, a-b: AN (apple)!") == "theatre ab apple"
  assert squad_scores.normalize_answer("the a an") == ""


def test_scores_of_1_1():
  answers = {"q1": ["in 1997", "1997"], "q2": ["white house"], "q3": ["x"], "q4": ["the"]}
  predictions = {"q1": "The 1997.", "q2": "big white barn", "q4": ""}
  found = squad_scores.evaluate_v1(answers, predictions)
  # q1: exact. q2: one word of 3 and of 2, so F1 is 2 * 1/3 * 1/2 / (1/3 + 1/2) = 0.4. q3: missing.
  # q4: both normalize to nothing, which is the same text but has no word in common.
  assert found["exact_match"] == pytest.approx(100 * 2 / 4)
  assert found["f1"] == pytest.approx(100 * 1.4 / 4)


def test_scores_of_2_0():
  answers = {"q1": ["1997"], "q2": [], "q3": [], "q4": ["a b", "a"], "q5": ["x"]}
  predictions = {"q1": "1997", "q2": "", "q3": "y", "q4": ""}
  found = squad_scores.evaluate_v2(answers, predictions)
  assert found == {
    "exact": 50.0,  # q1, q2 of q1 to q4; q4: of its two answers "a" is an article, "a b" remains
    "f1": 50.0,
    "total": 4,
    "HasAns_exact": 50.0,
    "HasAns_f1": 50.0,
    "HasAns_total": 2,
    "NoAns_exact": 50.0,
    "NoAns_f1": 50.0,
    "NoAns_total": 2,
  }
  assert "NoAns_total" not in squad_scores.evaluate_v2({"q": ["a b"]}, {"q": "b"})


def test_the_best_threshold():
  answers = {"q1": ["x"], "q2": ["y"], "q3": [], "q4": ["z"]}
  best_answers = {"q1": "x", "q2": "y", "q3": "w", "q4": "wrong"}
  null_odds = {"q1": -5.0, "q2": 1.0, "q3": 2.0, "q4": 3.0}
  # Without any answer 1 of 4 is right; up to 1.0, q1, q2 and the unanswered q3 are: 3 of 4.
  predictions = {"q1": "x", "q2": "", "q3": "", "q4": ""}  # as with the threshold 0
  found = squad_scores.evaluate_v2(answers, predictions, null_odds, best_answers)
  assert (found["best_exact"], found["best_exact_thresh"]) == (75.0, 1.0)
  assert (found["best_f1"], found["best_f1_thresh"]) == (75.0, 1.0)
  assert found["exact"] == 50.0
  official = squad_scores.evaluate_v2(answers, predictions, null_odds)
  assert (official["best_exact"], official["best_exact_thresh"]) == (50.0, -5.0)


def test_an_unanswered_question_without_answer_is_right_at_every_threshold():
  null_odds, scores = {"no": -9.0, "yes": -5.0}, {"no": 1.0, "yes": 1.0}
  found = squad_scores.find_best_threshold(
    {"no": [], "yes": ["x"]}, {"no": "", "yes": "x"}, scores, null_odds
  )
  assert found == (100.0, -5.0)


@given(st.data())
def test_the_best_threshold_reaches_its_score_and_no_other_more(data):
  size = data.draw(st.integers(1, 6))
  answers = {i: data.draw(st.sampled_from([[], ["x"]])) for i in range(size)}
  best_answers = {i: data.draw(st.sampled_from(["x", "y"])) for i in range(size)}
  odds = data.draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size, unique=True))
  null_odds = dict(enumerate(odds))

  def score_at(threshold):
    predictions = {i: best_answers[i] if null_odds[i] <= threshold else "" for i in answers}
    return squad_scores.evaluate_v2(answers, predictions)["exact"]

  found = squad_scores.evaluate_v2(answers, best_answers, null_odds)
  best = max(score_at(threshold) for threshold in [-99, *odds])
  assert found["best_exact"] == pytest.approx(best)
  if best > score_at(-99):
    assert score_at(found["best_exact_thresh"]) == pytest.approx(best)


# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [squad, squad_answers, squad_features, squad_scores])
def test_doctests(module):
  results = doctest.testmod(module)
  assert results.failed == 0
  assert results.attempted > 1


def test_no_tensorflow():
  code = (
    "import sys; from bert.tasks import squad, squad_scores; print('tensorflow' in sys.modules)"
  )
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
  assert done.stdout == "False\n", done.stderr
