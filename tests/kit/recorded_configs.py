"""Configurations of recorded models that have no file for them. Nothing here needs TensorFlow."""

import json

from bert.model.configuration import BertConfig


def electra_config(golden_dir) -> BertConfig:
  """The discriminator of the recorded ELECTRA; its `generator_config` is the generator."""
  content = json.loads((golden_dir / "electra" / "configs.json").read_text())
  hparams = content["pretraining_hparams"]
  return BertConfig.from_dict(
    {
      **content["discriminator"],
      "model_type": "electra",
      "embedding_size": content["embedding_size"],
      "generator_hidden_size": hparams["generator_hidden_size"],
      "generator_layers": hparams["generator_layers"],
    }
  )
