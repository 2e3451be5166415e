"""Models that `bert.keras3` does not have are refused, whatever names them.

Alone: python -m pytest tests/keras3/sizes_test.py
"""

import json

import numpy as np
import pytest

from bert.checkpoints import numpy_writer
from bert.keras3 import BERT
from bert.model.configuration import BertConfig
from bert.model.variable_shapes import encoder_shapes

SIZES = {
  **dict(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2),
  **dict(intermediate_size=16, max_position_embeddings=12, type_vocab_size=2, embedding_size=4),
}
KEYS = {"electra": {"model_type": "electra"}, "albert": {"num_hidden_groups": 1}}


@pytest.mark.parametrize("family", list(KEYS))
def test_models_of_other_families_are_refused_and_not_started_at_random(tmp_path, family):
  content = {**SIZES, **KEYS[family]}
  shapes = encoder_shapes(BertConfig.from_dict(content))
  numpy_writer.write(tmp_path / "model", {n: np.zeros(s, "float32") for n, s in shapes.items()})
  (tmp_path / "bert_config.json").write_text(json.dumps(content))
  message = f"of the family {family}, and bert.keras3 has models of BERT"
  with pytest.raises(ValueError, match=message):
    BERT.from_checkpoint(tmp_path)
  bert = BERT(**dict(vocab_size=20, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=16))
  with pytest.raises(ValueError, match=message):
    bert.load_pretrained_weights(tmp_path)
  with pytest.raises(ValueError, match=message):
    BERT.from_variant({"electra": "electra_small", "albert": "albert-base-v2"}[family])
