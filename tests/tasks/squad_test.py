"""SQuAD's files and faults in them."""

import contextlib
import functools
import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.io.tables import DataError
from bert.tasks import squad
from bert.tasks.squad import SquadExample, read_squad_examples

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
  assert f"{path}: 4 of 5 questions were skipped" in caplog.text
  assert len(read_squad_examples(path, False)) == 5


@pytest.mark.mutation("bert.tasks.squad:_find_words", "operand or")
def test_an_answer_before_the_context_is_not_its_last_word():
  assert squad._find_words(squad._Paragraph("Rome", ["Rome"], [0]), "Rome", 0) == (0, 0)
  assert squad._find_words(squad._Paragraph("Rome", ["Rome"], [0]), "Rome", -1) is None


def test_of_several_answers_the_first_is_trained_on(tmp_path, caplog):
  path = write_squad(tmp_path, question(answers=("1943", "1895")), question("q2"))
  first, _ = read_squad_examples(path, True)
  assert first.orig_answer_text == "1943"
  assert first.answers == ["1943", "1895"]
  assert "1 of 2 questions have several answers: the first one is used for training" in caplog.text


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
  "cut short": (b'{"data":\n[{"par', (1, 0), "line 2: the file is not JSON"),
  "empty": (b"", (0, 0), "the file is not JSON"),
  "not UTF-8": (b'{"data": "\xff"}', (0, 0), "byte 10 is not UTF-8"),
  "nested": (b"[" * 200000, (0, 0), "nested too deeply"),
  "a list": (b"[]", (0, 0), "the file is [], not an object {...}."),
  "no data": (b'{"version": "1.1"}', (0, 0), "the file: 'data' is missing; found version."),
  "data is text": (b'{"data": "x"}', (0, 0), "the file: 'data' is \"x\", not a list [...]."),
  "no question": (b'{"data": []}', (0, 0), "the file contains no question"),
  "entry": (as_file({"data": [3]}), (0, 0), "data[0] is 3, not an object {...}."),
  "no paragraphs": (as_file({"data": [{}]}), (0, 0), "data[0]: 'paragraphs' is missing"),
  "no context": (
    as_file({"data": [{"paragraphs": [{"qas": []}]}]}),
    (0, 0),
    "data[0].paragraphs[0]: 'context' is missing; found qas.",
  ),
  "no qas": (
    as_file({"data": [{"paragraphs": [{"context": "a"}]}]}),
    (0, 0),
    "data[0].paragraphs[0]: 'qas' is missing; found context.",
  ),
  "no id": (paragraph({"question": "?"}), (0, 0), "data[0].paragraphs[0].qas[0]: 'id' is missing"),
  "id": (paragraph(question([1])), (0, 0), "'id' is [1], not text."),
  "no question text": (paragraph({"id": "q1"}), (0, 0), "question 'q1': 'question' is missing"),
  "question text": (paragraph(question(text=None)), (0, 0), "'question' is null, not text."),
  "answers": (paragraph(question(answers=None, answer="x")), (1, 0), "this one has none"),
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
    "question 'q1', an answer: 'answer_start' is missing; found text.",
  ),
  "start is text": (
    paragraph({**question(), "answers": [{"text": "1895", "answer_start": "17"}]}),
    (1, 0),
    "'answer_start' is \"17\", not an integer.",
  ),
  "2.0 read as 1.1": (
    paragraph(question(answers=(), is_impossible=True)),
    (1, 0),
    "question 'q1': training needs an answer to each question, and this one has none. It is "
    "marked as impossible: use --version_2_with_negative",
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
    "question 'q7': this id is used by an earlier question.",
  ),
  "same id in the files of answers": (
    paragraph(question(7), question("7")),
    (0, 0),
    "question '7': this id is used by an earlier question.",
  ),
}


@pytest.mark.mutation("bert.tasks.squad:_Reader._load", "except RecursionError", case="nested")
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


def test_all_questions_that_cannot_be_read_are_counted_at_once(tmp_path):
  text = question("q2")
  text["answers"][0]["answer_start"] = "17"
  empty = [question(f"q{number}", answers=()) for number in (3, 4)]
  path = write_squad(tmp_path, question(), text, *empty)
  with pytest.raises(DataError, match="question 'q2', an answer: 'answer_start' is") as raised:
    read_squad_examples(path, True)
  said = "2 other question(s) cannot be read: 2 question 'q3': training needs an answer to each"
  assert said in str(raised.value)
  with pytest.raises(DataError, match="Remove the question, or mark it by"):
    read_squad_examples(write_squad(tmp_path, *empty), True)


def test_an_answer_a_few_characters_beside_its_place_is_counted(tmp_path, caplog):
  beside = question("q2")
  beside["answers"][0]["answer_start"] += 1
  examples = read_squad_examples(write_squad(tmp_path, question(), beside), True)
  assert [each.start_position for each in examples] == [3, 3], "as the original"
  assert "1 of 2 questions have an answer that is not exactly at its answer_start" in caplog.text
