"""Texts to ids with one of `MAKERS`, in one thread: a worker of `tokenization.py`.

text_ids.py SYSTEM VOCAB_FILE
"""

import array
import itertools
import json
import os
import pathlib
import sys
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import serving

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def _ours(vocab_file):
  return _full_tokenizer(vocab_file).texts_to_ids


def _tokens(vocab_file):
  tokenizer = _full_tokenizer(vocab_file)
  return lambda texts: [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(t)) for t in texts]


def _step_by_step(vocab_file):
  """What `FullTokenizer` is defined to do, without the table of words."""
  tokenizer = _full_tokenizer(vocab_file)
  split, pieces_of = tokenizer.basic_tokenizer.tokenize, tokenizer.wordpiece_tokenizer.tokenize
  convert, join = tokenizer.convert_tokens_to_ids, itertools.chain.from_iterable
  return lambda texts: [convert(join(map(pieces_of, split(text)))) for text in texts]


def _batch(vocab_file):
  tokenizer = _full_tokenizer(vocab_file)
  return lambda texts: tokenizer.encode_batch(texts, max_seq_length=128)


def _full_tokenizer(vocab_file):
  sys.path.insert(0, str(ROOT))
  from bert.tokenization import FullTokenizer

  return FullTokenizer(vocab_file)


def _rust(vocab_file):
  from tokenizers import BertWordPieceTokenizer

  tokenizer = BertWordPieceTokenizer(vocab_file, lowercase=True)
  encode = tokenizer.encode_batch
  return lambda texts: [each.ids for each in encode(texts, add_special_tokens=False)]


def _rust_batch(vocab_file):
  from tokenizers import BertWordPieceTokenizer

  tokenizer = BertWordPieceTokenizer(vocab_file, lowercase=True)
  tokenizer.enable_truncation(128)
  tokenizer.enable_padding(length=128)
  return lambda texts: _arrays(tokenizer.encode_batch(texts))


def _arrays(encodings):
  import numpy as np

  columns = ("ids", "attention_mask", "type_ids")
  return [np.array([getattr(each, name) for each in encodings], np.int32) for name in columns]


MAKERS = {
  "ours": _ours,
  "ours, tokens": _tokens,
  "ours, step by step": _step_by_step,
  "ours, encode_batch": _batch,
  "tokenizers": _rust,
  "tokenizers, arrays": _rust_batch,
}


class Worker:
  """Measures one system on texts that lie in JSON files."""

  def __init__(self, system, vocab_file):
    self._make = lambda: MAKERS[system](vocab_file)
    self._texts = {}
    self._used = {}  # file -> function that has seen its texts

  def measure(self, file, warm):
    """Seconds `[wall, processor]` for all texts, by a tokenizer that has seen them or is new."""
    texts = self._read(file)
    encode = self._used[file] if warm else self._make()
    begin = time.perf_counter(), time.process_time()
    result = encode(texts)
    end = time.perf_counter(), time.process_time()
    self._used[file] = encode
    del result  # taking it apart is no part of the next turn
    return [end[0] - begin[0], end[1] - begin[1]]

  def write_ids(self, file, output):
    """Writes int32 lengths of all texts, then all ids; returns how many ids there are."""
    rows = self._make()(self._read(file))
    ids = array.array("i", itertools.chain.from_iterable(rows))
    pathlib.Path(output).write_bytes(array.array("i", map(len, rows)).tobytes() + ids.tobytes())
    return len(ids)

  def _read(self, file):
    if file not in self._texts:
      self._texts[file] = json.loads(pathlib.Path(file).read_text())
    return self._texts[file]


if __name__ == "__main__":
  worker = Worker(*sys.argv[1:])
  serving.serve({"measure": worker.measure, "write_ids": worker.write_ids})
