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
  assert f"{path}: 3 of 5 questions were skipped" in caplog.text
  assert "1 of 5 questions have an answer without text: if the paragraph" in caplog.text
  assert len(read_squad_examples(path, False)) == 5


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


@settings(max_examples=80, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_whatever_is_changed_in_a_file_the_error_is_about_data(
  tmp_path_factory, data, is_training, version_2
):
  nested = json.loads(paragraph(question(is_impossible=False), question("q2", answers=())))
  document = data.draw(st.sampled_from([nested, [row(), row("q2", ())]]))
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


def row(qid="q1", answers=("1895",), **more) -> dict:
  """A question as `datasets` writes it."""
  columns = {"text": list(answers), "answer_start": [CONTEXT.find(text) for text in answers]}
  return {
    "id": qid,
    "title": "t",
    "context": CONTEXT,
    "question": "When?",
    "answers": columns,
    **more,
  }


def write_rows(folder, *rows, name="train.jsonl", start=""):
  path = folder / name
  path.write_text(start + "".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
  return path


def seen(examples):
  names = ("qas_id", "orig_answer_text", "start_position", "is_impossible", "answers")
  return [tuple(getattr(example, name) for name in names) for example in examples]


FORMS = {
  "lines": (lambda rows: "\n".join(map(json.dumps, rows)), "\n"),
  "a byte order mark and CRLF": (lambda rows: "\r\n\r\n".join(map(json.dumps, rows)), "\ufeff"),
  "a list": (json.dumps, ""),
  "data": (lambda rows: json.dumps({"data": rows}), ""),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version_2", [False, True])
def test_rows_of_datasets_are_read_as_squads_form(tmp_path, form, version_2):
  rows = [row(), row("q2", ("1943", "1895")), row("q3", ("man",))]
  qas = [question(), question("q2", answers=("1943", "1895")), question("q3", answers=("man",))]
  if version_2:
    rows.append(row("q4", ()))
    qas = [qa | {"is_impossible": False} for qa in qas]
    qas.append(question("q4", answers=(), is_impossible=True))
  written, start = FORMS[form]
  path = tmp_path / "rows.jsonl"
  path.write_text(start + written(rows), encoding="utf-8")
  nested = write_squad(tmp_path, *qas)
  for is_training in (True, False):
    examples = read_squad_examples(path, is_training, version_2)
    assert seen(examples) == seen(read_squad_examples(nested, is_training, version_2))
    assert len({id(example.doc_tokens) for example in examples}) == 1, "shared"


def test_forms_of_answers_in_a_row(tmp_path):
  rows = [
    row(answers=[], title=None) | {"answers": {"text": "1895", "answer_start": 18}},
    row("q2") | {"answers": [{"text": "1895", "answer_start": 18}]},
    row("q3") | {"answers": []},
    row("q4") | {"answers": {"text": [""], "answer_start": [-1]}},
    row("q5") | {"answers": {"text": None, "answer_start": None}},
  ]
  found = read_squad_examples(write_rows(tmp_path, *rows), True, True)
  assert [each.orig_answer_text for each in found] == ["1895", "1895", "", "", ""]
  assert [each.is_impossible for each in found] == [False, False, True, True, True]
  without = {key: value for key, value in row("q6").items() if key != "answers"}
  unknown = write_rows(tmp_path, *rows, row("q7", answers=()) | {"answers": None}, without)
  found = read_squad_examples(unknown, False, True)
  assert [each.answers for each in found] == [["1895"], ["1895"], [], [], [], None, None]
  with pytest.raises(DataError, match="question 'q7': training needs an answer to each question"):
    read_squad_examples(unknown, True, True)


def test_rows_of_a_test_set_whose_answers_are_hidden(tmp_path, caplog):
  path = write_rows(tmp_path, row(answers=()), row("q2", ()))
  assert [each.answers for each in read_squad_examples(path, False, True)] == [None, None]
  assert f"{path}: all lists of answers are empty" in caplog.text
  assert [each.is_impossible for each in read_squad_examples(path, True, True)] == [True, True]


@pytest.mark.parametrize(
  ("content", "message"),
  [
    (json.dumps(row()) + '\n{"id": "q2"', r"line 2: the line is not JSON \(.*, character 12\)"),
    (json.dumps(row()) + '\n{"id": "q2"}', r"line 2: 'data' is missing; found id\. .*JSON Lines"),
    (json.dumps(row()) + "\n7", "line 2 is 7, not an object"),
    ('{\n"data": []\n}\n{\n}', r"line 4: the file is not JSON \(Extra data\)"),
    (json.dumps(row(answers=())), "Use --version_2_with_negative"),
    (json.dumps({**row(), "id": None}), "the file: 'id' is null"),
    (
      json.dumps(row() | {"answers": {"text": ["a", "b"], "answer_start": [1]}}),
      r"'answers' has 2 text\(s\) and 1 answer_start\(s\)",
    ),
    (json.dumps(row() | {"answers": {"text": ["1895"]}}), r"1 text\(s\) and 0 answer_start\(s\)"),
  ],
)
def test_faults_in_rows(tmp_path, content, message):
  path = tmp_path / "train.jsonl"
  path.write_text(content)
  with pytest.raises(DataError, match=message):
    read_squad_examples(path, True)


def test_an_answer_without_text_is_none(tmp_path, caplog):
  """As Haystack's annotation tool writes it."""
  answer = {"text": " ", "answer_start": 0, "answer_category": "NOT_GIVEN"}
  given = question("q3", is_impossible=False)
  given["answers"].insert(0, answer)
  qas = (
    question(is_impossible=False),
    question("q2", answers=None, is_impossible=False) | {"answers": [answer]},
    given,
  )
  path = write_squad(tmp_path, *qas)
  found = read_squad_examples(path, True, True)
  assert [each.is_impossible for each in found] == [False, True, False]
  assert [each.orig_answer_text for each in found] == ["1895", "", "1895"]
  assert f"{path}: 1 of 3 questions have an answer without text: they count as" in caplog.text
  assert [e.answers for e in read_squad_examples(path, False, True)] == [["1895"], [], ["1895"]]
  assert len(read_squad_examples(path, True)) == 2
  with pytest.raises(DataError, match=r"all its questions have an answer without text: .* use --v"):
    read_squad_examples(write_squad(tmp_path, qas[1]), True)
