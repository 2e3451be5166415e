"""What doctor.py says of RoBERTa's vocabulary."""

import re

import pytest

from bert.checks.findings import RunUnderCheck
from bert.checks.model_checks import check_vocabulary
from bert.model.configuration import BertConfig
from tests.kit import byte_pairs


def findings(path, **config):
  size = len(byte_pairs.vocabulary())
  content = {"vocab_size": size, "model_type": "roberta", "type_vocab_size": 1, **config}
  subject = RunUnderCheck(vocab_file=path, config=BertConfig.from_dict(content), do_lower_case=True)
  return list(check_vocabulary(subject))


def test_a_vocabulary_that_fits(tmp_path):
  """Neither its case nor the number of its padding is a fault."""
  assert [finding.level for finding in findings(byte_pairs.write(tmp_path))] == ["ok"]


@pytest.mark.parametrize(
  ("config", "level", "what"),
  [
    ({"vocab_size": 100}, "error", "282 tokens, .* is 100: the last tokens have no embedding"),
    ({"vocab_size": 50265}, "warning", "is 50265: it may be another model's"),
    ({"model_type": "bert", "vocab_size": 300}, "error", "not the kind that this family"),
  ],
)
def test_a_vocabulary_of_another_model(tmp_path, config, level, what):
  last = findings(byte_pairs.write(tmp_path), **config)[-1]
  assert last.level == level
  assert re.search(what, last.what)
