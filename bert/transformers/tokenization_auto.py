"""The tokenizer of a folder or a name, whatever its class: `AutoTokenizer.from_pretrained`."""

import os
from typing import Any

from bert.checkpoints import model_files
from bert.checkpoints.families import FILES
from bert.io import tokenizer_settings, vocabulary_kind
from bert.transformers import (
  tokenization_albert,
  tokenization_bert,
  tokenization_files,
  tokenization_roberta,
)
from bert.transformers.tokenization_base import PreTrainedTokenizerBase
from bert.transformers.tokenization_fast import PreTrainedTokenizerFast

_FOUND = {
  name: value
  for module in (tokenization_albert, tokenization_bert, tokenization_roberta)
  for name, value in vars(module).items()
}
_PREFIXES = {name: FILES[name].transformers.class_prefix for name in sorted(FILES)}
# `model_type` -> its classes, slow and fast.
TOKENIZER_MAPPING_NAMES: dict[str, tuple[type[Any], type[Any]]] = {
  name: (_FOUND[f"{prefix}Tokenizer"], _FOUND[f"{prefix}TokenizerFast"])
  for name, prefix in _PREFIXES.items()
}
_CLASSES: dict[str, type[Any]] = {
  "PreTrainedTokenizerFast": PreTrainedTokenizerFast,
  "TokenizersBackend": PreTrainedTokenizerFast,  # what transformers 5 calls it
  **{cls.__name__: cls for pair in TOKENIZER_MAPPING_NAMES.values() for cls in pair},
  **{
    cls.__name__.replace("Bert", name): cls
    for name in tokenizer_settings.SAME_AS_BERT
    for cls in TOKENIZER_MAPPING_NAMES["bert"]
  },
}
_registered: dict[str, tuple[type[Any] | None, type[Any] | None]] = {}


class AutoTokenizer:
  """Makes a tokenizer of the class that a folder says; cannot be instantiated itself."""

  def __init__(self):
    """Refused."""
    raise OSError("AutoTokenizer is made by AutoTokenizer.from_pretrained(folder or name).")

  @classmethod
  def from_pretrained(
    cls, pretrained_model_name_or_path: str | os.PathLike, *inputs: Any, **kwargs: Any
  ) -> PreTrainedTokenizerBase:
    """Reads a tokenizer.

    The class is, of these, what is found first: `tokenizer_type`; `tokenizer_class` of
    tokenizer_config.json, then of config.json; the family in config.json (`model_type`); what reads
    the vocabulary.

    Args:
      pretrained_model_name_or_path: a folder; or the name of a released model, which is downloaded.
      *inputs: first arguments of the class.
      **kwargs: `use_fast` (True by default), `tokenizer_type` (a family), `config`; the rest is for
        the class, see `PreTrainedTokenizerBase.from_pretrained`.

    Raises:
      OSError: there is no such folder and no such model, or it has no tokenizer.
      ValueError: it is of a class or a family that is not here.
    """
    use_fast = kwargs.pop("use_fast", True)
    family, config = kwargs.pop("tokenizer_type", None), kwargs.pop("config", None)
    path = os.fsdecode(pretrained_model_name_or_path)
    if family is None:
      folder = path
      if not os.path.isdir(path):
        folder = tokenization_files.folder_of_released(path, kwargs.get("cache_dir"))
      folder = os.path.join(folder, kwargs["subfolder"]) if kwargs.get("subfolder") else folder
      found = _class_in(folder, config, use_fast)
    else:
      found = _of_family(family, use_fast)
    return found.from_pretrained(path, *inputs, **kwargs)

  @staticmethod
  def register(
    config_class: Any,
    slow_tokenizer_class: type[Any] | None = None,
    fast_tokenizer_class: type[Any] | None = None,
    exist_ok: bool = False,
  ) -> None:
    """Adds the classes of a configuration's family; a ValueError if it has some already."""
    if slow_tokenizer_class is None and fast_tokenizer_class is None:
      raise ValueError(
        "There is neither slow_tokenizer_class nor fast_tokenizer_class to register."
      )
    for given, wrong in (
      (slow_tokenizer_class, PreTrainedTokenizerFast),
      (fast_tokenizer_class, PreTrainedTokenizerBase),
    ):
      is_fast = given is not None and issubclass(given, PreTrainedTokenizerFast)
      if given is not None and is_fast == (wrong is PreTrainedTokenizerFast):
        raise ValueError(f"{given.__name__} is {'fast' if is_fast else 'slow'}; pass it as such.")
    family = config_class.model_type
    known = {**TOKENIZER_MAPPING_NAMES, **_registered}
    if family in known and not exist_ok:
      raise ValueError(f"{family!r} has tokenizers already; pass exist_ok=True to replace them.")
    _registered[family] = slow_tokenizer_class, fast_tokenizer_class


def _class_in(folder: str, config: Any, use_fast: bool) -> type[Any]:
  model_config = tokenization_files.read_json(folder, "config.json")
  settings = tokenization_files.read_json(folder, tokenization_files.CONFIG)
  for name in (
    settings.get("tokenizer_class"),
    getattr(config, "tokenizer_class", None),
    model_config.get("tokenizer_class"),
  ):
    if name:
      return _of_name(name, use_fast)
  family = getattr(config, "model_type", None) or model_config.get("model_type")
  if family:
    return _of_family(family, use_fast)
  vocabulary = model_files.find(folder).vocabulary
  if vocabulary is None:
    raise OSError(f"{folder} has no tokenizer: no {tokenization_files.CONFIG}, no vocabulary.")
  kind = vocabulary_kind.saved_vocabulary_name(vocabulary)
  of_kind = {vocabulary_kind.SENTENCE_PIECES: "albert", vocabulary_kind.BYTE_PAIRS: "roberta"}
  return _of_family(of_kind.get(kind, "bert"), use_fast)


def _of_name(name: str, use_fast: bool) -> type[Any]:
  registered = [cls for pair in _registered.values() for cls in pair if cls is not None]
  classes = {**_CLASSES, **{cls.__name__: cls for cls in registered}}
  names = [name] if name.endswith("Fast") or not use_fast else [f"{name}Fast", name]
  for each in names:
    if each in classes:
      return classes[each]
  raise ValueError(
    f"tokenizer_class is {name}; this tokenizer is not supported. Supported: "
    f"{', '.join(sorted(each for each in classes if not each.endswith('Fast')))}."
  )


def _of_family(family: str, use_fast: bool) -> type[Any]:
  known = {**TOKENIZER_MAPPING_NAMES, **_registered}
  if family not in known:
    raise ValueError(f"No tokenizer of the family {family!r} is here; known: {sorted(known)}.")
  slow, fast = known[family]
  found = (fast or slow) if use_fast else (slow or fast)
  assert found is not None
  return found
