"""Text files that are not as they should be.

Each row of the tables is refused as tests/kit/bad_inputs.py says: code 1, one message with file and
place, nothing written, nothing changed. Binary files: tests/system/bad_weights_test.py. Flags:
tests/system/bad_flags_test.py.
"""

import gzip
import json
from unittest import mock

import pytest

from bert import create_pretraining_data, create_vocab, predict, tokenization
from bert.checkpoints import label_map
from bert.model.configuration import BertConfig
from bert.predicting.processors import name_texts
from bert.tasks import conll_files, glue, multiple_choice, squad, user_tables
from tests.kit import predictors, tiny_bert
from tests.kit.bad_inputs import FOLDER, Family, case, check, loading, rows_of, starting

DEEP = "[" * 100_000  # Python's JSON gives up at about 1,000
DIGITS = "9" * 5000  # more than Python makes a number of
UTF16 = "some text in two bytes a character".encode("utf-16")
LATIN1 = "caf\xe9".encode("latin-1")

# ---------------------------------------------------------------------------------------------
# Models.


def _use_vocabulary(folder):
  tokenizer = tokenization.FullTokenizer(folder / "vocab.txt")
  return tokenizer.encode_batch(["a zzz"], max_seq_length=8)


VOCABULARIES = Family(
  "vocabulary",
  "vocab.txt",
  loading(_use_vocabulary),
  [
    case("missing", None, "Cannot read vocabulary", "No such file"),
    case("a folder", FOLDER, "is a directory"),
    case("empty", b"", "is empty"),
    case("blank lines alone", b"\n \n\t\r\n", "is empty"),
    case("latin-1", b"[UNK]\n[CLS]\n" + LATIN1 + b"\n", "line 3", "0xe9", "UTF-8"),
    case("UTF-16", UTF16, "is UTF-16", "Save it as UTF-8"),
    case("half a surrogate pair", b"[UNK]\n\xed\xa0\x80\n", "line 2", "0xed"),
    case("a compressed file", gzip.compress(b"[UNK]\n", mtime=0), "with gzip", "gunzip"),
    case("cut within a character", b"[UNK]\n\xe5\x8d", "line 2", "0xe5"),
    case("no [CLS]", "[UNK]\n[SEP]\na\n", "'[CLS]' is not in the vocabulary"),
    case("no [SEP]", "[UNK]\n[CLS]\na\n", "'[SEP]' is not in the vocabulary"),
    case("no [UNK] for an unknown word", "[SEP]\n[CLS]\na\n", "'[UNK]' is not in the vocabulary"),
  ],
)

_SIZES = tiny_bert.sizes(12, 8, 1, 8, 32)
CONFIG = json.dumps(_SIZES)


def _config(**changes) -> str:
  return json.dumps({**_SIZES, **changes})


