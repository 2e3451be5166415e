"""Files of RoBERTa (Liu et al. 2019, arXiv:1907.11692) and of its distilled model."""

from bert.families import form


def _released(folder: str, layers: int, width: int) -> form.Released:
  sizes = {
    "model_type": "roberta",
    "vocab_size": 50265,
    "hidden_size": width,
    "num_hidden_layers": layers,
    "num_attention_heads": width // 64,
    "intermediate_size": 4 * width,
    "max_position_embeddings": 514,
  }
  return form.hub_folder(folder, ("tokenizer.json", "vocab.json", "merges.txt"), sizes)


FILES = form.FamilyFiles(
  "roberta",
  form.Transformers(
    "Roberta",
    names=form.TensorNames(
      modules={
        **form.same_modules("roberta"),
        "roberta/pooler/dense": "roberta.pooler.dense",
        "classifier/dense": "classifier.dense",
        "lm_head/dense": "lm_head.dense",
        "lm_head/LayerNorm": "lm_head.layer_norm",
      },
      exact={
        **form.embedding_tables("roberta", "roberta"),
        "lm_head/output_bias": "lm_head.bias",
        **form.SPAN_HEAD,
        **form.CLASSIFIER,
      },
      decoder=("lm_head.decoder.weight", "lm_head.decoder.bias"),
      by_head={form.TEXTS: form.OUT_PROJECTION},
    ),
    defaults={
      **form.BERT_DEFAULTS,
      "vocab_size": 50265,
      "layer_norm_eps": 1e-12,
      "pad_token_id": 1,
    },
    original_defaults={"type_vocab_size": 1, "layer_norm_eps": 1e-5},
    encoder_has_pooler=True,
    fixed={"bos_token_id": 0, "eos_token_id": 2},
    dropout_keys=form.DROPOUT_OF_CLASSIFIERS,
    missing_heads=dict.fromkeys((form.PRETRAINING, form.NEXT_SENTENCE), form.NO_SENTENCE_PAIRS),
  ),
  released={
    "roberta-base": _released("FacebookAI/roberta-base", 12, 768),
    "roberta-large": _released("FacebookAI/roberta-large", 24, 1024),
    "distilroberta-base": _released("distilbert/distilroberta-base", 6, 768),
  },
  aliases={"roberta_base_en": "roberta-base", "roberta_large_en": "roberta-large"},
  owners=("FacebookAI/",),
)
