"""Every parser as a function of bytes, for tests/system/fuzz_test.py and
tools/atheris_fuzz.py.

  TARGETS["squad"].run(b'{"data": 1}', folder)     # returns: the file was refused as it should be

A target writes the bytes to a file, reads that as a script would, and raises unless the file is
either used or refused: refused means the parser's own type of error, with the file's name in the
message. Where a file was used, what came of it is checked, too. The first byte often chooses among
options, so that a fuzzer reaches all of them.
"""

import contextlib
import gzip
import io
import json
import math
import pathlib
import re
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bert import predict, run_ner, tokenization
from bert.checkpoints import (
  config_files,
  label_map,
  numpy_reader,
  safetensors_file,
  torch_file,
  transformers_folder,
)
from bert.checkpoints.bundle_files import CheckpointError
from bert.io import record_files, tables, text_lines, tfrecord_bytes, vocabulary_kind
from bert.model.configuration import BertConfig
from bert.predicting import answer_lines
from bert.predicting.processors import name_texts
from bert.scripts import command_line, flag_groups
from bert.tasks import conll_files, glue, label_schemes, multiple_choice, squad, user_tables
from bert.text import corpus, corpus_statistics, sentences, text_files, vocabulary_file
from tests.kit import older_weights, predictors

# What breaks parsers: unfinished and misplaced syntax, numbers of all kinds, bytes of no text.
SNIPPETS = (
  *(b'"', b"'", b"\\", b"{", b"}", b"[", b"]", b":", b",", b"[" * 2000, b'{"a":' * 2000),
  *(b"\t", b"\n", b"\r\n", b"\n\n", b" ", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\x80"),
  *(b"1", b"-1", b"0", b"1.5", b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"9" * 5000),
  *(b"null", b"true", b"{}", b"[]", b'""', b'"\\ud800"', "\u2028é中\U0001f600\u0301".encode()),
  *(b"\xff" * 9, b"\xff" * 9 + b"\x01", b"\x80" * 20, b"\0" * 8, bytes(range(256))),
)

Parser = Callable[[bytes, pathlib.Path], None]


class Target(NamedTuple):
  """A parser to feed."""

  run: Parser  # takes the bytes, and an empty folder of its own which it may leave full
  seeds: Sequence[bytes]  # good input, from which a fuzzer starts
  needs_tensorflow: bool = False  # whether it imports that, which takes seconds


# Why the files so far were refused; emptied by who wants to know.
refusals: list[str] = []


@contextlib.contextmanager
def clear_errors(name: str, *kinds: type[Exception]):
  """Within the block, errors of exactly these kinds that name the file are as they should be."""
  try:
    yield
  except kinds as error:
    if type(error) not in kinds or name not in str(error):
      raise AssertionError(f"unclear: {type(error).__name__}: {error}") from error
    refusals.append(str(error))


def _written(folder: pathlib.Path, name: str, data: bytes) -> str:
  path = folder / name
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_bytes(data)
  return str(path)


def _first_byte(data: bytes) -> tuple[int, bytes]:
  return (data[0] if data else 0), data[1:]


# ---------------------------------------------------------------------------------------------
# Models: vocabulary, configuration, tokenizer.


def read_vocabulary(data: bytes, folder: pathlib.Path) -> None:
  """`load_vocab`, and `read_tokens`, which has to see the same lines."""
  path = _written(folder, "vocab.txt", data)
  with clear_errors("vocab.txt", tokenization.VocabularyError):
    vocab = tokenization.load_vocab(path)
    tokens = vocabulary_file.read_tokens(path)
    assert all(tokens[index] == token for token, index in vocab.items())


def read_config(data: bytes, folder: pathlib.Path) -> None:
  """Either kind of configuration; one that is used has to be writable, and to stay the same."""
  path = _written(folder, "config.json", data)
  with clear_errors("config.json", ValueError):
    config = BertConfig.from_json_file(path)
    assert BertConfig.from_dict(json.loads(config.to_json_string())).count_parameters() > 0


def read_transformers_files(data: bytes, folder: pathlib.Path) -> None:
  """What lies beside transformers' weights."""
  weights = folder / "model.safetensors"
  for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
    _written(folder, name, data)
  with clear_errors("config.json", ValueError, CheckpointError):
    config_files.read(folder / "config.json")
  with clear_errors("config.json", CheckpointError):
    transformers_folder.read_architecture(weights)
    transformers_folder.read_do_lower_case(weights)
  with clear_errors("tokenizer.json", ValueError):
    vocabulary_kind.vocab_txt(folder / "tokenizer.json")


PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] a ##a b ##b un ##want ##ed , . ! 1 ##1 é ##é 中 博 ß σ ς i"