CONFIGS = Family(
  "configuration",
  "bert_config.json",
  loading(lambda folder: BertConfig.from_json_file(folder / "bert_config.json")),
  [
    case("missing", None, "No such file"),
    case("a folder", FOLDER, "Is a directory"),
    case("empty", b"", "not valid JSON"),
    case("cut short", CONFIG[:40], "not valid JSON"),
    case("two objects", CONFIG + CONFIG, "not valid JSON", "Extra data"),
    case("UTF-16", UTF16, "is UTF-16", "Save it as UTF-8"),
    case("latin-1", b'{"a": "' + LATIN1 + b'"}', "not valid JSON", "0xe9"),
    case("nested too deeply", DEEP, "not valid JSON", "recursion"),
    case("5000 digits", CONFIG.replace("12", DIGITS), "not valid JSON", "digits"),
    case("a list", "[]", "JSON object", "list"),
    case("no vocab_size", "{}", "vocab_size is None"),
    case("null", _config(vocab_size=None), "vocab_size is None"),
    case("text for a number", _config(hidden_size="8"), "hidden_size is '8'"),
    case("true for a number", _config(num_hidden_layers=True), "num_hidden_layers is True"),
    case("8.0 for 8", _config(hidden_size=8.0), "hidden_size is 8.0"),
    case("a list for a number", _config(hidden_size=[8] * 500), "hidden_size is [8"),
    case("no layer", _config(num_hidden_layers=0), "num_hidden_layers is 0"),
    case("negative", _config(vocab_size=-1), "vocab_size is -1"),
    case("heads that do not divide", _config(num_attention_heads=3), "8 is not a multiple", "3"),
    case("a huge size", _config(hidden_size=10**12), "hidden_size is 1000000000000", "at most"),
    case("a huge model", _config(hidden_size=2**30), "parameters"),
    case("a million layers", _config(num_hidden_layers=2**31 - 1, hidden_size=4096), "parameters"),
    case("dropout NaN", _config(hidden_dropout_prob=float("nan")), "hidden_dropout_prob is nan"),
    case("dropout 1", _config(hidden_dropout_prob=1), "hidden_dropout_prob is 1", "[0, 1)"),
    case("dropout as text", _config(attention_probs_dropout_prob="0.1"), "dropout_prob is '0.1'"),
    case("an infinite range", _config(initializer_range=float("inf")), "initializer_range is inf"),
    case("a range of 0", _config(initializer_range=0), "initializer_range is 0"),
    case("an unknown activation", _config(hidden_act="swish"), "hidden_act is 'swish'", "gelu"),
    case("a list of activations", _config(hidden_act=["gelu"]), "hidden_act is ['gelu']"),
    case("a key that is a method", _config(validate=1), "'validate' cannot be a key"),
    case("a key that is a class", _config(__class__=1), "'__class__' cannot be a key"),
    case("DeBERTa", _config(model_type="deberta"), "model_type is 'deberta'"),
    case("another epsilon", _config(model_type="bert", layer_norm_eps=1e-5), "layer_norm_eps"),
    case("a decoder", _config(model_type="bert", is_decoder=True), "is_decoder is True"),
    case("pruned", _config(model_type="bert", pruned_heads={"0": [1]}), "pruned_heads"),
    case("transformers' silu", _config(model_type="bert", hidden_act="silu"), "'silu'"),
    case(
      "relative positions",
      _config(model_type="bert", position_embedding_type="relative_key"),
      "position_embedding_type is 'relative_key'",
    ),
  ],
)

LABEL_MAP = Family(
  "labels of a run",
  "label_map.json",
  loading(lambda folder: label_map.read(str(folder))),
  [
    case("empty", b"", "is no label map"),
    case("a list", '["O", "B-PER"]', "is no label map"),
    case("a gap", '{"O": 0, "B-PER": 2}', "not 0, 1, 2"),
    case("text for numbers", '{"O": "0", "B-PER": 1}', "is no label map"),
    case("latin-1", b'{"' + LATIN1 + b'": 0}', "is no label map", "0xe9"),
    case("nested too deeply", DEEP, "is no label map", "Remove it"),
  ],
)

# ---------------------------------------------------------------------------------------------
# Data of tasks.


def _glue(task, file="train.tsv", split="train", **options):
  def read(folder):
    processor = glue.create_processor(task, **options)
    return getattr(processor, f"get_{split}_examples")(str(folder))

  return lambda *cases: Family(f"{task} {split}", file, loading(read), cases)


_MNLI = "\t".join([*"0123456789", "label"]) + "\n" + "\t".join([*"abcdefghij", "neutral"]) + "\n"

