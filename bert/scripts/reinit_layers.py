"""`--reinit_layers=N`: the top N layers and the pooler start from new random values.

The top layers of a pre-trained model are made for its own task, and on small data a better start is
often none (arXiv:2006.05987, section 5, which draws the pooler anew as well). The new values follow
from the seed and each variable's name, as all initial values do.
"""

from collections.abc import Mapping
from typing import Any

from bert.io.wording import counted
from bert.model.configuration import BertConfig
from bert.scripts import command_line
from bert.training import variable_groups


def prefixes(config: BertConfig, count: int) -> tuple[str, ...]:
  """Tells how the names begin of the variables that are not taken from a checkpoint.

  Example:
    >>> prefixes(BertConfig(vocab_size=10, num_hidden_layers=3), 2)
    ('bert/pooler/', 'bert/encoder/layer_1/', 'bert/encoder/layer_2/')
  """
  family, top = config.family, config.num_hidden_layers
  layers = [f"{family.scope}/encoder/layer_{layer}/" for layer in range(top - count, top)]
  pooler = [f"{family.scope}/pooler/"] if family.has_pooler else []
  return (*pooler, *layers) if count else ()


def check(values: Mapping[str, Any], config: BertConfig) -> None:
  """Refuses layers that the model does not have, or that `--freeze` would keep random.

  Raises:
    UsageError: names both numbers, or both flags.
  """
  count = values.get("reinit_layers") or 0
  if count > config.num_hidden_layers:
    raise command_line.UsageError(
      f"--reinit_layers={count}: the model has {counted(config.num_hidden_layers, 'layer')}."
    )
  if not count:
    return
  if config.family.shares_layers:
    raise command_line.UsageError(
      f"--reinit_layers={count}: all layers of {config.family.title} share their weights, so none "
      "can be drawn anew alone. Leave it out."
    )
  _explain(values)
  for what in values["freeze"]:
    pattern = variable_groups.frozen_pattern(what)
    if any(pattern.search(f"{name}output/dense/kernel") for name in prefixes(config, count)):
      raise command_line.UsageError(
        f"--freeze={what} would keep random what --reinit_layers={count} draws anew. Leave one of "
        "them out."
      )


def _explain(values: Mapping[str, Any]) -> None:
  """Logs where the flag changes nothing."""
  if not values["do_train"]:
    command_line.explain_ignored_flags({"reinit_layers": "it is for --do_train"})
  elif not values["init_checkpoint"]:
    reason = "without --init_checkpoint all layers start from random values"
    command_line.explain_ignored_flags({"reinit_layers": reason})
