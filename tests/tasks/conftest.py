"""What several tests of SQuAD share: tokenizers, and questions recorded with the original."""

import pytest

from bert.tasks.squad import read_squad_examples
from bert.tokenization import FullTokenizer
from tests.kit.squad_samples import VERSIONS, VOCAB, Golden, features_of


@pytest.fixture(scope="session")
def squad_tokenizer(tmp_path_factory) -> FullTokenizer:
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("\n".join(VOCAB) + "\n")
  return FullTokenizer(path)


@pytest.fixture(scope="session")
def golden_tokenizer(released_vocab_file) -> FullTokenizer:
  return FullTokenizer(released_vocab_file)


@pytest.fixture(scope="session", params=VERSIONS)
def golden_squad(request, golden_dir, golden_tokenizer) -> Golden:
  folder, version = golden_dir / "squad", request.param
  examples = read_squad_examples(folder / f"input-v{version}.json", False, VERSIONS[version])
  return Golden(folder, version, examples, features_of(examples, golden_tokenizer))
