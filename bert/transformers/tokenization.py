"""transformers' tokenizers, which also return TensorFlow's tensors and read the original's folders.

  tokenizer = AutoTokenizer.from_pretrained("uncased_L-12_H-768_A-12")
  tokenizer(["One.", "And another one."], padding=True, return_tensors="tf")["input_ids"]  # [B, S]

Every class of transformers is here by its name, with `TensorFlowTokenizer` before it. TensorFlow is
imported for the first tensor.
"""

import functools
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert import tokenization
from bert.checkpoints import finding, model_files
from bert.checkpoints.bundle_files import CheckpointError
from bert.families.files import FILES
from bert.io import filesystem, json_files, tokenizer_settings, vocabulary_kind
from bert.text import tokenizer_json
from bert.transformers import folders
from bert.transformers.library import transformers

__all__ = ["AutoTokenizer", "BatchEncoding"]

_CASED_NAMES = ("cased_L-", "multi_cased_L-", "wwm_cased_L-")  # beginnings of folders' names
# Bases of the classes whose vocabularies this project reads, too.
_READ_HERE = (
  transformers.BertTokenizer,
  transformers.RobertaTokenizer,
  transformers.AlbertTokenizer,
)
# The class for a vocabulary, unless a file of transformers names one; else it is BERT's.
_OF_KIND = {
  vocabulary_kind.SENTENCE_PIECES: "AlbertTokenizer",
  vocabulary_kind.BYTE_PAIRS: "RobertaTokenizer",
}


def __getattr__(name: str) -> Any:
  """Finds a class of transformers, such as `BertTokenizer`, with what is added here."""
  found = None if name.startswith("_") else getattr(transformers, name, None)
  if not is_tokenizer(found):
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  return adapted(found)


def is_tokenizer(value) -> bool:
  """Tells whether something is a class of tokenizers of transformers."""
  return isinstance(value, type) and issubclass(value, transformers.PreTrainedTokenizerBase)


def to_tensorflow(values: Mapping, integers: str | None = None) -> dict:
  """Makes tensors of arrays; of float64, as of Python's numbers, float32.

  Args:
    values: name -> array.
    integers: the dtype of whole numbers; by default that of the array.

  Raises:
    ValueError: sequences have different lengths.
  """
  import tensorflow as tf

  found = {}
  for name, value in values.items():
    array = np.asarray(value)
    if array.dtype == object:
      raise ValueError(
        f"The sequences of {name!r} have different lengths, so they form no tensor. Pass "
        "padding=True, and truncation=True if some are too long."
      )
    kinds = {"i": integers, "f": "float32" if array.dtype == np.float64 else None}
    found[name] = tf.constant(array, kinds.get(array.dtype.kind))
  return found


class BatchEncoding(transformers.BatchEncoding):
  """The result of a tokenizer; `tensor_type` may also be "tf"."""

  data: dict

  def convert_to_tensors(self, tensor_type=None, prepend_batch_axis=False):
    """Converts its values; see transformers.

    Raises:
      ValueError: sequences have different lengths.
    """
    is_tf = tensor_type == "tf"
    super().convert_to_tensors("np" if is_tf else tensor_type, prepend_batch_axis)
    if is_tf:
      self.data = to_tensorflow(self.data, "int32")  # as in transformers 4
    return self


