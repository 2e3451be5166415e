"""Files of ALBERT (Lan et al. 2019, arXiv:1909.11942)."""

from bert.families import form

_BASE_URL = "https://storage.googleapis.com/albert_models/"
_ARCHIVE_FILES = (
  *("albert_config.json", "model.ckpt-best.index"),
  "model.ckpt-best.data-00000-of-00001",
)
_LAYER = "bert/encoder/transformer/group_N/inner_group_M"
_LAYER_THERE = "albert.encoder.albert_layer_groups.N.albert_layers.M"
_SIZES = {  # size: (layers, hidden size, heads, dropout of version 1)
  "base": (12, 768, 12, 0.1),
  "large": (24, 1024, 16, 0.1),
  "xlarge": (24, 2048, 16, 0.1),
  "xxlarge": (12, 4096, 64, 0.0),
}


def _released(size: str, version: str) -> form.Released:
  layers, width, heads, dropout_prob = _SIZES[size]
  dropout_prob = dropout_prob if version == "v1" else 0.0
  sizes = {
    "vocab_size": 30000,
    "embedding_size": 128,
    "hidden_size": width,
    "num_hidden_layers": layers,
    "num_hidden_groups": 1,
    "inner_group_num": 1,
    "num_attention_heads": heads,
    "intermediate_size": 4 * width,
    "hidden_dropout_prob": dropout_prob,
    "attention_probs_dropout_prob": dropout_prob,
    "type_vocab_size": 2,
  }
  archive = f"albert_{size}_{version}.tar.gz"
  # The Chinese ones have another vocabulary.
  return form.Released(archive, _BASE_URL, _ARCHIVE_FILES, sizes=None if version == "zh" else sizes)


FILES = form.FamilyFiles(
  "albert",
  form.Transformers(
    "Albert",
    names=form.TensorNames(
      modules={
        "bert/embeddings/LayerNorm": "albert.embeddings.LayerNorm",
        "bert/encoder/embedding_hidden_mapping_in": "albert.encoder.embedding_hidden_mapping_in",
        **{
          f"{_LAYER}/attention_1/self/{part}": f"{_LAYER_THERE}.attention.{part}"
          for part in ("query", "key", "value")
        },
        f"{_LAYER}/attention_1/output/dense": f"{_LAYER_THERE}.attention.dense",
        f"{_LAYER}/LayerNorm": f"{_LAYER_THERE}.attention.LayerNorm",
        f"{_LAYER}/ffn_1/intermediate/dense": f"{_LAYER_THERE}.ffn",
        f"{_LAYER}/ffn_1/intermediate/output/dense": f"{_LAYER_THERE}.ffn_output",
        f"{_LAYER}/LayerNorm_1": f"{_LAYER_THERE}.full_layer_layer_norm",
        "bert/pooler/dense": "albert.pooler",
        "cls/predictions/transform/dense": "predictions.dense",
        "cls/predictions/transform/LayerNorm": "predictions.LayerNorm",
      },
      exact={
        **form.embedding_tables("bert", "albert"),
        "cls/predictions/output_bias": "predictions.bias",
        "cls/seq_relationship/output_weights": "sop_classifier.classifier.weight",
        "cls/seq_relationship/output_bias": "sop_classifier.classifier.bias",
        **form.SPAN_HEAD,
        **form.CLASSIFIER,
      },
      decoder=("predictions.decoder.weight", "predictions.decoder.bias"),
    ),
    defaults={
      **form.BERT_DEFAULTS,
      **dict(vocab_size=30000, embedding_size=128, hidden_size=4096, num_attention_heads=64),
      **dict(intermediate_size=16384, num_hidden_groups=1, inner_group_num=1),
      **dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0),
    },
    default_activation="gelu_new",
    has_model_type=False,
    dropout_keys=dict.fromkeys(
      (form.TEXTS, form.TOKENS, form.PRETRAINING), "classifier_dropout_prob"
    ),
    missing_heads={form.NEXT_SENTENCE: "transformers has no class of that kind for ALBERT"},
  ),
  released={
    f"albert_{size}_{version}": _released(size, version)
    for version in ("v2", "v1", "zh")
    for size in _SIZES
  },
  aliases={
    f"{owner}albert-{size}-{version}": f"albert_{size}_{version}"
    for owner in ("", "albert/")
    for size in _SIZES
    for version in ("v1", "v2")
  },
)