GLUE = [
  _glue("cola")(
    case("missing", None, "there is no such file", "The folder holds: out"),
    case("a folder", FOLDER, "Is a directory"),
    case("empty", b"", "the file is empty"),
    case("blank lines alone", "\n\r\n\n", "the file is empty"),
    case("a short row", "g\t1\t\tGood.\ng\t1\n", "line 2", "column 3", "--skip_bad_rows"),
    case(
      "a tab within the text", "g\t1\t\tGood.\ng\t1\t\tA\tB\n", "line 2", "5 columns", "expected 4"
    ),
    case("an unknown label", "g\t1\t\tGood.\n\ng\t2\t\tBad.\n", "line 3", "'2' is unknown", "'0'"),
    case("no label", "g\t\t\tGood.\n", "line 1", "label is empty"),
    case("a NUL byte", "g\t1\t\tGood.\ng\t1\t\tG\0d.\n", "line 2", "NUL"),
    case("latin-1", b"g\t1\t\tGood.\ng\t1\t\t" + LATIN1 + b"\n", "line 2", "not valid UTF-8"),
    case("UTF-16", UTF16, "UTF-16", "Save it as UTF-8"),
    case("a megabyte of label", "g\t" + "1" * 2**20 + "\t\tGood.\n", "line 1", "is unknown"),
  ),
  _glue("mrpc")(
    case("a header alone", "Quality\t1\t2\t3\t4\n", "contains no train examples"),
    case("a comma for the tabs", "Quality,1,2,3,4\n1,1,2,a,b\n", "line 2", "column 3", "1 column"),
    case("a bad header", b"Quality\t1\t2\t\xff\t4\n1\t1\t2\ta\tb\n", "line 1", "UTF-8"),
  ),
  _glue("mnli")(
    case("no agreement", _MNLI + _MNLI.splitlines()[1].replace("neutral", "-"), "line 3", "'-'"),
    case("cut within a row", _MNLI[:-12], "line 2", "column"),
  ),
  _glue("mnli", "dev_matched.tsv", "dev")(case("missing", None, "no such file")),
  _glue("sts-b")(
    case("a word", "sentence1\tsentence2\tscore\na\tb\tfive\n", "line 2", "'five' is not a finite"),
    case("NaN", "sentence1\tsentence2\tscore\na\tb\tnan\n", "line 2", "'nan' is not a finite"),
    case("infinite", "sentence1\tsentence2\tscore\na\tb\t1e999\n", "line 2", "'1e999'"),
    case("no score", "sentence1\tsentence2\tscore\na\tb\t\n", "line 2", "'' is not a finite"),
    case(
      "no column",
      "sentence1\tsentence2\na\tb\n",
      "line 1",
      "'score' is not in the header",
      "sentence2",
    ),
  ),
  _glue("sst-2")(
    case("words for labels", "sentence\tlabel\nFine.\tpositive\n", "line 2", "'positive'", "'1'"),
    case("no header", "Fine.\t1\nBad.\t0\n", "line 1", "'sentence' is not in the header"),
  ),
  _glue("qnli")(
    case("numbers for labels", "question\tsentence\tlabel\na\tb\t1\n", "line 2", "'1'")
  ),
  _glue("wnli")(case("RTE's labels", "sentence1\tsentence2\tlabel\na\tb\tentailment\n", "line 2")),
  _glue("xnli", "xnli.dev.tsv", "dev")(
    case("no Chinese", "language\tlabel\nde\tneutral\n", "no row is in language 'zh'", "de")
  ),
  _glue("imdb", "train/neg/7_1.txt")(
    case("a review in latin-1", LATIN1, "line 1", "not valid UTF-8")
  )._replace(others={"train/pos/8_1.txt": b"Fine."}),
  _glue("imdb", "train/pos/8_1.txt")(
    case("no review", None, "contains no review", "--data_dir")
  )._replace(others={"train/neg/7_1.txt": b"Bad."}, named="train/pos"),
]


def _own(ending, **options):
  def read(folder):
    processor = user_tables.CsvProcessor(str(folder), **options)
    return processor.get_labels() and processor.get_train_examples(str(folder))

  return lambda *cases: Family(
    " ".join(["own", ending, *options.values()]), f"train.{ending}", loading(read), cases
  )


def _jsonl(*labels: str) -> str:
  return "".join(f'{{"text_a": "x", "label": {label}}}\n' for label in ('"0"', *labels))


