"""Processors of all tasks."""

import gzip
import json
import subprocess

import pytest
from absl import logging

from bert.io.tables import DataError
from bert.tasks import glue
from bert.tasks.classification import InputExample, convert_single_example
from bert.tasks.glue import create_processor
from bert.tasks.processors import DataProcessor


def write(folder, name, *rows):
  path = folder / name
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text("".join(row + "\n" for row in rows), encoding="utf-8", newline="")
  return str(folder)


def tsv(*fields):
  return "\t".join(fields)


def shown(examples):
  return [(e.guid, e.text_a, e.text_b, e.label) for e in examples]


# ---------------------------------------------------------------------------------------------
# Against the original.


@pytest.mark.parametrize(("task", "count"), [("MRPC", 294), ("CoLA", 536)])
def test_examples_and_features_are_the_originals(task, count, golden_dir, data_dir):
  from bert import tokenization

  vocab = str(data_dir / "vocab" / "uncased_vocab.txt")
  tokenizer = tokenization.FullTokenizer(vocab, do_lower_case=True)
  processor = create_processor(task)
  folder = str(data_dir / "glue" / task)
  examples = {
    "train": processor.get_train_examples(folder),
    "dev": processor.get_dev_examples(folder),
    "test": processor.get_test_examples(folder),
  }
  with gzip.open(golden_dir / "classifier" / f"{task}.jsonl.gz", "rt", encoding="utf-8") as f:
    goldens = [json.loads(line) for line in f]
  assert len(goldens) == count
  for golden in goldens:
    example = examples[golden["split"]][golden["index"]]
    for name in ("guid", "text_a", "text_b", "label"):
      assert getattr(example, name) == golden[name]
    length = golden["max_seq_length"]
    features = convert_single_example(9, example, processor.get_labels(), length, tokenizer)
    padding = [0] * (length - len(golden["input_ids"]))
    assert features.input_ids == golden["input_ids"] + padding
    assert features.input_mask == [1] * len(golden["input_ids"]) + padding
    assert features.segment_ids == golden["segment_ids"] + padding
    assert features.label_id == golden["label_id"]


class ReviewProcessor(DataProcessor):
  """As people wrote it for the original: positions, the header skipped, no __init__ of the base."""

  def __init__(self):
    self.language = "en"

  def get_train_examples(self, data_dir):
    examples = []
    for i, line in enumerate(self._read_tsv(f"{data_dir}/train.tsv")):
      if i == 0 or len(line) == 1:
        continue
      guid = "%s-%s" % ("train", i)  # noqa: UP031
      examples.append(InputExample(guid=guid, text_a=line[1], text_b=None, label=line[-1]))
    return examples

  def get_labels(self):
    return ["bad", "good"]


def test_a_processor_written_for_the_original(tmp_path, monkeypatch):
  monkeypatch.setitem(glue.PROCESSORS, "review", ReviewProcessor)
  processor = create_processor("Review", language=None)
  folder = write(tmp_path, "train.tsv", "id\ttext\tlabel", '7\tSo "good\tgood', "8\tSo bad\tbad")
  expected = [("train-1", 'So "good', None, "good"), ("train-2", "So bad", None, "bad")]
  assert shown(processor.get_train_examples(folder)) == expected
  assert (processor.problem_type, processor.headline_metric) == ("classification", "accuracy")
  with pytest.raises(NotImplementedError):
    processor.get_dev_examples(folder)
  write(tmp_path, "train.tsv", "id\ttext\tlabel", "a\tb")
  assert shown(processor.get_train_examples(folder)) == [("train-1", "b", None, "b")]


def test_a_subclass_of_a_task_of_the_original(tmp_path):
  class Mine(glue.MrpcProcessor):
    def get_labels(self):
      return ["0", "1", "2"]

    def get_train_examples(self, data_dir):
      return self._create_examples(self._read_tsv(f"{data_dir}/mine.tsv"), "train")

  folder = write(tmp_path, "mine.tsv", "a\tb\tc\td\te", "2\t.\t.\tx\ty")
  assert shown(Mine().get_train_examples(folder)) == [("train-1", "x", "y", "2")]


# ---------------------------------------------------------------------------------------------
# Columns and labels of each task, in the layout in which it is published.

