"""How a model's texts are tokenized, as the files of transformers beside its vocabulary state it.

  stated = beside("german/vocab.txt")
  stated.do_lower_case, stated.strip_accents        # True, False; None where nothing is stated
  stated.refusal                                    # not empty if such a tokenizer is not supported

`tokenizer_config.json` comes before `tokenizer.json`, as in transformers. Whatever copies a
vocabulary copies these settings (`text/tokenizer_kinds.py: kept_files`).
"""

import errno
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert.io import filesystem, json_files, vocabulary_kind

CONFIG = "tokenizer_config.json"
TOKENIZER = "tokenizer.json"

# Names of classes, without `Tokenizer` and `Fast`.
SAME_AS_BERT = (
  *("ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "LayoutLM", "Lxmert"),
  *("MobileBert", "RetriBert", "SqueezeBert"),
)
_SUPPORTED = ("Albert", "Bert", "DistilBert", "Electra", "Roberta")
# Models whose vocab.txt is not BERT's: other special tokens, or words. Without a `tokenizer_class`
# transformers goes by the model.
_OF_OTHER_MODELS = {
  name.lower(): f"{name}Tokenizer" for name in ("MPNet", "Funnel", "ProphetNet", "RoFormer")
}
_BY_CONTENT = ("PreTrained", "TokenizersBackend")  # whose tokenizer.json decides
_NEEDED = {"do_basic_tokenize": True, "keep_accents": False, "remove_space": True}
_UNSUPPORTED = (
  f"this tokenizer is not supported, but those of {', '.join(_SUPPORTED)} are. A vocab.txt in a "
  "directory of its own, passed with --vocab_file, is read as BERT's"
)


class TokenizerSettings(NamedTuple):
  """What is stated; of everything else the defaults hold, which are BERT's."""

  do_lower_case: bool | None = None  # None: not stated
  strip_accents: bool | None = None  # None: as do_lower_case
  tokenize_chinese_chars: bool = True
  add_prefix_space: bool | None = None  # of a byte-level BPE; None: not stated
  refusal: str = ""  # why texts cannot be tokenized as the model needs it

  @property
  def splitting(self) -> dict[str, Any]:
    """Returns the arguments of `tokenization.BasicTokenizer` beside the case."""
    names = ("strip_accents", "tokenize_chinese_chars")
    return {name: getattr(self, name) for name in names}

  @property
  def is_usual(self) -> bool:
    """Whether words are split as by the original's tokenizer."""
    return self.splitting == TokenizerSettings().splitting


def beside(vocab_file: str | bytes | os.PathLike) -> TokenizerSettings:
  """Reads what is stated in the directory of a vocabulary file; a ValueError if a file is bad."""
  folder = os.path.dirname(os.fsdecode(vocab_file))
  if os.path.basename(folder) == "assets":  # of a SavedModel, which has other files elsewhere
    folder = os.path.join(os.path.dirname(folder), "assets.extra")
  return in_folder(folder)


def in_folder(folder: str | os.PathLike) -> TokenizerSettings:
  """Reads what is stated in a directory; a ValueError if a file is bad."""
  config, content = _object(folder, CONFIG), _object(folder, TOKENIZER)
  place, name, what = CONFIG, config.get("tokenizer_class"), "tokenizer_class is"
  if not name:
    place, model = "config.json", _object(folder, "config.json")
    name, model_type = model.get("tokenizer_class"), str(model.get("model_type"))
    if not name and model_type in _OF_OTHER_MODELS:
      name, what = _OF_OTHER_MODELS[model_type], f"model_type is {model_type}, which has"
  stated = of_content(content) or TokenizerSettings()
  refusal = stated.refusal and f"{os.path.join(folder, TOKENIZER)}: {stated.refusal}"
  if name and not is_supported(name):
    refusal = f"{os.path.join(folder, place)}: {what} {name}; {_UNSUPPORTED}."
  for key, usual in _NEEDED.items():
    if config.get(key) not in (None, usual):
      value = json.dumps(config[key])
      refusal = f"{os.path.join(folder, CONFIG)}: {key} is {value}, which is not supported."
  changed = {
    key: config[key]
    for key in TokenizerSettings._fields[:-1]
    if isinstance(config.get(key), bool) or (key == "strip_accents" and key in config)
  }
  return stated._replace(**changed, refusal=refusal)


def is_supported(tokenizer_class: Any) -> bool:
  """Tells whether texts are tokenized here as by a class of transformers.

  Example:
    >>> is_supported("ElectraTokenizerFast"), is_supported("XLMRobertaTokenizer")
    (True, False)
  """
  name = str(tokenizer_class).removesuffix("Fast").removesuffix("Tokenizer")
  return name in (*_SUPPORTED, *SAME_AS_BERT, *_BY_CONTENT)


def of_content(content: Mapping[str, Any]) -> TokenizerSettings | None:
  """Reads the content of a tokenizer.json of word pieces; None if it is of another kind."""
  if vocabulary_kind.type_of_tokenizer(content) != "WordPiece":
    return None
  normalizer, splitter = (_dict(content.get(name)) for name in ("normalizer", "pre_tokenizer"))
  steps = {
    "normalizer": (normalizer.get("type"), "BertNormalizer"),
    "clean_text": (normalizer.get("clean_text", True), True),
    "pre_tokenizer": (splitter.get("type"), "BertPreTokenizer"),
    "prefix": (content["model"].get("continuing_subword_prefix", "##"), "##"),
  }
  if other := [f"{name} is {found}" for name, (found, usual) in steps.items() if found != usual]:
    return TokenizerSettings(refusal=f"{', '.join(other)}; {_UNSUPPORTED}.")
  lower, strips = normalizer.get("lowercase", True), normalizer.get("strip_accents")
  return TokenizerSettings(lower, strips, normalizer.get("handle_chinese_chars", True))


def _dict(value: Any) -> Mapping[str, Any]:
  return value if isinstance(value, Mapping) else {}


def _object(folder: str | os.PathLike, name: str) -> dict[str, Any]:
  path = os.path.join(folder, name)
  try:
    return json_files.read_object(path) if filesystem.is_file(path) else {}
  except OSError as error:
    if error.errno != errno.ENOTSUP:  # of an unknown file system: who opens the vocabulary says so
      raise
    return {}
