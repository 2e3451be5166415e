"""A class for transformers, which lacks that of TinyBERT's own models: BERT with one more ReLU.

  config |= KEYS
  pathlib.Path("out", FILE).write_text(SOURCE)

A folder brings the class along, as transformers allows: its Auto classes read it with
`trust_remote_code=True`, and refuse the folder without. It has a `model_type` of its own, because
they would take BERT's class for a model of type `bert`, and compute other scores.
"""

MODEL_TYPE = "tinybert"
ARCHITECTURE = "TinyBertForSequenceClassification"
FILE = "modeling_tinybert.py"

KEYS = {
  "architectures": [ARCHITECTURE],
  "model_type": MODEL_TYPE,
  "auto_map": {
    "AutoConfig": "modeling_tinybert.TinyBertConfig",
    "AutoModelForSequenceClassification": f"modeling_tinybert.{ARCHITECTURE}",
  },
}
"""What `config.json` says instead of BERT's values."""

SOURCE = f'''"""BERT with a ReLU between pooler and classifier, as TinyBERT's own models have it.

  AutoModelForSequenceClassification.from_pretrained(FOLDER, trust_remote_code=True)
"""

from torch import nn
from transformers import BertConfig, BertForSequenceClassification


class TinyBertConfig(BertConfig):
  model_type = "{MODEL_TYPE}"


class {ARCHITECTURE}(BertForSequenceClassification):
  config_class = TinyBertConfig

  def __init__(self, config):
    super().__init__(config)
    self.dropout = nn.ReLU()  # the layer between pooler and classifier
'''
