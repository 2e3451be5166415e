"""transformers for `text_vectors.py`: its pipeline, and batches sorted by length by hand."""

import functools
import json
import os
import pathlib
import sys
import time

import numpy as np
import torch
import transformers
from serving import serve
from torch_weights import config_of, load_encoder

BATCH_SIZE = 32


class Vectors:
  """Answers requests."""

  def __init__(self, weights, texts, max_seq_length, npz):
    self._texts = json.loads(pathlib.Path(texts).read_text())
    self._weights, self._length, self._npz = weights, int(max_seq_length), npz
    self._tokenizer = transformers.BertTokenizerFast(os.path.join(weights, "vocab.txt"))
    self._lengths = [len(ids) for ids in self._ids()]

  def _ids(self):
    options = {"truncation": True, "max_length": self._length}
    return self._tokenizer(self._texts, **options)["input_ids"]

  @functools.cache  # noqa: B019  (there is one object, and it lives as long as the process)
  def _model(self, dtype):
    sizes = json.loads(pathlib.Path(self._weights, "bert_config.json").read_text())
    model = transformers.BertModel(config_of(sizes))
    load_encoder(model, self._npz)
    return model.to(getattr(torch, dtype)).eval()

  @functools.cache  # noqa: B019
  def _pipeline(self):
    model = self._model("float32")
    return transformers.pipeline("feature-extraction", model=model, tokenizer=self._tokenizer)

  def _vectors(self, way):
    return self._vectors_in_order() if way == "pipeline" else self._vectors_sorted(way)

  def _vectors_in_order(self):
    options = {"truncation": True, "max_length": self._length}
    outputs = self._pipeline()(
      self._texts, batch_size=BATCH_SIZE, return_tensors=True, tokenize_kwargs=options
    )
    # A batch's padding stays in its outputs; the lengths, counted at the start, leave it out.
    pairs = zip(outputs, self._lengths, strict=True)
    return [output[0, :length].mean(dim=0).numpy() for output, length in pairs]

  @torch.inference_mode()
  def _vectors_sorted(self, dtype):
    ids, model = self._ids(), self._model(dtype)
    order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
    vectors = [None] * len(ids)
    for start in range(0, len(ids), BATCH_SIZE):
      chosen = order[start : start + BATCH_SIZE]
      batch = self._tokenizer.pad({"input_ids": [ids[i] for i in chosen]}, return_tensors="pt")
      hidden = model(**batch).last_hidden_state.float()
      mask = batch["attention_mask"][..., None]
      for index, vector in zip(chosen, (hidden * mask).sum(1) / mask.sum(1), strict=True):
        vectors[index] = vector.numpy()
    return vectors

  def seconds(self, way):
    """Of one pass over all texts."""
    start = time.perf_counter()
    self._vectors(way)
    return time.perf_counter() - start

  def write_vectors(self, way, path):
    """Writes float32 `[texts, W]`."""
    np.save(path, np.stack(self._vectors(way)))


if __name__ == "__main__":
  vectors = Vectors(*sys.argv[1:])
  serve({"seconds": vectors.seconds, "write_vectors": vectors.write_vectors})
