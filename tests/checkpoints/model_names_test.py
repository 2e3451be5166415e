"""Other names of released models, and the nearest ones.

Alone: python -m pytest tests/checkpoints/model_names_test.py (a second, no TensorFlow)
"""

import pytest

from bert.checkpoints import model_names
from bert.checkpoints.released_models import RELEASED_MODELS

BASE = "uncased_L-12_H-768_A-12"


@pytest.mark.parametrize(
  ("name", "released"),
  [
    (BASE, BASE),
    ("Uncased_L-12_H-768_A-12", BASE),
    (f"{BASE}.zip", BASE),
    ("2020_02_20/uncased_L-12_H-768_A-12", "2020_02_20/uncased_L-12_H-768_A-12"),
    # transformers
    ("bert-base-uncased", BASE),
    ("BERT-base-uncased", BASE),
    ("google-bert/bert-base-uncased", BASE),
    ("google-bert/bert-base-chinese", "chinese_L-12_H-768_A-12"),
    ("google/bert_uncased_L-2_H-128_A-2", "uncased_L-2_H-128_A-2"),
    ("prajjwal1/bert-tiny", "uncased_L-2_H-128_A-2"),
    ("https://huggingface.co/google-bert/bert-large-cased/tree/main", "cased_L-24_H-1024_A-16"),
    ("roberta-base", "roberta-base"),
    ("FacebookAI/roberta-large", "roberta-large"),
    ("https://huggingface.co/distilbert/distilbert-base-uncased", "distilbert-base-uncased"),
    # KerasHub
    ("distil_bert_base_en", "distilbert-base-cased"),
    ("bert_base_multi", "multi_cased_L-12_H-768_A-12"),
    # TensorFlow Hub and Kaggle
    ("https://tfhub.dev/google/bert_uncased_L-12_H-768_A-12/1", BASE),
    ("https://tfhub.dev/tensorflow/bert_en_uncased_L-12_H-768_A-12/4", BASE),
    ("tfhub.dev/tensorflow/bert_en_wwm_uncased_L-24_H-1024_A-16/2", "wwm_uncased_L-24_H-1024_A-16"),
    ("tfhub.dev/tensorflow/bert_zh_L-12_H-768_A-12/4", "chinese_L-12_H-768_A-12"),
    (
      "https://www.kaggle.com/models/tensorflow/bert/tensorFlow2/en-uncased-l-12-h-768-a-12/4",
      BASE,
    ),
    # Google's archives
    (f"https://storage.googleapis.com/bert_models/2018_10_18/{BASE}.zip", BASE),
    (f"gs://bert_models/2018_10_18/{BASE}.zip", BASE),
  ],
)
def test_names_of_the_same_weights(name, released):
  assert model_names.released_name_of(name) == released


@pytest.mark.parametrize(
  "name",
  [
    *("", "bert", "bert-base", "xlm-roberta-base", "uncased_L12_H-768_A-12", f"models/{BASE}"),
    *("https://tfhub.dev/google/elmo/3", "https://example.org/bert-base-uncased", f"/{BASE}"),
    "https://tfhub.dev/tensorflow/bert_en_uncased_preprocess/3",
  ],
)
def test_other_names_are_not(name):
  assert model_names.released_name_of(name) is None


def test_each_alias_is_of_a_released_model():
  assert {released for _, released in model_names._published_names()} == set(RELEASED_MODELS)


@pytest.mark.parametrize(
  ("name", "nearest"),
  [
    ("uncased_L12_H-768_A-12", BASE),
    ("uncased-L-12-H-768-A-12", BASE),
    ("bert-base-uncase", BASE),
    ("bert_base_uncased", BASE),
    ("BERT-Large, Cased", "cased_L-24_H-1024_A-16"),
    ("uncased_L-2_H-128", "uncased_L-2_H-128_A-2?"),
    ("uncased_L-2", "uncased_L-2_H-128_A-2 or"),
    ("bert-base", f"{BASE} or cased_L-12_H-768_A-12?"),
    ("tfhub.dev/google/bert_uncased_L-12_H-769_A-12", BASE),
  ],
)
def test_the_nearest_name(name, nearest):
  assert f"Did you mean {nearest}" in model_names.question(name)


def test_nothing_is_near():
  assert model_names.question("/data/run_5") == "`bert download --list` lists the names."


def test_other_families_are_told_apart():
  assert model_names.family_of("deberta-v3-base") == "DeBERTa"
  assert model_names.family_of("xlm-roberta-base") == "XLM-RoBERTa"
  assert not any(map(model_names.family_of, RELEASED_MODELS))
