"""Files of DistilBERT (Sanh et al. 2019, arXiv:1910.01108)."""

from bert.families import form

_LAYER_MODULES_THERE = (
  *("attention.q_lin", "attention.k_lin", "attention.v_lin"),
  *("attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
)


def _released(name: str, vocab_size: int) -> form.Released:
  sizes = {"model_type": "distilbert", "vocab_size": vocab_size}
  return form.hub_folder(f"distilbert/{name}", ("vocab.txt", "tokenizer_config.json"), sizes)


FILES = form.FamilyFiles(
  "distilbert",
  form.Transformers(
    "DistilBert",
    names=form.TensorNames(
      modules={
        "distilbert/embeddings/LayerNorm": "distilbert.embeddings.LayerNorm",
        **{
          f"distilbert/{form.LAYER}{here}": f"distilbert.transformer.layer.N.{there}"
          for here, there in zip(form.LAYER_MODULES, _LAYER_MODULES_THERE, strict=True)
        },
        "pre_classifier": "pre_classifier",
        "vocab_transform/dense": "vocab_transform",
        "vocab_transform/LayerNorm": "vocab_layer_norm",
      },
      exact={
        **form.embedding_tables("distilbert", "distilbert", form.EMBEDDINGS[:2]),
        "vocab_projector/output_bias": "vocab_projector.bias",
        **form.SPAN_HEAD,
        **form.CLASSIFIER,
      },
      decoder=("vocab_projector.weight", ""),
    ),
    defaults={
      **form.BERT_DEFAULTS,
      **dict(num_hidden_layers=6, type_vocab_size=0, pad_token_id=0),
      **dict(qa_dropout=0.1, seq_classif_dropout=0.2),
    },
    original_defaults={},
    keys={
      "hidden_size": "dim",
      "num_hidden_layers": "n_layers",
      "num_attention_heads": "n_heads",
      "intermediate_size": "hidden_dim",
      "hidden_act": "activation",
      "hidden_dropout_prob": "dropout",
      "attention_probs_dropout_prob": "attention_dropout",
    },
    absent_keys=frozenset(
      {
        *("layer_norm_eps", "position_embedding_type", "is_decoder", "add_cross_attention"),
        "type_vocab_size",
      }
    ),
    missing_heads=dict.fromkeys((form.PRETRAINING, form.NEXT_SENTENCE), form.NO_SENTENCE_PAIRS),
  ),
  released={
    name: _released(name, vocab_size)
    for name, vocab_size in (
      ("distilbert-base-uncased", 30522),
      ("distilbert-base-cased", 28996),
      ("distilbert-base-multilingual-cased", 119547),
    )
  },
  aliases={
    "distil_bert_base_en_uncased": "distilbert-base-uncased",
    "distil_bert_base_en": "distilbert-base-cased",
    "distil_bert_base_multi": "distilbert-base-multilingual-cased",
  },
  owners=("distilbert/",),
)
