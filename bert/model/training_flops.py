"""Floating-point operations of training: the measure by which settings and sizes are compared.

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
PASSES = 3


def pretraining_flops(
  config: BertConfig, tokens: Any, pairs: Any, predictions: Any, sequences: Any
) -> Any:
  """Computes FLOPs of one step, or of a whole run, of `run_pretraining.py`.

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

  Example, BERT-Base as it was published (1,000,000 steps of 256, 9 in 10 of length 128):
    >>> base = BertConfig(30522)
    >>> def of(length, predicted):
    ...   return pretraining_flops(base, 256 * length, 256 * length**2, 256 * predicted, 256)
    >>> f"{9e5 * of(128, 20) + 1e5 * of(512, 77):.3g}"
    '2.38e+19'
  """
  width = config.hidden_size
  heads = _words_flops(config, predictions)
  if config.family.has_pooler:
    heads += sequences * (2.0 * width * width + 4.0 * width)
  return PASSES * (encoder_flops(config, tokens, pairs) + heads)


def replaced_token_flops(
  config: BertConfig,
  generator: BertConfig | None,
  tokens: Any,
  pairs: Any,
  predictions: Any,
) -> Any:
  """Computes FLOPs of one step, or of a run, with ELECTRA's generator and discriminator.

  The other arguments are those of `pretraining_flops`.

  Args:
    config: of the discriminator, whose head has `2 W^2 + 2 W` for each token.
    generator: its configuration; None where all words are as likely as any other.

  Example, ELECTRA-Small as in the paper (1,000,000 steps of 128 sequences of 128 tokens):
    >>> small = BertConfig.from_name("electra_small")
    >>> sizes = 128 * 128, 128 * 128**2, 128 * 19
    >>> small.generator_hidden_size = 0.25
    >>> f"{1e6 * replaced_token_flops(small, small.generator_config(), *sizes):.2g}"
    '1.1e+18'
  """
  width = config.hidden_size
  detection = tokens * (2.0 * width * width + 2.0 * width)
  total = encoder_flops(config, tokens, pairs) + detection
  if generator is not None:
    total += encoder_flops(generator, tokens, pairs) + _words_flops(generator, predictions)
  return PASSES * total


def encoder_flops(config: BertConfig, tokens: Any, pairs: Any) -> Any:
  """Counts, forward, all layers, and the projection of embeddings narrower than they."""
  width, inner, embeddings = config.hidden_size, config.intermediate_size, config.embedding_width
  layers = len(config.family.layer_scopes(config))
  layer = tokens * (8.0 * width * width + 4.0 * width * inner) + pairs * (4.0 * width)
  projection = tokens * (2.0 * embeddings * width) if embeddings != width else 0.0
  return layers * layer + projection


def _words_flops(config: BertConfig, predictions: Any) -> Any:
  """Counts, forward, the head's transform, and the scores of all words."""
  width, embeddings = config.hidden_size, config.embedding_width
  return predictions * (2.0 * width * embeddings + 2.0 * embeddings * config.vocab_size)
