"""Files of BERT (Devlin et al. 2018, arXiv:1810.04805) and of its miniatures (arXiv:1908.08962)."""

from bert.families import form

BASE_URL = "https://storage.googleapis.com/bert_models/"
MODEL_FILES = (
  "bert_config.json",
  "vocab.txt",
  "bert_model.ckpt.index",
  "bert_model.ckpt.data-00000-of-00001",
)

_NAMES_BY_DATE = {
  "2018_10_18": [
    f"{case}_{size}"
    for case in ("uncased", "cased")
    for size in ("L-12_H-768_A-12", "L-24_H-1024_A-16")
  ],
  "2018_11_03": ["chinese_L-12_H-768_A-12", "multilingual_L-12_H-768_A-12"],
  "2018_11_23": ["multi_cased_L-12_H-768_A-12"],
  "2019_05_30": ["wwm_uncased_L-24_H-1024_A-16", "wwm_cased_L-24_H-1024_A-16"],
  "2020_02_20": [
    f"uncased_L-{layers}_H-{hidden}_A-{hidden // 64}"
    for layers in (2, 4, 6, 8, 10, 12)
    for hidden in (128, 256, 512, 768)
  ],
}

_ALIASES = {
  # transformers
  "bert-base-uncased": "uncased_L-12_H-768_A-12",
  "bert-large-uncased": "uncased_L-24_H-1024_A-16",
  "bert-base-cased": "cased_L-12_H-768_A-12",
  "bert-large-cased": "cased_L-24_H-1024_A-16",
  "bert-base-multilingual-cased": "multi_cased_L-12_H-768_A-12",
  "bert-base-multilingual-uncased": "multilingual_L-12_H-768_A-12",
  "bert-base-chinese": "chinese_L-12_H-768_A-12",
  "bert-large-uncased-whole-word-masking": "wwm_uncased_L-24_H-1024_A-16",
  "bert-large-cased-whole-word-masking": "wwm_cased_L-24_H-1024_A-16",
  # The four small sizes that the paper of 2019 names (Turc et al., "Well-Read Students").
  "bert-tiny": "uncased_L-2_H-128_A-2",
  "bert-mini": "uncased_L-4_H-256_A-4",
  "bert-small": "uncased_L-4_H-512_A-8",
  "bert-medium": "uncased_L-8_H-512_A-8",
  # KerasHub
  "bert_tiny_en_uncased": "uncased_L-2_H-128_A-2",
  "bert_small_en_uncased": "uncased_L-4_H-512_A-8",
  "bert_medium_en_uncased": "uncased_L-8_H-512_A-8",
  "bert_base_en_uncased": "uncased_L-12_H-768_A-12",
  "bert_base_en": "cased_L-12_H-768_A-12",
  "bert_base_zh": "chinese_L-12_H-768_A-12",
  "bert_base_multi": "multi_cased_L-12_H-768_A-12",
  "bert_large_en_uncased": "uncased_L-24_H-1024_A-16",
  "bert_large_en": "cased_L-24_H-1024_A-16",
}


def _released() -> dict[str, form.Released]:
  models: dict[str, form.Released] = {}
  for date, names in _NAMES_BY_DATE.items():
    for name in names:
      # BERT-Base uncased was released in 2018 and, trained again, among the small models of 2020:
      # the plain name stays the older one, as in every published result.
      own_name = name if name not in models else f"{date}/{name}"
      models[own_name] = form.Released(f"{date}/{name}.zip", BASE_URL, MODEL_FILES)
  return models


FILES = form.FamilyFiles(
  "bert",
  form.Transformers(
    "Bert",
    names=form.TensorNames(
      modules={
        **form.same_modules("bert"),
        "bert/pooler/dense": "bert.pooler.dense",
        "fit_dense": "fit_dense",  # of TinyBERT
        "cls/predictions/transform/dense": "cls.predictions.transform.dense",
        "cls/predictions/transform/LayerNorm": "cls.predictions.transform.LayerNorm",
      },
      exact={
        **form.embedding_tables("bert", "bert"),
        "cls/predictions/output_bias": "cls.predictions.bias",
        "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
        "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
        **form.SPAN_HEAD,
        **form.CLASSIFIER,
      },
      decoder=("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"),
    ),
    defaults=form.BERT_DEFAULTS,
    has_model_type=False,
    dropout_keys=form.DROPOUT_OF_CLASSIFIERS,
  ),
  released=_released(),
  aliases=_ALIASES,
  owners=(
    *("google-bert/", "google/small_bert/", "google/"),
    *("tensorflow/small_bert/", "tensorflow/", "prajjwal1/"),
  ),
)
