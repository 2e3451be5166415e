"""Files of another kind than the one that is asked for, as people really give them.

A wrong download, another program's export, a notation of another library. Each is refused as
tests/kit/bad_inputs.py says. Damaged files are in bad_inputs_test.py, spreadsheets' and pandas'
tables in bad_tables_test.py, weights in bad_weights_test.py and bad_older_weights_test.py.
"""

import bz2
import json
import os

import pytest

from bert import create_vocab, tokenization
from bert.io import text_lines
from bert.model.configuration import BertConfig
from bert.tasks import conll_files, glue, multiple_choice, squad, user_tables
from tests.kit import tiny_bert
from tests.kit.bad_inputs import Family, case, check, loading, message_of, rows_of, starting

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"
PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_ROWS = "text_a,label\n" + "a film,pos\nanother,neg\n" * 6
_TEXT = "one two three\n" * 50


def _lines(*objects) -> str:
  return "".join(json.dumps(each) + "\n" for each in objects)


def _own(file, *cases, **options):
  def read(folder):
    processor = user_tables.CsvProcessor(str(folder), **options)
    return processor.get_labels() and processor.get_train_examples(str(folder))

  return Family(file, file, loading(read), cases)


TABLES = [
  _own(
    "train.csv",
    case("bzip2", bz2.compress(_ROWS.encode()), "is compressed with bzip2", "bunzip2"),
    case("PDF", PDF, "is a PDF", "Save its text as UTF-8"),
    case("UTF-16 without its mark", _ROWS.encode("utf-16-le"), "is UTF-16", "as UTF-8"),
    case("UTF-32", _ROWS.encode("utf-32"), "is UTF-32", "as UTF-8"),
    case("a list of JSON", '[{"text_a": "x", "label": "a"},\n{"text_a": "y"}]\n', "holds JSON"),
    case("lines of JSON", _lines({"text_a": "x", "label": "a"}), "holds JSON", "Name it *.jsonl"),
    case("YAML", "- text_a: x\n  label: a\n", "line 1", "not in the header, which has - text_a"),
    case("a merge by git", "text_a,label\n<<<<<<< HEAD\na,pos\n", "line 2", "'<<<<<<< HEAD'"),
    case("a remark above", "# made by x\n" + _ROWS, "line 1", "which has # made by x"),
    case("two files in one", _ROWS + _ROWS, "line 14", "the names of the columns once more"),
    case("padding of zeros", _ROWS.encode() + b"\0" * 99, "line 14", "NUL byte"),
  ),
  _own(
    "train.jsonl",
    case("a comma behind", '{"text_a": "x", "label": "a"},\n', "Extra data, character 30"),
    case("Python's", "{'text_a': 'x', 'label': 'a'}\n", "line 1", "Python's way", "json.dumps"),
    case("a table", _ROWS, "line 1", "not JSON", "'text_a,label'"),
    case("a remark", '// made by x\n{"text_a": "x"}\n', "line 1", "'// made by x'"),
    case("texts of JSON", '"{\\"text_a\\": \\"x\\"}"\n', "line 1", "not a JSON object"),
    case("columns", _lines({"text_a": ["x"], "label": ["a"]}), "line 1", "['a'] cannot be"),
  ),
  _own(
    "train.csv",
    case("stars", "text_a,label\nx,★★★\n", "line 2", "'★★★' is not a finite number"),
    problem_type="regression",
  ),
]


def _glue(task, *cases):
  read = loading(lambda folder: glue.create_processor(task).get_train_examples(str(folder)))
  return Family(task, "train.tsv", read, cases)


GLUE = [
  _glue(
    "sst-2",
    case("lines of JSON", _lines({"sentence": "x", "label": 1}), "JSON", "the task's name"),
    case("floats", "sentence\tlabel\nFine.\t1.0\n", "line 2", "Did you mean '1'?"),
    case("of the datasets library", "sentence\tlabel\nFine.\t-1\n", "line 2", "'-1' is unknown"),
  ),
  _glue(
    "mrpc", case("commas", "Quality,a,b,c,d\n1,1,2,x,y\n", "line 2", "1 column(s): '1,1,2,x,y'")
  ),
  _glue("cola", case("a header", "source\tgood\tmark\tsentence\n", "line 1", "'good' is unknown")),
]

_PARAGRAPH = {"context": "Built in 1887.", "qas": []}
_ANSWER = {"text": "1887", "answer_start": 9}
_ROW = {"id": "1", "context": "Built in 1887.", "question": "When?", "answers": {"text": ["1887"]}}