OWN_TABLES = [
  _own("tsv")(
    case("missing", None, "contains no train.tsv or train.csv or train.jsonl", "--data_dir"),
    case("empty", b"", "the file is empty"),
    case(
      "other columns",
      "body\tclass\na\t1\n",
      "line 1",
      "'text_a' is not in the header",
      "body, class",
    ),
    case("a row too short", "text_a\tlabel\na\n", "line 2", "column 1"),
  ),
  _own("csv")(
    case("a quote never closed", 'text_a,label\n"a,1\nb,0\n', "line 2", "quoting is broken"),
    case("text behind a quote", 'text_a,label\n"a"b,1\n', "line 2", "quoting is broken"),
    case(
      "a comma within the text", "text_a,label\na,1\nb, c,1\n", "line 3", "3 columns, expected 2"
    ),
  ),
  _own("jsonl")(
    case("no JSON", _jsonl("1}"), "line 2", "not JSON"),
    case("cut short", _jsonl("1")[:-4], "line 2", "not JSON"),
    case("a list", _jsonl() + "[1]\n", "line 2", "not a JSON object"),
    case("nested too deeply", _jsonl() + '{"a":' + DEEP, "line 2", "not JSON"),
    case("5000 digits", _jsonl(DIGITS), "line 2", "not JSON", "digits"),
    case("half a surrogate pair", _jsonl('"\\ud800"'), "line 2", "not valid UTF-8"),
    case("no text", _jsonl() + '{"label": "1"}\n', "line 2", "contains None"),
    case("a number for a text", _jsonl() + '{"text_a": 5, "label": "1"}\n', "line 2", "contains 5"),
    case("NaN as a class", _jsonl("NaN"), "line 2", "nan cannot be the name of a class"),
    case("infinity as a class", _jsonl("1e999"), "line 2", "inf cannot be the name of a class"),
    case("a list as a class", _jsonl('["0"]'), "line 2", "cannot be the name of a class"),
    case("an object as a class", _jsonl('{"a": 1}'), "line 2", "cannot be the name of a class"),
    case("null as a class", _jsonl("null"), "line 2", "label is empty"),
  ),
  _own("jsonl", problem_type="multi_label")(
    case("a number for labels", _jsonl("5"), "line 2", "5 are neither text nor a list"),
    case("an object for labels", _jsonl('{"a": 1}'), "line 2", "neither text nor a list"),
    case("null among labels", _jsonl('["0", null]'), "line 2", "None cannot be the name"),
    case("a list in a list", _jsonl('[["0"]]'), "line 2", "cannot be the name of a class"),
  ),
  _own("jsonl", problem_type="regression")(
    case("a word", _jsonl('"high"'), "line 2", "'high' is not a finite number"),
    case("400 digits", _jsonl("9" * 400), "line 2", "is not a finite number"),
    case("a list", _jsonl("[1]"), "line 2", "[1] is not a finite number"),
  ),
]

_SWAG = "sent1,sent2,ending0,ending1,label\n"


def _swag(file, *cases):
  return Family(
    file,
    file,
    loading(lambda folder: multiple_choice.read_swag_examples(folder / file)),
    list(cases),
  )


SWAG = [
  _swag(
    "swag.csv",
    case("missing", None, "no such file"),
    case("empty", b"", "the file is empty"),
    case("a header alone", _SWAG, "no train questions"),
    case("no endings", "sent1,label\na,0\n", "ending0 and ending1", "sent1, label"),
    case("a gap", "sent1,ending0,ending1,ending3,label\na,b,c,d,0\n", "ending2 is missing"),
    case("one ending", _SWAG + "a,b,c,,0\n", "line 2", "ending is empty"),
    case("a number too high", _SWAG + "a,b,c,d,2\n", "line 2", "'2'", "from 0 to 1"),
    case("a negative number", _SWAG + "a,b,c,d,-1\n", "line 2", "'-1'"),
    case("5000 digits", _SWAG + f"a,b,c,d,{DIGITS}\n", "line 2", "from 0 to 1"),
    case("a short row", _SWAG + "a,b\n", "line 2", "column"),
    case("a quote never closed", _SWAG + '"a,b,c,d,0\n', "line 2", "quoting is broken"),
    case("a row too long", _SWAG + "a,b,c,d,0,e\n", "line 2", "6 columns", "expected 5"),
  ),
  _swag(
    "swag.jsonl",
    case("a number", '{"sent1": 1, "ending0": "a", "ending1": "b", "label": 0}', "line 1", "is 1"),
    case("true", '{"sent1": "", "ending0": "a", "ending1": "b", "label": true}', "line 1", "True"),
  ),
]

