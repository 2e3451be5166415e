"""Fixtures of the Keras side's tests."""

import pytest

from bert import tokenization
from bert.keras3 import BertTokenizer
from tests.kit.keras_models import WORDS
from tests.kit.tiny_bert import SPECIAL_TOKENS


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory):
  """A vocabulary of the special tokens and `WORDS`."""
  path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
  path.write_text("\n".join([*SPECIAL_TOKENS, *WORDS]) + "\n")
  return path


@pytest.fixture(scope="session")
def tokenizer(vocab_file):
  """A tokenizer of transformers with this vocabulary."""
  return BertTokenizer(str(vocab_file))


@pytest.fixture(scope="session")
def full_tokenizer(vocab_file) -> tokenization.FullTokenizer:
  """The original's tokenizer with this vocabulary."""
  return tokenization.FullTokenizer(vocab_file)