class TensorFlowTokenizer:
  """What is added to a class of transformers.

  `return_tensors` may also be "tf", ids may be tensors of TensorFlow, and methods and arguments of
  older versions (`encode_plus`, `batch_encode_plus`, `pad_to_max_length`) still work.
  """

  @classmethod
  def from_pretrained(cls, pretrained_model_name_or_path, *inputs, **kwargs):
    """Reads a tokenizer: of a folder, a checkpoint, a vocabulary, or a name; see `located`.

    Raises:
      ModelNotFoundError: there is no such model.
      ValueError: it has no vocabulary.
    """
    name = pretrained_model_name_or_path
    path = folders.located(name, folders.TOKENIZER_FILES, **kwargs)
    kwargs = folders.without_options(kwargs)
    if folders.is_released(name):
      kwargs.setdefault("model_max_length", 512)  # of every released model
    if not os.path.isfile(path):
      kwargs = {**_settings(cls, path), **kwargs}
      path = model_files.folder_of(path)
    made = super().from_pretrained(path, *inputs, **kwargs)
    made.name_or_path = os.fsdecode(name)
    return made

  @classmethod
  def convert_to_native_format(cls, **kwargs):
    """Reads the files that are arguments, for the constructor; see transformers.

    A sentencepiece model is read by this project: transformers needs another protobuf for it than
    TensorFlow.
    """
    model_file = kwargs.get("vocab_file")
    if kwargs.get("tokenizer_file") or not str(model_file).endswith(".model"):
      return super().convert_to_native_format(**kwargs)
    content = tokenizer_json.whole(model_file, kwargs.get("do_lower_case", True))
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, tokenizer_settings.TOKENIZER)
      with open(path, "w", encoding="utf-8") as stream:
        json.dump(content, stream)
      return super().convert_to_native_format(**{**kwargs, "tokenizer_file": path})

  def save_pretrained(self, save_directory, *args, **kwargs):
    """Writes a folder; a sentencepiece model, too, which this project's scripts read."""
    paths = super().save_pretrained(save_directory, *args, **kwargs)
    model_file = getattr(self, "vocab_file", None)
    if str(model_file).endswith(".model") and os.path.isfile(model_file):
      copy = os.path.join(save_directory, "spiece.model")
      if os.path.abspath(copy) != os.path.abspath(model_file):
        shutil.copyfile(model_file, copy)
      return (*paths, copy)
    return paths

  def __call__(self, *args, **kwargs):
    """Tokenizes texts; see transformers."""
    if kwargs.pop("pad_to_max_length", False):  # which also truncated
      kwargs = {"truncation": True, **kwargs, "padding": "max_length"}
    return _with_tensors(super().__call__, *args, **kwargs)

  encode_plus = __call__  # the older name, for a text or a pair

  def batch_encode_plus(self, batch_text_or_text_pairs, **kwargs):
    """Tokenizes a list of texts or of pairs: the older name of a call."""
    return self(batch_text_or_text_pairs, **kwargs)

  def encode(self, *args, **kwargs):
    """Returns the ids of a text or a pair; see transformers."""
    return self(*args, **kwargs)["input_ids"]

  def pad(self, encoded_inputs, *args, **kwargs):
    """Pads tokenized texts; see transformers."""
    return _with_tensors(super().pad, as_arrays(encoded_inputs), *args, **kwargs)

  def decode(self, token_ids, *args, **kwargs):
    """Makes a text of ids; see transformers."""
    return super().decode(as_arrays(token_ids), *args, **kwargs)

  def convert_ids_to_tokens(self, ids, *args, **kwargs):
    """Returns the tokens of ids; see transformers."""
    return super().convert_ids_to_tokens(np.asarray(as_arrays(ids)).tolist(), *args, **kwargs)


@functools.cache
def adapted(tokenizer_class):
  """Returns a class of transformers with what is added here, under the same name.

  It is derived from its own base with the same added, so that `isinstance` holds for both.
  """
  if issubclass(tokenizer_class, TensorFlowTokenizer):
    return tokenizer_class
  base = tokenizer_class.__bases__[0]
  base = adapted(base) if is_tokenizer(base) else TensorFlowTokenizer
  members = {"__module__": __name__, "__doc__": tokenizer_class.__doc__}
  # A class without a constructor of its own is made of a tokenizer.json as it is.
  if "__init__" in vars(tokenizer_class) and getattr(tokenizer_class, "model", None):
    members["__init__"] = _constructor(tokenizer_class)
  return type(tokenizer_class.__name__, (base, tokenizer_class), members)


def _constructor(tokenizer_class):
  """Makes a constructor that also takes files, as transformers 4: `vocab_file=`, or it first."""

  @functools.wraps(tokenizer_class.__init__)
  def constructor(self, *args, **kwargs):
    if args and isinstance(args[0], str | os.PathLike) and str(args[0]).endswith(".model"):
      args, kwargs = args[1:], {**kwargs, "vocab_file": os.fspath(args[0])}
    if not args and kwargs.get("vocab_file") and kwargs.get("vocab") is None:
      kwargs = self.convert_to_native_format(**kwargs)
    tokenizer_class.__init__(self, *args, **kwargs)

  return constructor