_PARAGRAPH = {"context": "Built in 1887.", "qas": []}
_QUESTION = {"id": "q1", "question": "When?", "answers": [{"text": "1887", "answer_start": 9}]}


def _squad(change=None, **values) -> str:
  """A file with one question, some of whose values are others; None leaves a key out."""
  question = {**_QUESTION, **values}
  question = {key: value for key, value in question.items() if value is not None}
  paragraph = {**_PARAGRAPH, "qas": [question], **(change or {})}
  return json.dumps({"data": [{"paragraphs": [paragraph]}]})


def _squad_family(title, cases, file="squad.json", **options):
  options = {"is_training": True, **options}
  read = loading(lambda folder: squad.read_squad_examples(folder / file, **options))
  return Family(f"squad {title}", file, read, cases)


_QA = "data[0].paragraphs[0].qas[0]"
SQUAD = [
  _squad_family(
    "1.1",
    [
      case("missing", None, "cannot be read", "No such file"),
      case("a folder", FOLDER, "cannot be read"),
      case("empty", b"", "line 1", "not JSON"),
      case("cut short", _squad()[:-9], "line 1", "not JSON"),
      case("latin-1", b'{"data": "' + LATIN1 + b'"}', "byte 13 is not UTF-8"),
      case("nested too deeply", DEEP, "nested too deeply"),
      case("5000 digits", '{"data": ' + DIGITS + "}", "not JSON", "digits"),
      case("an empty list", "[]", "contains no question"),
      case("no data", '{"version": "1.1"}', "'data' is missing", "version"),
      case("an object for data", '{"data": {}}', "'data' is {}", "not a list"),
      case("no paragraphs", '{"data": [{"title": "t"}]}', "data[0]", "'paragraphs' is missing"),
      case("no paragraph", '{"data": [{"paragraphs": []}]}', "contains no question"),
      case("a number for a paragraph", '{"data": [{"paragraphs": [5]}]}', "paragraphs[0] is 5"),
      case("a number for a context", _squad({"context": 5}), "'context' is 5, not text"),
      case("an empty context", _squad({"context": " \n"}), "'q1'", "context is empty"),
      case("no questions", _squad({"qas": None}), "'qas' is null"),
      case("no id", _squad(id=None), _QA, "'id' is missing"),
      case("a list for an id", _squad(id=[1]), _QA, "'id' is [1]"),
      case("no question", _squad(question=None), "'q1'", "'question' is missing"),
      case("a number for a question", _squad(question=5), "'q1'", "'question' is 5"),
      case("no answers", _squad(answers=None), "'q1'", "an answer to each question"),
      case("an empty list of answers", _squad(answers=[]), "'q1'", "an answer to each question"),
      case("a text for an answer", _squad(answers=["1887"]), "'q1'", 'an answer is "1887"'),
      case("an answer without text", _squad(answers=[{"answer_start": 9}]), "'text' is missing"),
      case("an answer without place", _squad(answers=[{"text": "a"}]), "'answer_start' is missing"),
      case("a text for a place", _squad(answers=[{"text": "a", "answer_start": "9"}]), '"9"'),
      case("true for a place", _squad(answers=[{"text": "a", "answer_start": True}]), "true"),
      case("9.5 for a place", _squad(answers=[{"text": "a", "answer_start": 9.5}]), "9.5"),
      case(
        "answers elsewhere",
        _squad(answers=[{"text": "1887", "answer_start": -1}]),
        "no answer to its 1 questions",
      ),
    ],
  ),
  _squad_family(
    "2.0",
    [
      case("no is_impossible", _squad(), "'q1'", "'is_impossible' is missing", "SQuAD 1.1"),
      case("text for true", _squad(is_impossible="false"), "'q1'", '"false", not true or false'),
    ],
    version_2_with_negative=True,
  ),
  _squad_family(
    "to answer",
    [case("two questions q1", _squad({"qas": [_QUESTION] * 2}), "'q1'", "this id is used")],
    is_training=False,
  ),
  _squad_family(
    "compressed",
    [
      case("cut short", gzip.compress(_squad().encode(), mtime=0)[:-20], "not a complete gzip"),
      case("not compressed", _squad(), "Not a gzipped file"),
      case("damaged", gzip.compress(b"x" * 99, mtime=0)[:10] + b"\xff" * 20, "not a complete gzip"),
    ],
    file="squad.json.gz",
  ),
]


