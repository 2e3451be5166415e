"""Floating-point operations of training: the measure by which recipes and sizes are compared.

Matrix products alone, as in Kaplan et al. 2020 (arXiv:2001.08361, section 2.1 and table 1): a
weight that is multiplied costs two operations for each token forward and four backward, "6 N for
each token". Beyond 6 N, the attention scores and the vocabulary's product, which that count leaves
out, are counted as well, the latter for predicted tokens alone. Lookups of embeddings, activations,
softmax, dropout and LayerNorm do no product and are not counted. (google-research/electra's
`flops_computation.py` counts these, lookups as products, and the backward pass once, not twice: its
figures differ.) Padding is not counted, whether or not an implementation computes it.
"""

from typing import Any

from bert.model.configuration import BertConfig

# The backward pass has two products for each one of the forward pass: with respect to the input
# and with respect to the weight.
_PASSES = 3


def pretraining_flops(
  config: BertConfig, tokens: Any, pairs: Any, predictions: Any, sequences: Any
) -> Any:
  """FLOPs of one step, or of a whole run, of `run_pretraining.py`.

  With width W, inner width I, L layers and a vocabulary of V, forward:

    each token         L * (8 W^2 + 4 W I)    query, key, value, output; the two of feed-forward
    each pair          L * 4 W                scores, and the sum of values by them
    each prediction    2 W^2 + 2 W V          the head's transform, and the scores of all words
    each sequence      2 W^2 + 4 W            the pooler, and next sentence's two classes

  and three times that with the backward pass. Numbers may be Python's or tensors.

  Args:
    config: of the model.
    tokens: without padding, over all sequences.
    pairs: the sum of the squares of the sequences' lengths.
    predictions: masked tokens.
    sequences: their number.

  Returns:
    The operations, in the type of the numbers.

  Example, BERT-Base as it was published (1,000,000 steps of 256, 9 in 10 of length 128):
    >>> base = BertConfig(30522)
    >>> def of(length, predicted):
    ...   return pretraining_flops(base, 256 * length, 256 * length**2, 256 * predicted, 256)
    >>> f"{9e5 * of(128, 20) + 1e5 * of(512, 77):.3g}"
    '2.38e+19'
  """
  width, inner = config.hidden_size, config.intermediate_size
  encoder = tokens * (8.0 * width * width + 4.0 * width * inner) + pairs * (4.0 * width)
  heads = predictions * (2.0 * width * width + 2.0 * width * config.vocab_size)
  heads += sequences * (2.0 * width * width + 4.0 * width)
  return _PASSES * (config.num_hidden_layers * encoder + heads)