class AutoTokenizer(transformers.AutoTokenizer):
  """Makes a tokenizer of the class that a folder names."""

  @classmethod
  def from_pretrained(cls, pretrained_model_name_or_path, *inputs, **kwargs):
    """Reads a tokenizer; see `TensorFlowTokenizer.from_pretrained`."""
    name = pretrained_model_name_or_path
    path = folders.located(name, folders.TOKENIZER_FILES, **kwargs)
    config, family = kwargs.get("config"), kwargs.get("tokenizer_type")
    found = _class_in(model_files.folder_of(path), family or getattr(config, "model_type", None))
    if found is not None:
      own = {k: v for k, v in kwargs.items() if k not in ("use_fast", "config", "tokenizer_type")}
      return found.from_pretrained(name, *inputs, **own)
    made = super().from_pretrained(path, *inputs, **folders.without_options(kwargs))
    made.__class__ = adapted(type(made))
    return made


def _class_in(folder: str, family: str | None):
  """Finds the class of a folder: as its files name it, else by the family and the vocabulary.

  Returns:
    The class; None for families that are not of this project.
  """
  paths = [os.path.join(folder, name) for name in (tokenizer_settings.CONFIG, "config.json")]
  told = [json_files.read_object(path) if filesystem.is_file(path) else {} for path in paths]
  name = next((each["tokenizer_class"] for each in told if each.get("tokenizer_class")), None)
  if name is None:
    name = _of_vocabulary(folder, family or told[1].get("model_type", "bert"))
  name = name.removesuffix("Fast")
  known = {f"{files.transformers.class_prefix}Tokenizer" for files in FILES.values()}
  return adapted(getattr(transformers, name)) if name in known else None


def _of_vocabulary(folder: str, model_type: str) -> str:
  """Names the class for a vocabulary; Chinese ALBERTs have one of word pieces."""
  files = FILES.get(model_type)
  own = f"{files.transformers.class_prefix}Tokenizer" if files else ""
  if not files or filesystem.is_file(os.path.join(folder, tokenizer_settings.TOKENIZER)):
    return own
  kind = vocabulary_kind.saved_vocabulary_name(model_files.need_vocabulary(folder))
  if kind in _OF_KIND:
    return _OF_KIND[kind]
  return "BertTokenizer" if own in _OF_KIND.values() else own


def _settings(cls, path: str) -> dict:
  """Collects what this project reads of a folder: a vocabulary of any name, and how words split.

  Raises:
    ValueError: there is no vocabulary.
  """
  folder = model_files.folder_of(path)
  found: dict = {}
  if not issubclass(cls, _READ_HERE):
    return found
  if not filesystem.is_file(os.path.join(folder, tokenizer_settings.TOKENIZER)):
    usual = os.path.join(folder, cls.vocab_files_names["vocab_file"])
    found["vocab_file"] = usual if filesystem.is_file(usual) else model_files.need_vocabulary(path)
  if issubclass(cls, transformers.RobertaTokenizer):
    return found
  in_folder, beside = tokenizer_settings.in_folder, tokenizer_settings.beside
  stated = beside(found["vocab_file"]) if "vocab_file" in found else in_folder(folder)
  lower = _stored_case(path)
  lower = stated.do_lower_case if lower is None else lower
  if not issubclass(cls, transformers.BertTokenizer):
    return found if lower is None else {**found, "do_lower_case": lower}
  if "vocab_file" in found:
    found["vocab"] = dict(tokenization.load_vocab(found["vocab_file"]))
  if lower is None:
    lower = not os.path.basename(os.path.abspath(folder)).startswith(_CASED_NAMES)
  return {**found, "do_lower_case": lower, **stated.splitting}


def _stored_case(path: str) -> bool | None:
  """Returns `do_lower_case` as a run stored it with its weights; None if that is not known."""
  try:
    return finding.find(path).do_lower_case
  except CheckpointError:  # a tokenizer alone, or weights that are no concern here
    return None


# ---------------------------------------------------------------------------------------------
# Arguments and results.


def _with_tensors(call, *args, return_tensors=None, **kwargs):
  """Calls a method of transformers, which does not know "tf"."""
  is_tf = return_tensors == "tf"
  found = call(*args, return_tensors="np" if is_tf else return_tensors, **kwargs)
  if type(found) is transformers.BatchEncoding:
    found.__class__ = BatchEncoding
  return found.convert_to_tensors("tf") if is_tf else found


def as_arrays(value):
  """Replaces TensorFlow's tensors by arrays."""
  if isinstance(value, transformers.BatchEncoding):
    value = value.data
  if isinstance(value, Mapping):
    return {name: as_arrays(each) for name, each in value.items()}
  if isinstance(value, list | tuple) and value and not isinstance(value[0], int):
    return type(value)(as_arrays(each) for each in value)
  return value.numpy() if type(value).__module__.startswith("tensorflow.") else value
