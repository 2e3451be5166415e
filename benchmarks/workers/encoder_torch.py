"""transformers' encoder for `encoder_inference.py`; also writes it as ONNX for onnxruntime."""

import json
import os
import sys

import numpy as np
import torch
import transformers
from encoder_inputs import make_inputs
from serving import milliseconds, serve
from torch_weights import config_of, load_encoder

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


class Outputs(torch.nn.Module):
  """A `BertModel` as a function of three tensors, for ONNX."""

  def __init__(self, model):
    super().__init__()
    self.model = model

  def forward(self, ids, mask, segments):
    outputs = self.model(input_ids=ids, attention_mask=mask, token_type_ids=segments)
    return outputs.last_hidden_state, outputs.pooler_output


class Encoders:
  """Answers requests."""

  def __init__(self, weights, npz):
    with open(os.path.join(weights, "bert_config.json")) as reader:
      self._sizes = json.load(reader)
    self._npz = npz
    self._models = {}

  def _model(self, way):
    if way not in self._models:
      attention = "eager" if way == "onnx" else "sdpa"
      config = config_of(self._sizes, attn_implementation=attention)
      model = transformers.BertModel(config)
      load_encoder(model, self._npz)
      dtype = torch.bfloat16 if way == "bfloat16" else torch.float32
      self._models[way] = Outputs(model.to(dtype)).eval()
    return self._models[way]

  def _inputs(self, batch, length, padded=False):
    arrays = make_inputs(batch, length, self._sizes["vocab_size"], padded)
    return [torch.from_numpy(array) for array in arrays]

  @torch.inference_mode()
  def time(self, way, batch, length, seconds):
    """Median milliseconds of a call; `way` is float32 or bfloat16, weights and all."""
    model, inputs = self._model(way), self._inputs(batch, length)
    model(*inputs)
    return milliseconds(lambda: model(*inputs)[1].float().numpy(), seconds)

  @torch.inference_mode()
  def outputs(self, way, batch, length, path):
    """Writes the vectors of the first tokens for inputs with padding."""
    vectors = self._model(way)(*self._inputs(batch, length, True))[0]
    np.save(path, vectors[:, 0].float().numpy())

  def write_onnx(self, path):
    """Writes the float32 model, batch and length unknown."""
    axes = {name: {0: "batch", 1: "length"} for name in NAMES}
    torch.onnx.export(
      self._model("onnx"),
      tuple(self._inputs(2, 16)),
      path,
      input_names=NAMES,
      output_names=["sequence_output", "pooled_output"],
      dynamic_axes=axes,
      dynamo=False,
    )


if __name__ == "__main__":
  encoders = Encoders(*sys.argv[1:])
  serve(
    {"time": encoders.time, "outputs": encoders.outputs, "write_onnx": encoders.write_onnx},
  )
