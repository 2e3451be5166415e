"""Files of ELECTRA (Clark et al. 2020, arXiv:2003.10555).

Its checkpoints come without a configuration: the sizes follow from the shapes of their tensors. The
number of heads is in no shape, but all published models have heads of 64 (google-research/electra,
`util/training_utils.py`).
"""

import re
from typing import Any

from bert.families import form

_WORDS = "electra/embeddings/word_embeddings"
_QUERY = "encoder/layer_0/attention/self/query/kernel"
_INNER = "encoder/layer_0/intermediate/dense/kernel"


def sizes_of(shapes: form.Shapes) -> dict[str, Any] | None:
  """Makes the content of a configuration of all tensors' shapes by name.

  Returns:
    None if the checkpoint has no encoder of ELECTRA.
  """
  if _WORDS not in shapes or f"electra/{_QUERY}" not in shapes:
    return None
  vocab_size, embedding_size = shapes[_WORDS]
  hidden_size, layers = shapes[f"electra/{_QUERY}"][0], _count_layers(shapes, "electra")
  content = {
    "model_type": "electra",
    "vocab_size": vocab_size,
    "embedding_size": embedding_size,
    "hidden_size": hidden_size,
    "num_hidden_layers": layers,
    "num_attention_heads": max(1, hidden_size // 64),
    "intermediate_size": shapes[f"electra/{_INNER}"][1],
    "hidden_act": "gelu_erf",
    "max_position_embeddings": shapes["electra/embeddings/position_embeddings"][0],
    "type_vocab_size": shapes["electra/embeddings/token_type_embeddings"][0],
  }
  if f"generator/{_QUERY}" in shapes:
    content["generator_hidden_size"] = shapes[f"generator/{_QUERY}"][0] / hidden_size
    content["generator_layers"] = _count_layers(shapes, "generator") / layers
  return content


def _count_layers(shapes: form.Shapes, scope: str) -> int:
  layer = re.compile(rf"{scope}/encoder/layer_(\d+)/")
  return len({match[1] for match in map(layer.match, shapes) if match})


def _released(size: str, layers: int, width: int, embedding_size: int, generator: float):
  sizes = {
    "model_type": "electra",
    "vocab_size": 30522,
    "embedding_size": embedding_size,
    "hidden_size": width,
    "num_hidden_layers": layers,
    "num_attention_heads": width // 64,
    "intermediate_size": 4 * width,
    "type_vocab_size": 2,
    "generator_hidden_size": generator,
  }
  return form.Released(
    f"electra_{size}.zip",
    "https://storage.googleapis.com/electra-data/",
    ("vocab.txt",),  # its checkpoint has the model's name, which `finding.py` needs not know
    sizes=sizes,
  )


FILES = form.FamilyFiles(
  "electra",
  form.Transformers(
    "Electra",
    # A generator alone has the names of a discriminator there, and so it has here.
    names=form.TensorNames(
      modules={
        **form.same_modules("electra"),
        "electra/embeddings_project": "electra.embeddings_project",
        "generator_predictions/dense": "generator_predictions.dense",
        "generator_predictions/LayerNorm": "generator_predictions.LayerNorm",
        "discriminator_predictions/dense": "discriminator_predictions.dense",
        "discriminator_predictions/dense_1": "discriminator_predictions.dense_prediction",
        "task_specific/ner/dense": "classifier",
        # Of transformers' heads, which the original does not have.
        "classifier/dense": "classifier.dense",
        "sequence_summary": "sequence_summary.summary",
      },
      exact={
        **form.embedding_tables("electra", "electra"),
        **form.SPAN_HEAD,
        "generator_predictions/output_bias": "generator_lm_head.bias",
      },
      decoder=("generator_lm_head.weight", ""),
      by_head={form.TEXTS: form.OUT_PROJECTION, form.CHOICES: form.CLASSIFIER},
    ),
    defaults={
      **form.BERT_DEFAULTS,
      **dict(embedding_size=128, hidden_size=256, num_attention_heads=4, intermediate_size=1024),
    },
    # See `bert/families`.
    classes_with_hidden_layers=("ElectraForSequenceClassification", "ElectraForMultipleChoice"),
    dropout_keys=form.DROPOUT_OF_CLASSIFIERS,
    summarized_heads=(form.CHOICES,),
    marks={
      **dict.fromkeys(
        (form.PRETRAINING, form.NEXT_SENTENCE), "discriminator_predictions/dense_1/bias"
      ),
      form.TOKENS: "",
    },
    missing_heads={form.NEXT_SENTENCE: "ELECTRA has no pairs of sentences in pre-training"},
    # The original's own heads compute something else.
    marked_heads={
      form.TEXTS: ("classifier/dense/kernel", "its class for sequences has one more dense layer"),
      form.SPANS: (
        "cls/squad/output_weights",
        "its class for questions has no beam and no score for unanswerable ones",
      ),
      form.CHOICES: ("sequence_summary/kernel", "its class for choices has one more dense layer"),
    },
  ),
  released={
    # The released Small has a generator of its own size, which the code's default has not.
    "electra_small": _released("small", 12, 256, 128, 1.0),
    "electra_base": _released("base", 12, 768, 768, 1 / 3),
    "electra_large": _released("large", 24, 1024, 1024, 0.25),
  },
  aliases={
    f"{owner}electra-{size}-discriminator": f"electra_{size}"
    for owner in ("", "google/")
    for size in ("small", "base", "large")
  },
  sizes_of=sizes_of,
)