def _conll(title, cases, **options):
  read = loading(
    lambda folder: conll_files.read_conll(
      folder / "train.conll", conll_files.ConllFormat(**options)
    )
  )
  return Family(f"conll {title}", "train.conll", read, cases)


CONLL = [
  _conll(
    "bio",
    [
      case("missing", None, "no such file"),
      case("empty", b"", "contains no word"),
      case("blank lines alone", "\n \n\t\n", "contains no word"),
      case("a document without words", "-DOCSTART- O\n\n", "contains no word"),
      case("words alone", "EU B-ORG\nrejects\n", "line 2", "no label", "'rejects'"),
      case("another scheme", "EU S-ORG\n", "line 1", "'S-ORG' is not in the scheme bio"),
      case("a label without type", "EU B-\n", "line 1", "'B-' is not in the scheme"),
      case("types alone", "EU ORG\n", "line 1", "'ORG' is not in the scheme"),
      case("a NUL byte", "EU O\n\nE\0U O\n", "line 3", "NUL"),
      case("latin-1", b"EU O\n" + LATIN1 + b" O\n", "line 2", "UTF-8"),
      case("UTF-16", UTF16, "UTF-16"),
    ],
  ),
  _conll(
    "tab",
    [
      case("an empty word", "EU\tO\n\tO\n", "line 2", "the word is empty"),
      case("spaces for tabs", "EU O\n", "line 1", "no label", "--separator"),
    ],
    separator="tab",
  ),
  _conll(
    "columns",
    [case("too few", "EU O\n", "line 1", "column 3", "2 column(s)", "--token_column")],
    token_column=3,
  ),
  _conll("plain", [case("no label", "EU\t\n", "line 1", "empty")], separator="tab", scheme="plain"),
]

# ---------------------------------------------------------------------------------------------
# Text to pre-train on, and to answer.

VOCAB = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\none\ntwo\nthree\n.\n,\n##s\na\n"


def _create_records(title, file, cases, **flags):
  run = starting(
    create_pretraining_data,
    **{
      "input_file": "{}/" + file,
      "output_file": "{}/out/train.tfrecord",
      "vocab_file": "{}/vocab.txt",
      **flags,
    },
  )
  return Family(f"create_pretraining_data {title}", file, run, cases, {"vocab.txt": VOCAB})


