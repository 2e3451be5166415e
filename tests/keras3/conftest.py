"""Fixtures of the Keras side's tests."""

import pytest

from bert.keras3 import BertTokenizer
from tests.kit.keras_models import SPECIAL, WORDS


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory) -> BertTokenizer:
  """A tokenizer with the vocabulary `SPECIAL + WORDS`."""
  path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
  path.write_text("\n".join(SPECIAL + WORDS) + "\n")
  return BertTokenizer(path)