def tokenize(data: bytes, folder: pathlib.Path) -> None:
  """The table of words against the six steps, cold and warm; ids and places against tokens."""
  choice, data = _first_byte(data)
  text = data.decode("utf-8", "surrogateescape" if choice & 2 else "ignore")
  path = _written(folder, "vocab.txt", "\n".join(PIECES.split()).encode())
  tokenizer = tokenization.FullTokenizer(path, do_lower_case=bool(choice & 1))
  tokens = tokenizer.tokenize(text)
  words = tokenizer.basic_tokenizer.tokenize(text)
  steps = [piece for word in words for piece in tokenizer.wordpiece_tokenizer.tokenize(word)]
  assert tokens == steps == tokenizer.tokenize(text)
  assert tokenizer.text_to_ids(text) == tokenizer.convert_tokens_to_ids(tokens)
  assert [span.token for span in tokenizer.tokenize_with_offsets(text)] == tokens


# ---------------------------------------------------------------------------------------------
# Data of tasks.

_TASKS = ("cola", "mnli", "mrpc", "sts-b", "sst-2", "qnli", "qqp", "xnli")


def read_glue(data: bytes, folder: pathlib.Path) -> None:
  """A task's TSV file, bad rows refused or left out."""
  choice, data = _first_byte(data)
  name = _TASKS[choice % len(_TASKS)]
  processor = glue.create_processor(name, skip_bad_rows=bool(choice & 64))
  file = "xnli.dev.tsv" if name == "xnli" else "train.tsv"
  _written(folder, file, data)
  with clear_errors(file, tables.DataError, tables.ShortRowError):
    read = processor.get_dev_examples if name == "xnli" else processor.get_train_examples
    _check_examples(read(str(folder)), processor)


def _check_examples(found, processor) -> None:
  assert found
  for example in found:
    assert isinstance(example.text_a, str)
    if processor.problem_type == "regression":
      assert math.isfinite(example.label)
    else:
      names = example.label if isinstance(example.label, tuple) else (example.label,)
      assert set(names) <= set(processor.get_labels())