def _squad(**question) -> str:
  qas = [{"id": "q1", "question": "When?", "answers": [_ANSWER], **question}]
  return json.dumps({"data": [{"paragraphs": [{**_PARAGRAPH, "qas": qas}]}]})


_FORM = 'SQuAD\'s form is {"data": [{"paragraphs"'
_LIST = 'Its form is "answers": [{"text"'
QUESTIONS = Family(
  "questions",
  "train.json",
  loading(lambda folder: squad.read_squad_examples(folder / "train.json", is_training=True)),
  [
    case("rows without places", _lines(_ROW, _ROW), "line 1", "0 answer_start(s)"),
    case("a list of such rows", json.dumps([_ROW]), "[0]: 'answers' has", "0 answer_start(s)"),
    case("such rows as data", json.dumps({"data": [_ROW]}), "data[0]: 'answers' has"),
    case("answers of a model", json.dumps({"q1": "1887"}), "found q1", _FORM),
    case("a table", "id,context,question\n1,a,b\n", "line 1", "not JSON", _FORM),
    case("Python's", str({"data": []}), "line 1", "double quotes", _FORM),
    case("lists of answers", _squad(answers={"text": ["1887"]}), "'q1'", _LIST),
    case("an answer alone", _squad(answers=_ANSWER), "'q1'", "not a list", _LIST),
    case("a list of places", _squad(answers=[{**_ANSWER, "answer_start": [9]}]), "is [9]", _LIST),
    case("a pointer of git-lfs", "version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    case("a web page", "<html></html>", "is a web page", "Download the file itself"),
    case("a zip", b"PK\x03\x04\x14\0\0\0\x08\0", "zip archive", "Unpack it"),
    case("UTF-16", _squad().encode("utf-16"), "is UTF-16", "as UTF-8"),
    case("PDF", PDF, "is a PDF"),
  ],
)

ENTITIES = Family(
  "entities",
  "train.conll",
  loading(lambda folder: conll_files.read_conll(folder / "train.conll")),
  [
    case("a zero for O", "EU B-ORG\nrejects 0\n", "line 2", "which has O, B-TYPE"),
    case("the label before", "B-ORG EU\n", "line 1", "'EU' is not in the scheme", "--label_column"),
    case("another scheme", "EU U-ORG\n", "line 1", "fit --label_scheme=bilou"),
    case("slashes", "EU/B-ORG rejects/O\n", "line 1", "'rejects/O' is not in the scheme"),
    case("lines of JSON", _lines({"tokens": ["EU"], "tags": [3]}), "line 1", "this is JSON"),
    case("a header", "token label\nEU B-ORG\n", "line 1", "'label' is not in the scheme"),
    case("sentences", "EU rejects German call\n", "line 1", "'call' is not in the scheme"),
    case("PDF", PDF, "is a PDF"),
  ],
)


def _swag(file, *cases):
  read = loading(lambda folder: multiple_choice.read_swag_examples(folder / file))
  return Family(file, file, read, cases)


CHOICES = [
  _swag(
    "swag.csv",
    case("other names", "question,choice_a,answer\na,b,0\n", "The header has question, choice_a"),
  ),
  _swag(
    "swag.jsonl",
    case("RACE", _lines({"article": "x", "options": [["a"]]}), "The header has article, options"),
    case("endings as a list", _lines({"sent1": "x", "endings": ["a"], "label": 0}), "ending0 and"),
    case("a list", '[{"sent1": "x"}]\n', "line 1", "on one line"),
  ),
]


def _use_vocabulary(folder):
  tokenizer = tokenization.FullTokenizer(folder / "vocab.txt")
  return tokenizer.encode_batch(["a zzz"], max_seq_length=8)


_ONE_TOKEN = "each line holds one token and nothing else"
VOCABULARIES = Family(
  "vocabulary",
  "vocab.txt",
  loading(_use_vocabulary),
  [
    case("counts", "[PAD]\t0\n[UNK]\t0\nthe\t22038615\n", "'[PAD]\\t0'", _ONE_TOKEN),
    case("numbers", "0 [PAD]\n1 [UNK]\n2 [CLS]\n", "'0 [PAD]'", _ONE_TOKEN),
    case("one line", "[PAD] [UNK] [CLS] [SEP] a\n", "1 entries", _ONE_TOKEN),
    case("small letters", "[pad]\n[unk]\n[cls]\n[sep]\n", "'[pad]'", "add this one"),
    case("merges.txt", "#version: 0.2\nĠ t\nĠ a\n", "'#version: 0.2'", _ONE_TOKEN),
    case("a picture", PICTURE, "UTF-8"),
  ],
)

_SIZES = tiny_bert.sizes(12, 8, 1, 8, 32)
_NO_MODEL = "Is it the configuration of a model? Its keys: "
CONFIGS = Family(
  "configuration",
  "bert_config.json",
  loading(lambda folder: BertConfig.from_json_file(folder / "bert_config.json")),
  [
    case("a tokenizer's", '{"do_lower_case": true}', f"{_NO_MODEL}do_lower_case."),
    case("an index of weights", '{"metadata": {}, "weight_map": {}}', "metadata, weight_map."),
    case("one within", json.dumps({"model": _SIZES}), f"{_NO_MODEL}model."),
    case("an adapter's", '{"peft_type": "LORA", "r": 8}', f"{_NO_MODEL}peft_type, r."),
    case("Keras's", '{"class_name": "Functional", "config": {}}', f"{_NO_MODEL}class_name, config"),
    case("modules", '[{"idx": 0, "name": "0"}]', "a JSON object is needed, not list"),
    case("another family", '{"model_type": "gpt2", "n_embd": 8}', "model_type is 'gpt2'"),
    case("YAML", "vocab_size: 12\n", "not valid JSON", "line 1 column 1"),
    case("Python's", str(_SIZES), "not valid JSON", "double quotes"),
    case("a comma at the end", json.dumps(_SIZES)[:-1] + ",}", "not valid JSON"),
    case("a remark", "// BERT\n" + json.dumps(_SIZES), "not valid JSON"),
    case("PDF", PDF, "is a PDF"),
  ],
)

CORPUS = Family(
  "corpus",
  "text.txt",
  starting(create_vocab, input_file="{}/text.txt", output_file="{}/out/vocab.txt"),
  [
    case("bzip2", bz2.compress(_TEXT.encode()), "is compressed with bzip2", "bunzip2"),
    case("Word's", b"PK\x03\x04\x14\0\0\0\x08\0", "a zip archive", "Unpack it"),
    case("PDF", PDF, "is a PDF", "Save its text as UTF-8"),
    case("Parquet", b"PAR1\x15\x04", "is a Parquet file"),
    case("a pointer of git-lfs", "version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    case("UTF-16 without its mark", _TEXT.encode("utf-16-be"), "is UTF-16", "as UTF-8"),
  ],
)

LINES = Family(
  "texts",
  "texts.txt",
  loading(lambda folder: list(text_lines.read_lines(str(folder / "texts.txt")))),
  [
    case("PDF", PDF, "is a PDF", "Save its text as UTF-8"),
    case("a workbook", b"PK\x03\x04\x14\0\0\0\x08\0", "Excel workbook"),
    case("UTF-16", _TEXT.encode("utf-16"), "is UTF-16", "as UTF-8"),
  ],
)

FAMILIES = [
  *TABLES,
  *GLUE,
  QUESTIONS,
  ENTITIES,
  *CHOICES,
  VOCABULARIES,
  CONFIGS,
  CORPUS,
  LINES,
]


# Said before what they lead to, which is looked for here.
@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
@pytest.mark.parametrize(("family", "row"), rows_of(FAMILIES))
def test_a_wrong_file_is_refused(family, row, tmp_path):
  check(family, row, tmp_path)


@pytest.mark.parametrize(
  "family", [*TABLES[:1], QUESTIONS, ENTITIES, VOCABULARIES, CONFIGS, CORPUS]
)
def test_a_pipe_is_refused_where_it_is_read_twice(family, tmp_path):
  """Before, a named pipe that nobody writes to was waited for without a word."""
  for name, content in family.others.items():
    (tmp_path / name).write_bytes(content)
  os.mkfifo(tmp_path / family.file)
  message = message_of(family.run, tmp_path)
  assert family.file in message
  assert "A pipe can be read only once. Write it to a file first" in message


def test_a_link_to_nothing_is_named(tmp_path):
  os.symlink(tmp_path / "nowhere", tmp_path / "train.csv")
  message = message_of(TABLES[0].run, tmp_path)
  assert "The folder holds: train.csv (a link to nothing)." in message