PAIR = {"labelled": "index\tsentence1\tsentence2\tlabel", "test": "index\tsentence1\tsentence2"}
ENTAILS = ["entailment", "not_entailment"]
SPLITS = [
  ("rte", PAIR, "0\tx\ty\tnot_entailment", "0\tx\ty", ("x", "y"), "not_entailment", ENTAILS),
  ("wnli", PAIR, "0\tx\ty\t1", "0\tx\ty", ("x", "y"), "1", ["0", "1"]),
  (
    "qnli",
    {"labelled": "index\tquestion\tsentence\tlabel", "test": "index\tquestion\tsentence"},
    "0\tx\ty\tentailment",
    "0\tx\ty",
    ("x", "y"),
    "entailment",
    ENTAILS,
  ),
  (
    "qqp",
    {
      "labelled": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
      "test": "id\tquestion1\tquestion2",
    },
    "9\t1\t2\tx\ty\t1",
    "0\tx\ty",
    ("x", "y"),
    "1",
    ["0", "1"],
  ),
  (
    "sst-2",
    {"labelled": "sentence\tlabel", "test": "index\tsentence"},
    "x\t1",
    "0\tx",
    ("x", None),
    "1",
    ["0", "1"],
  ),
  (
    "sts-b",
    {
      "labelled": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
      "\tscore",
      "test": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2",
    },
    "0\tg\tf\t2012\t1\tn\tn\tx\ty\t3.800",
    "0\tg\tf\t2012\t1\tn\tn\tx\ty",
    ("x", "y"),
    3.8,
    ["score"],
  ),
]


@pytest.mark.parametrize(("task", "headers", "row", "test_row", "texts", "label", "labels"), SPLITS)
def test_layout(tmp_path, task, headers, row, test_row, texts, label, labels):
  processor = create_processor(task)
  assert processor.get_labels() == labels
  folder = write(tmp_path, "train.tsv", headers["labelled"], row)
  write(tmp_path, "dev.tsv", headers["labelled"], row)
  write(tmp_path, "test.tsv", headers["test"], test_row)
  assert shown(processor.get_train_examples(folder)) == [("train-1", *texts, label)]
  assert shown(processor.get_dev_examples(folder)) == [("dev-1", *texts, label)]
  placeholder = 0.0 if task == "sts-b" else labels[0]
  assert shown(processor.get_test_examples(folder)) == [("test-1", *texts, placeholder)]


def mnli_row(guid, a, b, *labels):
  return tsv(guid, *"1234567", a, b, *labels)


def test_mnli(tmp_path):
  names = ["index", "promptID", "pairID", "genre", "p1", "p2", "p3", "p4", "sentence1", "sentence2"]
  dev_labels = ("label1", "label2", "gold_label")
  write(
    tmp_path, "train.tsv", tsv(*names, *dev_labels[1:]), mnli_row("5", "x", "y", "-", "neutral")
  )
  for name in ("matched", "mismatched"):
    row = mnli_row("6", name, "y", "neutral", "-", "entailment")
    write(tmp_path, f"dev_{name}.tsv", tsv(*names, *dev_labels), row)
    write(tmp_path, f"test_{name}.tsv", tsv(*names), mnli_row("7", name, "y"))
  folder = str(tmp_path)
  mnli, mismatched = create_processor("mnli"), create_processor("MNLI-mm")
  assert mnli.get_labels() == ["contradiction", "entailment", "neutral"]
  assert shown(mnli.get_train_examples(folder)) == [("train-5", "x", "y", "neutral")]
  assert shown(mnli.get_dev_examples(folder)) == [("dev_matched-6", "matched", "y", "entailment")]
  assert shown(mnli.get_test_examples(folder)) == [("test-7", "matched", "y", "contradiction")]
  expected = [("dev_mismatched-6", "mismatched", "y", "entailment")]
  assert shown(mnli.get_dev_mismatched_examples(folder)) == expected
  assert shown(mismatched.get_dev_examples(folder)) == expected
  assert shown(mismatched.get_train_examples(folder)) == [("train-5", "x", "y", "neutral")]
  expected = [("test_mismatched-7", "mismatched", "y", "contradiction")]
  assert shown(mismatched.get_test_examples(folder)) == expected
  write(tmp_path, "dev_matched.tsv", tsv(*names, *dev_labels), mnli_row("6", "x", "y", "neutral"))
  with pytest.raises(DataError, match=r"dev_matched.tsv, line 2: column 12"):
    mnli.get_dev_examples(folder)


