"""Names in a model of ONNX. Needs no library."""

INPUTS = {
  "input_ids": "input_ids",
  "input_mask": "attention_mask",
  "segment_ids": "token_type_ids",
}
"""Names of `task_head.SEQUENCES` -> names of a model's inputs, those of transformers' exports."""

INT8_BITS = "bert_int8_bits"
"""The entry in a quantized model's metadata that holds the number of bits of its weights."""