_NO_TEXT = [
  case("missing", None, "matches no file"),
  case("a folder", FOLDER, "is a folder"),
  case("empty", b"", "files are empty"),
  case("UTF-16", UTF16, "is UTF-16"),
  case("a NUL", "one\0two\n", "byte 4 is NUL"),
]
_BLANK = case("blanks and controls alone", " \n\t\n\x01\u200b\n\r\n", "There is no text")
_GZIP = gzip.compress(b"one two three.\n\n" * 50, mtime=0)
CORPORA = [
  _create_records("plain", "text.txt", [*_NO_TEXT, _BLANK]),
  _create_records("in blocks", "text.txt", [*_NO_TEXT[2:], _BLANK], num_workers=1),
  _create_records("for ELECTRA", "text.txt", [*_NO_TEXT[2:], _BLANK], format="electra"),
  _create_records("for ELECTRA in blocks", "text.txt", [_BLANK], format="electra", num_workers=1),
  _create_records("for ALBERT", "text.txt", [_BLANK], format="albert"),
  _create_records(
    "for ALBERT, pieces",
    "30k-clean.model",
    [
      case("missing", None, "Cannot read sentencepiece model", "30k-clean.model"),
      case("a folder", FOLDER, "30k-clean.model"),
      case("empty", b"", "is not a sentencepiece model"),
      case("BERT's vocabulary", VOCAB, "is not a sentencepiece model", "30k-clean.model"),
    ],
    input_file="{}/vocab.txt",
    spm_model_file="{}/30k-clean.model",
  ),
  _create_records(
    "strict for ELECTRA",
    "text.txt",
    [case("latin-1", b"one\n" + LATIN1 + b"\n", "line 2", "byte 4", "0xe9")],
    format="electra",
    strict_utf8=True,
  ),
  _create_records(
    "strict",
    "text.txt",
    [case("latin-1", b"one\n" + LATIN1 + b"\n", "line 2", "byte 4", "0xe9")],
    strict_utf8=True,
  ),
  _create_records(
    "JSON lines",
    "text.jsonl",
    [
      case("no JSON", '{"text": "one"}\none two\n', "line 2", "not JSON"),
      case("another field", '{"body": "one"}\n', "line 1", "no field 'text'", "body"),
      case("a number", '{"text": 5}\n', "line 1", "'text' is not text", "5"),
      case("a list", '["one"]\n', "line 1", "expected a JSON object"),
      case("nested too deeply", '{"text": ' + DEEP, "line 1", "not JSON"),
      case("5000 digits", '{"text": ' + DIGITS + "}", "line 1", "not JSON"),
    ],
    jsonl_field="text",
  ),
  _create_records(
    "compressed",
    "text.gz",
    [
      case("cut short", _GZIP[:-12], "was cut short"),
      case("not compressed", "one two.\n", "not a gzip file"),
    ],
  ),
  Family(
    "create_vocab",
    "text.txt",
    starting(create_vocab, input_file="{}/text.txt", output_file="{}/out/vocab.txt"),
    [*_NO_TEXT, _BLANK._replace(words=("the text contains no word",))],
  ),
]


def _lengths():
  """A model of questions and contexts, which needs no TensorFlow."""
  names = ["context", "question"]
  made = predictors.predictor(
    lambda item: name_texts(item, names),
    lambda batch: {"length": [len(text) for text in batch["question"]]},
    names,
  )
  made.processor.inputs = names
  return made


def _answer(folder):
  flags = {"input_file": "{}/texts.jsonl", "output_file": "{}/out/answers.jsonl"}
  with mock.patch.object(predict, "load_predictor", _lengths):
    starting(predict, init_checkpoint="not looked at", **flags)(folder)


_LINE = '{"context": "It was me.", "question": "Who?"}\n'
TEXTS = Family(
  "texts to answer",
  "texts.jsonl",
  _answer,
  [
    case("missing", None, "No such file"),
    case("a folder", FOLDER, "Is a directory"),
    case("latin-1", _LINE.encode() + LATIN1 + b"\n", "line 2", "0xe9", "UTF-8"),
    case("half a surrogate pair", _LINE + '{"question": "\\ud800"}', "line 2", "surrogate"),
    case("another name", _LINE + '{"context": "", "text": ""}', "line 2", "context, question"),
    case("a number", _LINE * 2 + '{"context": "", "question": 5}', "line 3", "is 5, not text"),
    case("null", '{"context": null, "question": "a"}', "line 1", "is None, not text"),
    case("cut short", _LINE + _LINE[:20], "line 2", "not JSON"),
    case("nested too deeply", _LINE + '{"context":' + DEEP, "line 2", "not JSON"),
    case("5000 digits", _LINE + '{"context": ' + DIGITS + "}", "line 2", "not JSON"),
  ],
)

FAMILIES = [
  VOCABULARIES,
  CONFIGS,
  LABEL_MAP,
  *GLUE,
  *OWN_TABLES,
  *SWAG,
  *SQUAD,
  *CONLL,
  *CORPORA,
  TEXTS,
]


# Said before what they lead to, which is looked for here.
@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
@pytest.mark.parametrize(("family", "row"), rows_of(FAMILIES))
def test_a_bad_file_is_refused(family, row, tmp_path):
  check(family, row, tmp_path)