def read_table(data: bytes, folder: pathlib.Path) -> None:
  """One's own TSV, CSV or JSON Lines, as any kind of problem, with labels given or inferred."""
  choice, data = _first_byte(data)
  file = "train." + ("tsv", "csv", "jsonl")[choice % 3]
  _written(folder, file, data)
  with clear_errors(file, tables.DataError, tables.ShortRowError):
    processor = user_tables.CsvProcessor(
      str(folder),
      problem_type=("classification", "multi_label", "regression")[choice // 4 % 3],
      labels=["0", "1"] if choice & 64 else None,
      skip_bad_rows=bool(choice & 128),
    )
    found = processor.get_train_examples(str(folder))
    _check_examples(found, processor)
    assert all(isinstance(label, str) for label in processor.get_labels())


def read_swag(data: bytes, folder: pathlib.Path) -> None:
  """Questions with choices."""
  choice, data = _first_byte(data)
  file = "train." + ("csv", "tsv", "jsonl")[choice % 3]
  path = _written(folder, file, data)
  with clear_errors(file, tables.DataError, tables.ShortRowError):
    found = multiple_choice.read_swag_examples(path, "train", bool(choice & 64), bool(choice & 128))
    for question in found:
      assert len(question.choices) > 1
      assert question.label is None or 0 <= question.label < len(question.choices)


def read_squad(data: bytes, folder: pathlib.Path) -> None:
  """SQuAD's JSON, plain or compressed, of both versions."""
  choice, data = _first_byte(data)
  file = "train.json.gz" if choice & 4 else "train.json"
  path = _written(folder, file, data)
  with clear_errors(file, tables.DataError):
    for question in squad.read_squad_examples(path, bool(choice & 1), bool(choice & 2)):
      if question.start_position is not None and not question.is_impossible:
        assert 0 <= question.start_position <= question.end_position < len(question.doc_tokens)


def read_conll(data: bytes, folder: pathlib.Path) -> None:
  """Words with their labels, in any scheme."""
  choice, data = _first_byte(data)
  path = _written(folder, "train.conll", data)
  form = conll_files.ConllFormat(
    separator=("whitespace", "tab", "comma", " | ")[choice % 4],
    token_column=(0, 1, -1)[choice // 4 % 3],
    label_column=(-1, 0, 2)[choice // 16 % 3],
    scheme=label_schemes.SCHEMES[choice // 4 % len(label_schemes.SCHEMES)],
    comment_prefix="#" if choice & 64 else "",
  )
  with clear_errors("train.conll", tables.DataError, conll_files._LabelError):
    found = conll_files.read_conll(path, form, needs_labels=bool(choice & 128))
    for example in found.examples:
      assert all(word.strip(" \t") for word in example.words)
      labels = example.labels
      if labels is not None:
        assert len(labels) == len(example.words)
        bio = label_schemes.convert_labels(labels, form.scheme, form.scheme)
        assert label_schemes.entities_of(bio, form.scheme) == label_schemes.entities_of(
          labels, form.scheme
        )


def read_predictions(data: bytes, folder: pathlib.Path) -> None:
  """Lines to be answered, for models that take a text, two, or a text and several."""
  choice, data = _first_byte(data)
  path = _written(folder, "texts.jsonl", data)
  names = (["text_a"], ["text_a", "text_b"], ["context", "question"], ["choices", "context"])
  inputs = names[choice % 4]
  with flag_groups.defined_flags(predict.define_flags):
    command_line.parse(["predict.py", f"--task={'vectors' if choice & 4 else 'answers'}"])
    with clear_errors("texts.jsonl", ValueError, tables.DataError):
      model = predictors.predictor(
        lambda item: name_texts(item, inputs, ["choices"][: choice % 4 == 3]),
        lambda batch: {"length": np.array([len(text) for text in batch[inputs[0]]])},
        inputs,
        lambda item, outputs: {"length": int(outputs["length"]), "item": item},
      )
      items = answer_lines.parse_lines(text_lines.read_lines(path), path)
      for result in model.stream(items, path):
        text_lines.to_json(result)


# ---------------------------------------------------------------------------------------------
# Text to pre-train on.


class _WordTokenizer:
  def tokenize(self, text: str) -> list[str]:
    return text.split()


def read_corpus(data: bytes, folder: pathlib.Path) -> None:
  """Text in any form; read in ranges, it has the same documents as read at once."""
  choice, data = _first_byte(data)
  file = "text.txt.gz" if choice & 8 else "text.txt"
  path = _written(folder, file, data)
  form = corpus.TextFormat(bool(choice & 1), bool(choice & 2), "text" if choice & 4 else "")
  with clear_errors(file, text_files.CorpusError):
    found = text_files.find_input_files(path)
    whole = corpus.read_sentences(found, _WordTokenizer(), text_format=form)
    documents = corpus.split_documents(whole)
    parts: list[list[str] | None] = []
    for part in text_files.text_ranges(found, target_bytes=7 + choice):
      for text in corpus.read_range(part, form, corpus_statistics.TextStatistics()):
        if text is None or text.split():
          parts.append(text and text.split())
    assert corpus.split_documents(parts) == documents


def split_sentences(data: bytes, folder: pathlib.Path) -> None:
  """Sentences have all that the paragraph has but blanks."""
  del folder
  text = data.decode("utf-8", "replace")
  found = sentences.split_sentences(text)
  assert re.sub(r"\s", "", "".join(found)) == re.sub(r"\s", "", text)


# ---------------------------------------------------------------------------------------------
# Binary files.


def read_frames(data: bytes, folder: pathlib.Path) -> None:
  """A TFRecord file; framed again, its records make the same file."""
  del folder
  choice, data = _first_byte(data)
  if choice & 1:  # one record with right checksums
    data = tfrecord_bytes.framed(data)
  with clear_errors("", tfrecord_bytes.FrameError):
    records = list(tfrecord_bytes.unframed(io.BytesIO(data)))
    assert b"".join(map(tfrecord_bytes.framed, records)) == data


def read_examples(data: bytes, folder: pathlib.Path) -> None:
  """Records of whatever content, as a classifier and as pre-training reads them."""
  from bert.pretraining import record_checks
  from bert.training import input_pipeline

  choice, data = _first_byte(data)
  content = data if choice & 2 else tfrecord_bytes.framed(data)
  path = _written(folder, "train.tfrecord", gzip.compress(content) if choice & 1 else content)
  with clear_errors("train.tfrecord", record_files.RecordError):
    input_pipeline._check_file(path, input_pipeline.classifier_features(4), limit=None)
  fmt = record_checks.RecordFormat(4, 2, 10, "config.json", bool(choice & 4), bool(choice & 8))
  with clear_errors("train.tfrecord", record_files.RecordError):
    record_checks.check_records([path], fmt, limit=None)


def read_small_json(data: bytes, folder: pathlib.Path) -> None:
  """The small files that runs leave for other runs."""
  from bert.checkpoints import bundle_files, reading
  from bert.pretraining import record_checks

  choice, data = _first_byte(data)
  if choice % 3 == 0:
    path = _written(folder, "train.tfrecord", tfrecord_bytes.framed(b""))
    _written(folder, ".train.tfrecord.manifest.json", data)
    fmt = record_checks.RecordFormat(4, 2, 10, "config.json")
    with clear_errors("train.tfrecord", record_files.RecordError):
      record_checks.check_manifests([path], fmt)
      list(record_files.records_of(path))
  elif choice % 3 == 1:
    _written(folder, "model.ckpt-1.state.json", data)
    with clear_errors("model.ckpt-1.state.json", bundle_files.CheckpointError):
      reading.read_state(str(folder / "model.ckpt-1"))
  else:
    _written(folder, "label_map.json", data)
    with clear_errors("label_map.json", ValueError):
      assert all(isinstance(label, str) for label in label_map.read(str(folder)))


def _block(content: bytes) -> bytes:
  """A block of a checkpoint's index, its checksum right whatever it holds."""
  content = content + struct.pack("<II", 0, 1)  # its one restart, where a key is spelled out
  return content + b"\0" + struct.pack("<I", tfrecord_bytes.masked_crc32c(content + b"\0"))


def index_of(entries: bytes) -> bytes:
  """A checkpoint's index whose entries are these bytes."""
  entry_block = _block(entries)
  handle = tfrecord_bytes.varint(0) + tfrecord_bytes.varint(len(entry_block) - 5)
  index_block = _block(bytes([0, 1, len(handle)]) + b"~" + handle)
  places = tfrecord_bytes.varint(0) * 2
  places += tfrecord_bytes.varint(len(entry_block)) + tfrecord_bytes.varint(len(index_block) - 5)
  footer = places.ljust(40, b"\0") + struct.pack("<Q", numpy_reader.MAGIC)
  return entry_block + index_block + footer


def entry(key: bytes, message: bytes) -> bytes:
  """One entry of an index, its key spelled out."""
  return bytes([0]) + b"".join(map(tfrecord_bytes.varint, (len(key), len(message)))) + key + message


HEADER = entry(b"", bytes([8, 1]))  # one data file
VALUES = bytes(range(16))
# float32 [2, 2] at byte 0 of file 0, 16 bytes, and their checksum
TENSOR = bytes([8, 1, 18, 8, 18, 2, 8, 2, 18, 2, 8, 2, 40, 16, 53]) + struct.pack(
  "<I", tfrecord_bytes.masked_crc32c(VALUES)
)


def read_checkpoint(data: bytes, folder: pathlib.Path) -> None:
  """A checkpoint's index: as it is, or with right checksums, or a single tensor's description."""
  choice, data = _first_byte(data)
  if choice % 4 == 1:
    data = index_of(data)
  elif choice % 4 == 2:
    data = index_of(HEADER + data)
  elif choice % 4 == 3:
    data = index_of(HEADER + entry(b"a", data))
  _written(folder, "model.ckpt.index", data)
  _written(folder, "model.ckpt.data-00000-of-00001", VALUES)
  with clear_errors("model.ckpt", numpy_reader.CheckpointError):
    reader = numpy_reader.CheckpointReader(str(folder / "model.ckpt"))
    for name, (shape, _) in reader.contents.items():
      with clear_errors("model.ckpt", numpy_reader.CheckpointError):
        assert list(reader.read(name).shape) == shape


def read_safetensors(data: bytes, folder: pathlib.Path) -> None:
  """Weights: any bytes, or a header of the right length before 16 bytes of values."""
  choice, data = _first_byte(data)
  if choice & 1:
    data = struct.pack("<Q", len(data)) + data + VALUES
  path = _written(folder, "model.safetensors", data)
  with clear_errors("model.safetensors", CheckpointError):
    weights = transformers_folder.open_weights(path)
    for name, (shape, dtype) in weights.contents.items():
      found = weights.read(name)
      assert (found.shape, found.dtype) == (shape, dtype)


def read_safetensors_index(data: bytes, folder: pathlib.Path) -> None:
  """The index of weights in several files, one of which is there."""
  safetensors_file.write(folder / "a.safetensors", {"a": np.zeros([2], np.float32)})
  path = _written(folder, "model.safetensors.index.json", data)
  # The index, or one of its files.
  with clear_errors(str(folder), CheckpointError):
    weights = safetensors_file.open_weights(path)
    assert weights.tensors
    for name in weights.tensors:
      weights.read(name)


def read_torch(data: bytes, folder: pathlib.Path) -> None:
  """PyTorch's weights: any bytes, or a pickle in an archive beside 16 bytes of values."""
  choice, data = _first_byte(data)
  if choice & 1:
    data = older_weights.zip_of(data, {"0": np.frombuffer(VALUES, np.float32)})
  path = _written(folder, "pytorch_model.bin", data)
  with clear_errors("pytorch_model.bin", CheckpointError):
    weights = torch_file.open_weights(path)
    assert sum(weights.read(name).nbytes for name in weights.tensors) <= 8 * len(data)


# ---------------------------------------------------------------------------------------------
# The command line.


def read_flags(data: bytes, folder: pathlib.Path) -> None:
  """Words of a command line, one on each line."""
  del folder
  words = data.decode("utf-8", "replace").split("\n")
  with flag_groups.defined_flags(run_ner.define_flags), contextlib.redirect_stdout(io.StringIO()):
    with clear_errors("", command_line.UsageError), contextlib.suppress(SystemExit):
      command_line.parse(["run_ner.py", *words])


# ---------------------------------------------------------------------------------------------
# All of them, with good input.

_CONFIG = (
  b'{"vocab_size": 10, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, '
  b'"intermediate_size": 8, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, '
  b'"attention_probs_dropout_prob": 0.1, "max_position_embeddings": 8, "type_vocab_size": 2, '
  b'"initializer_range": 0.02}'
)
_TRANSFORMERS_CONFIG = (
  b'{"model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": 1e-12, "is_decoder": false, '
  b'"architectures": ["BertModel"], "hidden_size": 4, "num_attention_heads": 2, "vocab_size": 9}'
)
_TOKENIZER = (
  b'{"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 1}}, '
  b'"added_tokens": [{"id": 0, "content": "a"}]}'
)
_TSV = {
  "cola": b"g\t1\t\tIt is.\ng\t0\t*\tIs it.\n",
  "mnli": b"0\t1\t2\t3\t4\t5\t6\t7\t8\t9\tlabel\nx\t.\t.\t.\t.\t.\t.\t.\ta\tb\tneutral\n",
  "mrpc": b"Quality\t1\t2\ta\tb\n1\t1\t2\tIt is.\tIs it.\n",
  "sts-b": b"sentence1\tsentence2\tscore\na\tb\t2.5\n",
  "sst-2": b"sentence\tlabel\nIt is.\t1\n",
  "qnli": b"question\tsentence\tlabel\na\tb\tentailment\n",
  "qqp": b"question1\tquestion2\tis_duplicate\na\tb\t1\n",
  "xnli": b"language\tlabel\t.\t.\t.\t.\ta\tb\nzh\tneutral\t.\t.\t.\t.\ta\tb\n",
}
_OWN_TABLES = (
  b"text_a\tlabel\nIt is.\t1\n",
  b'text_a,label\n"It is, ""so""",1\n',
  b'{"text_a": "It is.", "label": "1"}\n{"text_a": "So", "label": ["0", 1]}\n',
)
_SWAG = (
  b'sent1,sent2,ending0,ending1,label\n"He, is",He,a,b,1\n',
  b"startphrase\tending0\tending1\tlabel\nHe is\ta\tb\t1\n",
  b'{"sent1": "a", "ending0": "b", "ending1": "c", "label": 0}\n',
)
_SQUAD = (
  b'{"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "Built in 1887.", '
  b'"qas": [{"id": "q1", "question": "When?", "is_impossible": false, "answers": [{"text": "1887",'
  b' "answer_start": 9}]}, {"id": "q2", "question": "Who?", "is_impossible": true, '
  b'"answers": []}]}]}]}'
)
_CONLL = (
  b"-DOCSTART- O\n\nEU B-ORG\nrejects O\n\n# Peter\nPeter B-PER\nBlackburn I-PER\n",
  b"EU\t1\tS-ORG\nAda\t2\tB-PER\nLove\t3\tE-PER\n",
)
_TEXTS = (
  b'A text.\n{"text_a": "b"}\n',
  b'Who was he ? ||| A puppeteer\n{"text_a": "a", "text_b": "b"}\nA text.\n',
  b'{"context": "It was me.", "question": "Who?"}\n',
  b'{"context": "She", "choices": ["is.", "are."]}\n',
)
_SHORT_LINES = b"a b\n\nc\n \r\nd e f\n\xc2\xa0\ng\n\n\nh\n" * 3  # a range has one or two
_CORPUS = (
  b"One sentence. Another one!\nA line.\n\nThe second document.\r\n\n",
  b'{"text": "One line.\\nAnother."}\n{"text": "The second."}\n',
)
# A tf.train.Example: ids int64 [4], and a float.
_EXAMPLE = next(
  tfrecord_bytes.encode_examples(
    {
      **{name: np.ones([1, 4], np.int64) for name in ("input_ids", "input_mask", "segment_ids")},
      **{name: np.ones([1, 2], np.int64) for name in ("masked_lm_ids", "masked_lm_positions")},
      "masked_lm_weights": np.ones([1, 2], np.float32),
      **{n: np.ones([1, 1], int) for n in ("label_ids", "is_real_example", "next_sentence_labels")},
    }
  )
)
_SMALL_JSON = (
  b'\0{"records": 1, "bytes": 16, "max_seq_length": 4, "max_predictions_per_seq": 2, '
  b'"vocab_size": 10, "vocabulary": "abc", "dynamic_masking": false, "compression": ""}',
  b'\1{"crc32": 1, "format_version": 1, "files": {".index": {"bytes": 1}}, "state": {}}',
  b'\2{"O": 0, "B-PER": 1}',
)
_SAFETENSORS_HEADER = (
  b'{"__metadata__": {"format": "pt"}, "bert.pooler.dense.weight": '
  b'{"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}'
)
_STORAGE = older_weights.storage("FloatStorage", "0", 4)
_FLAGS = b"--do_train\n--data_dir=x\n--max_seq_length\n32\n--nodo_eval\n--learning_rate=1e-5"


def _each(choices: Sequence[int], *contents: bytes) -> list[bytes]:
  return [bytes([choice]) + content for choice in choices for content in contents]


TARGETS = {
  "vocabulary": Target(read_vocabulary, ["\n".join(PIECES.split()).encode(), b"[PAD]\r\n[UNK]\n"]),
  "config": Target(read_config, [_CONFIG, _TRANSFORMERS_CONFIG]),
  "transformers": Target(read_transformers_files, [_TOKENIZER, _TRANSFORMERS_CONFIG]),
  "tokenizer": Target(
    tokenize, _each(range(4), "Unwanted, aab! é博 [MASK]".encode(), "a\u0301\u2028b".encode())
  ),
  "glue": Target(read_glue, [bytes([n + 64 * (n % 2)]) + _TSV[t] for n, t in enumerate(_TASKS)]),
  "tables": Target(
    read_table,
    [bytes([c]) + _OWN_TABLES[c % 3] for c in (*range(12), 64, 65, 66, 128, 129, 130, 194)],
  ),
  "swag": Target(read_swag, [bytes([c]) + _SWAG[c % 3] for c in (0, 1, 2, 64, 65, 66, 129, 194)]),
  "squad": Target(
    read_squad, [*_each(range(4), _SQUAD), *_each((4, 7), gzip.compress(_SQUAD, mtime=0))]
  ),
  "conll": Target(read_conll, _each((0, 1, 4, 8, 12, 64, 128, 132, 192), *_CONLL)),
  "predictions": Target(read_predictions, [bytes([c]) + _TEXTS[c % 4] for c in range(8)]),
  "corpus": Target(
    read_corpus,
    [
      *_each((0, 1, 2, 3, 4, 16), *_CORPUS),
      *_each((0, 1, 2, 3), _SHORT_LINES, b"-"),
      *_each((8, 11), gzip.compress(_CORPUS[0], mtime=0)),
      *_each((12,), gzip.compress(_CORPUS[1], mtime=0)),
    ],
  ),
  "sentences": Target(split_sentences, ['He said: "No." Dr. X… 你好。“再见！” (So.)'.encode()]),
  "frames": Target(
    read_frames, [b"\1abc", b"\0" + tfrecord_bytes.framed(b"abc") + tfrecord_bytes.framed(b"")]
  ),
  "checkpoint_index": Target(
    read_checkpoint,
    [
      b"\0" + index_of(HEADER + entry(b"a", TENSOR)),
      b"\1" + HEADER + entry(b"a", TENSOR),
      b"\2" + entry(b"a", TENSOR) + entry(b"b", TENSOR),
      b"\3" + TENSOR,
    ],
  ),
  "safetensors": Target(
    read_safetensors,
    [
      b"\1" + _SAFETENSORS_HEADER,
      b"\0" + struct.pack("<Q", len(_SAFETENSORS_HEADER)) + _SAFETENSORS_HEADER + VALUES,
    ],
  ),
  "safetensors_index": Target(
    read_safetensors_index,
    [b'{"metadata": {"total_size": 8}, "weight_map": {"a": "a.safetensors"}}'],
  ),
  "torch": Target(
    read_torch,
    [
      b"\1" + older_weights.pickled({"a": older_weights.tensor(_STORAGE, (2, 2), (2, 1))}),
      *(b"\0" + older_weights.torch_bytes({"a": np.zeros(4, "f4")}, f) for f in ("zip", "pickles")),
    ],
  ),
  "flags": Target(read_flags, [_FLAGS, b"--helpfull", b"--undefok=a,b\n--a\n--\nc"]),
  "examples": Target(
    read_examples,
    [*_each((0, 1, 4, 8), _EXAMPLE), *_each((2, 3), tfrecord_bytes.framed(_EXAMPLE) * 2)],
    needs_tensorflow=True,
  ),
  "small_json": Target(read_small_json, _SMALL_JSON, needs_tensorflow=True),
}
