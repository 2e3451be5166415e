"""Fixtures of the Keras side's tests."""

import pytest

from bert.keras3 import BertTokenizer
from tests.kit.keras_models import WORDS
from tests.kit.tiny_bert import SPECIAL_TOKENS


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory) -> BertTokenizer:
  """A tokenizer with the vocabulary of the special tokens and `WORDS`."""
  path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
  path.write_text("\n".join([*SPECIAL_TOKENS, *WORDS]) + "\n")
  return BertTokenizer(path)