def xnli_row(language, label, a, b):
  return tsv(language, label, "", "", "", "", a, b, "1")


@pytest.fixture
def xnli_dir(tmp_path):
  write(tmp_path, "multinli/multinli.train.zh.tsv", "premise\thypo\tlabel", "x\ty\tcontradictory")
  write(tmp_path, "multinli/multinli.train.en.tsv", "premise\thypo\tlabel", "e\tf\tneutral")
  header = tsv("language", "gold_label", *"1234", "sentence1", "sentence2", "promptID")
  for split in ("dev", "test"):
    rows = [xnli_row(lang, "neutral", f"{lang} a", f"{lang} b") for lang in ("ar", "zh", "de")]
    write(tmp_path, f"xnli.{split}.tsv", header, *rows)
  return str(tmp_path)


def test_xnli(xnli_dir):
  processor = create_processor("xnli")
  assert shown(processor.get_train_examples(xnli_dir)) == [("train-1", "x", "y", "contradiction")]
  assert shown(processor.get_dev_examples(xnli_dir)) == [("dev-2", "zh a", "zh b", "neutral")]
  expected = [("test-2", "zh a", "zh b", "contradiction")]
  assert shown(processor.get_test_examples(xnli_dir)) == expected


def test_xnli_in_other_languages(xnli_dir):
  processor = create_processor("xnli", language="en")
  assert shown(processor.get_train_examples(xnli_dir)) == [("train-1", "e", "f", "neutral")]
  processor = create_processor("xnli", language="de")
  assert shown(processor.get_dev_examples(xnli_dir)) == [("dev-3", "de a", "de b", "neutral")]
  with pytest.raises(DataError, match="language 'fr'; the languages are ar, de, zh"):
    create_processor("xnli", language="fr").get_test_examples(xnli_dir)
  with pytest.raises(DataError, match=r"multinli.train.en.tsv, multinli.train.zh.tsv"):
    create_processor("xnli", language="fr").get_train_examples(xnli_dir)


@pytest.mark.parametrize("name", ["AX.tsv", "diagnostic.tsv"])
def test_ax(tmp_path, name):
  folder = write(tmp_path, name, PAIR["test"], "0\tx\ty")
  processor = create_processor("ax")
  expected = [("test-1", "x", "y", "contradiction")]
  assert shown(processor.get_test_examples(folder)) == expected
  for read in (processor.get_train_examples, processor.get_dev_examples):
    with pytest.raises(DataError, match="--task_name=mnli"):
      read(folder)


# Names and numbers of labels are those of the hub's dataset `glue`.
HUB = {
  "SST-2": ("sentence", "1", "1"),
  "CoLA": ("sentence", "0", "0"),
  "MRPC": ("sentence1,sentence2", "1", "1"),
  "STS-B": ("sentence1,sentence2", "3.8", 3.8),
  "QQP": ("question1,question2", "0", "0"),
  "QNLI": ("question,sentence", "0", "entailment"),
  "RTE": ("sentence1,sentence2", "1", "not_entailment"),
  "WNLI": ("sentence1,sentence2", "1", "1"),
  "MNLI": ("premise,hypothesis", "1", "neutral"),
}


@pytest.mark.parametrize("task", HUB)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "tsv"])
def test_exports_of_the_hub(tmp_path, task, ending):
  names, number, label = HUB[task]
  names = [*names.split(","), "label", "idx"]
  texts = ["one, two", "three"][: len(names) - 2]
  for split, value in (("train", number), ("validation", number), ("test", "-1")):
    values = [*texts, float(value) if "." in value else int(value), 7]
    row = ",".join([f'"{text}"' for text in texts] + [value, "7"])
    rows = {
      "csv": [",".join(names), row],
      "tsv": [tsv(*names), tsv(*map(str, values))],
      "jsonl": [json.dumps(dict(zip(names, values, strict=True)))],
    }[ending]
    split += "_matched" if task == "MNLI" and split != "train" else ""
    split = split.replace("validation", "dev") if ending == "tsv" else split
    write(tmp_path, f"{split}.{ending}", *rows)
  processor = create_processor(task)
  for read in (processor.get_train_examples, processor.get_dev_examples):
    (example,) = read(str(tmp_path))
    assert [example.text_a, *filter(None, [example.text_b])] == texts
    assert example.label == label
  (example,) = processor.get_test_examples(str(tmp_path))
  assert example.text_a == texts[0]
  assert not example.is_labelled


