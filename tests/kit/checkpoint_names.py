"""The names of the tensors in checkpoints of the original."""

PRETRAINING_HEADS = [
  "cls/predictions/output_bias",
  "cls/predictions/transform/LayerNorm/beta",
  "cls/predictions/transform/LayerNorm/gamma",
  "cls/predictions/transform/dense/bias",
  "cls/predictions/transform/dense/kernel",
  "cls/seq_relationship/output_bias",
  "cls/seq_relationship/output_weights",
]
CLASSIFIER_HEADS = ["output_weights", "output_bias"]


def names_in_training(layers: int, heads: list[str]) -> set[str]:
  """All names of a training checkpoint of the original."""
  names = [f"bert/embeddings/{kind}_embeddings" for kind in ("word", "token_type", "position")]
  dense = ["bert/pooler/dense"]
  norms = ["bert/embeddings/LayerNorm"]
  for layer in (f"bert/encoder/layer_{i}/" for i in range(layers)):
    dense += [layer + "attention/self/" + part for part in ("query", "key", "value")]
    dense += [layer + part + "dense" for part in ("attention/output/", "intermediate/", "output/")]
    norms += [layer + part + "LayerNorm" for part in ("attention/output/", "output/")]
  names += [f"{place}/{part}" for place in dense for part in ("kernel", "bias")]
  names += [f"{place}/{part}" for place in norms for part in ("gamma", "beta")]
  names += heads
  slots = [f"{name}/{slot}" for name in names for slot in ("adam_m", "adam_v")]
  return {*names, *slots, "global_step"}
