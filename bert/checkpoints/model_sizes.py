"""How a model in a file differs from the model that is to take its weights, in its sizes.

describe_differences(shapes_in_the_file, shapes_of_the_model)
# "the file has hidden size 384, the model 768"
"""

import re
from collections.abc import Mapping, Sequence

Shapes = Mapping[str, Sequence[int]]

# A size -> names of variables that show it, and the dimension that does.
_SHOWN_BY = {
  "hidden size": (re.compile(r".+/self/query/kernel"), 0),
  "intermediate size": (re.compile(r".+/intermediate/dense/kernel"), 1),
  "vocabulary size": (re.compile(r".+/embeddings/word_embeddings"), 0),
  "embedding size": (re.compile(r".+/embeddings/word_embeddings"), 1),
  "positions": (re.compile(r".+/embeddings/position_embeddings"), 0),
  "segments": (re.compile(r".+/embeddings/token_type_embeddings"), 0),
  "labels": (re.compile(r"output_bias"), 0),
}
_LAYER = re.compile(r"(.+)/encoder/layer_\d+/")


def describe_differences(found: Shapes, wanted: Shapes) -> str:
  """Describes the sizes of a file and of a model that differ; empty if none that is known does.

  Args:
    found: name -> shape, of the file.
    wanted: name -> shape, of the model.

  Example:
    >>> name = "bert/encoder/layer_0/attention/self/query/kernel"
    >>> describe_differences({name: (384, 384)}, {name: (768, 768)})
    'the file has hidden size 384, the model 768'
  """
  theirs, ours = _sizes(found, wanted), _sizes(wanted, found)
  differing = [size for size in ours if size in theirs and theirs[size] != ours[size]]
  if "hidden size" in differing and "embedding size" in differing:
    differing.remove("embedding size")  # which follows it in most families
  return "; ".join(
    f"the file has {_written(size, theirs[size])}, the model {ours[size]}" for size in differing
  )


def _written(size: str, number: int) -> str:
  return f"{size} {number}" if size.endswith("size") else f"{number} {size}"


def _sizes(shapes: Shapes, others: Shapes) -> dict[str, int]:
  """Reads the sizes of a model from variables that the other model has as well."""
  sizes: dict[str, int] = {}
  for size, (names, dimension) in _SHOWN_BY.items():
    for name, shape in shapes.items():
      if name in others and names.fullmatch(name) and len(shape) > dimension:
        sizes.setdefault(size, shape[dimension])
  scopes = {match[1] for match in map(_LAYER.match, others) if match}
  layers = {match[0] for match in map(_LAYER.match, shapes) if match and match[1] in scopes}
  if layers:
    sizes["layers"] = len(layers)
  return sizes