@pytest.mark.parametrize("task", ["CoLA", "MRPC", "STS-B", "QQP", "MNLI"])
def test_names_of_the_hub_without_its_idx(tmp_path, task):
  names, number, label = HUB[task]
  texts = ["one, two", "three"][: len(names.split(","))]
  end = "_matched" if task == "MNLI" else ""
  for split, value in (("train", number), (f"dev{end}", number), (f"test{end}", "-1")):
    rows = [tsv(*names.split(","), "label"), tsv(*texts, value)]
    write(tmp_path, f"{split}.tsv", *rows)
  processor = create_processor(task)
  for read in (processor.get_train_examples, processor.get_dev_examples):
    (example,) = read(str(tmp_path))
    assert [example.text_a, *filter(None, [example.text_b])] == texts
    assert example.label == label
  (example,) = processor.get_test_examples(str(tmp_path))
  assert (example.text_a, example.is_labelled) == (texts[0], False)


def test_a_table_of_the_hub_that_is_not_named_csv(tmp_path):
  write(tmp_path, "dev.tsv", "sentence,label", '"one, two",1')
  with pytest.raises(
    DataError, match=r"dev.tsv, line 1: commas .* Name it \S+/dev.csv\.$"
  ) as caught:
    create_processor("cola").get_dev_examples(str(tmp_path))
  (tmp_path / "dev.tsv").rename(caught.value.advice.split()[-1].removesuffix("."))
  (example,) = create_processor("cola").get_dev_examples(str(tmp_path))
  assert (example.text_a, example.label) == ("one, two", "1")


def test_a_table_of_ones_own_is_not_of_the_task(tmp_path):
  write(tmp_path, "dev.tsv", "text\tlabel", "fine\t1")
  with pytest.raises(DataError, match=r"has text, label\. Check .*--task_name=csv\.$"):
    create_processor("sst-2").get_dev_examples(str(tmp_path))


def test_mrpc_as_microsoft_has_it(tmp_path):
  header, row = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", tsv("1", "7", "8", '"A', "B")
  for split in ("train", "test"):
    write(tmp_path, f"msr_paraphrase_{split}.txt", f"{header}\r", f"{row}\r")
  processor = create_processor("mrpc")
  assert shown(processor.get_train_examples(str(tmp_path))) == [("train-1", '"A', "B", "1")]
  assert shown(processor.get_test_examples(str(tmp_path))) == [("test-1", '"A', "B", "0")]
  with pytest.raises(DataError, match=r"cp .*msr_paraphrase_test.txt .*dev.tsv") as caught:
    processor.get_dev_examples(str(tmp_path))
  subprocess.run(caught.value.advice.partition(": ")[2].split(), check=True)
  assert shown(processor.get_dev_examples(str(tmp_path))) == [("dev-1", '"A', "B", "1")]


@pytest.mark.parametrize("inner", ["aclImdb", "."])
def test_imdb(tmp_path, inner):
  for name in ("0_9", "1_7"):
    write(tmp_path, f"{inner}/train/pos/{name}.txt", "Fine.<br />", "Really\u2028so.")
    write(tmp_path, f"{inner}/train/neg/{name[0]}_2.txt", "Poor.")
  write(tmp_path, f"{inner}/test/neg/0_1.txt", "Worse.")
  write(tmp_path, f"{inner}/test/pos/urls.lst", "no review")
  processor = create_processor("imdb")
  assert shown(processor.get_train_examples(str(tmp_path))) == [
    ("train-neg/0_2", "Poor.", None, "neg"),
    ("train-pos/0_9", "Fine.<br />\nReally\u2028so.", None, "pos"),
    ("train-neg/1_2", "Poor.", None, "neg"),
    ("train-pos/1_7", "Fine.<br />\nReally\u2028so.", None, "pos"),
  ]
  with pytest.raises(DataError, match=r"test.pos: the folder contains no review"):
    processor.get_dev_examples(str(tmp_path))
  write(tmp_path, f"{inner}/test/pos/1_8.txt", "Better.")
  expected = [("test-neg/0_1", "Worse.", None, "neg"), ("test-pos/1_8", "Better.", None, "pos")]
  assert shown(processor.get_dev_examples(str(tmp_path))) == expected
  assert shown(processor.get_test_examples(str(tmp_path))) == expected


def test_unknown_tasks_and_options_are_named():
  with pytest.raises(ValueError, match=r"Task not found: MRCP. Did you mean mrpc\?"):
    create_processor("MRCP")
  with pytest.raises(ValueError, match=r"Task not found: zzz. Known tasks: cola, mnli"):
    create_processor("zzz")
  with pytest.raises(ValueError, match=r"cola .* language; .* skip_bad_rows"):
    create_processor("cola", language="de")


# ---------------------------------------------------------------------------------------------
# Rows that cannot be what was meant.

MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
BAD_ROWS = [
  ("1\t2\t3\tx", "column 4 (counted from 0) is missing, the row has 4 column(s)"),
  ("1\t2\t3\tx\ty\tz", "6 columns, expected 5 as in the first row"),
  ("3\t2\t3\tx\ty", "the label '3' is unknown; known labels: '0', '1'"),
  ("\t2\t3\tx\ty", "the label is empty"),
  ("   ", "column 3 (counted from 0) is missing"),
  ("1\t2\t3\tx\0\ty", "NUL"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_ROWS)
def test_bad_row_is_named_or_left_out(tmp_path, monkeypatch, bad, reason):
  good = "0\t2\t3\tx\ty"
  folder = write(tmp_path, "train.tsv", MRPC_HEADER, good, bad, good)
  with pytest.raises(DataError) as info:
    create_processor("mrpc").get_train_examples(folder)
  message = str(info.value)
  assert "train.tsv, line 3: " in message
  assert reason in message
  assert "--skip_bad_rows" in message
  assert info.value.line == 3

  warnings = []
  monkeypatch.setattr(logging, "warning", lambda text, *args: warnings.append(text % args))
  processor = create_processor("mrpc", skip_bad_rows=True)
  for _ in range(2):  # reading again counts nothing twice
    examples = processor.get_train_examples(folder)
  assert [e.guid for e in examples] == ["train-1", "train-3"]
  assert list(processor.bad_rows) == [(f"{tmp_path}/train.tsv", 3)]
  assert "Skipped 1 malformed row(s)" in warnings[0]
  assert reason in warnings[0]


def test_stray_quotes_crlf_and_byte_order_mark(tmp_path):
  (tmp_path / "dev.tsv").write_bytes(
    b'\xef\xbb\xbf"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t2\t3\t"x\ty\r\n\r\n'
  )
  expected = [("dev-1", '"x', "y", "1")]
  assert shown(create_processor("mrpc").get_dev_examples(str(tmp_path))) == expected


def test_trailing_delimiters_are_harmless(tmp_path):
  folder = write(tmp_path, "dev.tsv", MRPC_HEADER, "1\t2\t3\tx\ty\t\t")
  assert shown(create_processor("mrpc").get_dev_examples(folder)) == [("dev-1", "x", "y", "1")]


def test_a_bad_header_is_never_skipped(tmp_path):
  # The first example would be taken for the header, and lost without a word.
  folder = write(tmp_path, "train.tsv", MRPC_HEADER + "\0", "1\t2\t3\tx\ty", "1\t2\t3\tx\ty")
  with pytest.raises(DataError, match="line 1: the row holds a NUL byte"):
    create_processor("mrpc", skip_bad_rows=True).get_train_examples(folder)


# ---------------------------------------------------------------------------------------------
# One's own data.


def csv_task(folder, **options):
  return create_processor("csv", data_dir=str(folder), **options)


def test_test_files_need_no_labels_and_those_there_are_not_read(tmp_path):
  write(tmp_path, "train.tsv", "text_a\tlabel", "x\tb", "x\ta")
  processor = csv_task(tmp_path)
  write(tmp_path, "test.tsv", "text_a", "x")
  assert shown(processor.get_test_examples(str(tmp_path))) == [("test-1", "x", None, "a")]
  write(tmp_path, "test.tsv", "text_a\tlabel", "x\t-1")
  assert shown(processor.get_test_examples(str(tmp_path))) == [("test-1", "x", None, "a")]
  write(tmp_path, "dev.tsv", "text_a", "x")
  with pytest.raises(DataError, match="column 'label' is not in the header"):
    processor.get_dev_examples(str(tmp_path))


def test_names_need_a_header(tmp_path):
  write(tmp_path, "dev.tsv", "x\t1")
  with pytest.raises(DataError, match="'text_a' is not in the file, which has no header"):
    csv_task(tmp_path, header=False, labels=["1"]).get_dev_examples(str(tmp_path))


def test_a_column_called_by_a_number(tmp_path):
  write(tmp_path, "dev.tsv", "1\t0", "label\ttext")
  processor = csv_task(tmp_path, text_a_column="0", label_column="1", labels=["label"])
  assert shown(processor.get_dev_examples(str(tmp_path))) == [("dev-1", "text", None, "label")]


@pytest.mark.parametrize("header", [True, False])
def test_jsonl(tmp_path, header):
  rows = [{"text_a": "x", "label": 10}, {"id": 7, "text_a": "y", "label": 9, "text_b": "z"}]
  write(tmp_path, "train.jsonl", *map(json.dumps, rows))
  processor = csv_task(tmp_path, header=header)
  assert processor.get_labels() == ["9", "10"]
  examples = processor.get_train_examples(str(tmp_path))
  assert shown(examples) == [("train-1", "x", None, "10"), ("7", "y", "z", "9")]
  write(tmp_path, "dev.jsonl", '{"text_a": 5, "label": 9}')
  with pytest.raises(DataError, match=r"line 1: column 0 \(text_a\) contains 5, not text"):
    processor.get_dev_examples(str(tmp_path))


def test_multi_label(tmp_path):
  write(tmp_path, "train.tsv", "text_a\tlabel", "x\tred, blue", "y\t", "z\tgreen")
  processor = csv_task(tmp_path, problem_type="multi_label")
  assert processor.get_labels() == ["blue", "green", "red"]
  examples = processor.get_train_examples(str(tmp_path))
  assert [e.label for e in examples] == [("red", "blue"), (), ("green",)]
  write(tmp_path, "dev.jsonl", '{"text_a": "x", "label": ["red", "green"]}', '{"text_a": "y"}')
  examples = processor.get_dev_examples(str(tmp_path))
  assert [e.label for e in examples] == [("red", "green"), ()]
  write(tmp_path, "dev.tsv", "text_a\tlabel", "x\tred,pink")
  with pytest.raises(DataError, match="line 2: the label 'pink' is unknown"):
    processor.get_dev_examples(str(tmp_path))
  write(tmp_path, "test.tsv", "text_a", "x")
  assert processor.get_test_examples(str(tmp_path))[0].label == ()


def test_given_labels_keep_their_order_and_are_all(tmp_path):
  write(tmp_path, "train.tsv", "text_a\tlabel", "x\ta", "x\tb", "x\tc")
  processor = csv_task(tmp_path, labels=["b", "a"])
  assert processor.get_labels() == ["b", "a"]
  with pytest.raises(DataError, match=r"line 4: .*'c' .*: 'b', 'a'"):
    processor.get_train_examples(str(tmp_path))


def test_bad_rows_of_own_data(tmp_path):
  write(tmp_path, "train.csv", "text_a,label", "x,a", "short", "x,y,b", "x,", '"x"y,c', "z,a")
  said = r"line 3: column 1 .* 4 of 6 rows are malformed: .*1 \(line 6\) the quoting is broken"
  with pytest.raises(DataError, match=said):
    csv_task(tmp_path).get_train_examples(str(tmp_path))
  processor = csv_task(tmp_path, skip_bad_rows=True)
  assert [e.text_a for e in processor.get_train_examples(str(tmp_path))] == ["x", "z"]
  assert sorted(line for _, line in processor.bad_rows) == [3, 4, 5, 6]
