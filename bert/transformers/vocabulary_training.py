"""A new vocabulary for a fast tokenizer, learned by the library `tokenizers`.

`create_vocab.py` learns a vocab.txt without that library; this is `train_new_from_iterator` of
transformers, for all kinds of vocabularies.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert.io import installation
from bert.transformers.added_tokens import AddedToken
from bert.transformers.encodings import Special, Template
from bert.transformers.tokenization_options import LOGGER
from bert.transformers.tokenization_special import SpecialTokensMixin

_MORE = "additional_special_tokens"


def train_new(
  tokenizer: Any,
  text_iterator: Iterable[Any],
  vocab_size: int,
  length: int | None = None,
  new_special_tokens: Sequence[Any] | None = None,
  special_tokens_map: Mapping[str, str] | None = None,
  **kwargs: Any,
) -> Any:
  """See `PreTrainedTokenizerFast.train_new_from_iterator`."""
  with installation.extra("roberta", "train_new_from_iterator"):
    import tokenizers

  names = special_tokens_map or {}
  content = tokenizer.backend_tokenizer.content()
  kept = _kept_tokens(content, names, new_special_tokens or ())
  kind = content["model"]["type"]
  library = tokenizers.Tokenizer.from_str(json.dumps(_emptied(content, names)))
  trainer = _trainer(content, kind, names, kwargs)(
    vocab_size=vocab_size,
    special_tokens=[tokenizers.AddedToken(**token.settings()) for token in kept],
    **kwargs,
  )
  library.train_from_iterator(text_iterator, length=length, trainer=trainer)
  learned = json.loads(library.to_str())
  template = _renamed_template(tokenizer._template, names, library)
  learned["post_processor"] = template.content()
  LOGGER.info("Learned %d tokens.", library.get_vocab_size())
  settings = _settings(tokenizer, names, new_special_tokens or ())
  return type(tokenizer)(tokenizer_object=learned, **settings)


def _kept_tokens(
  content: Mapping[str, Any], names: Mapping[str, str], new: Sequence[Any]
) -> list[AddedToken]:
  """Returns the special tokens, of a sentencepiece model all added ones, and new ones."""
  tokens = [AddedToken.of(each) for each in content["added_tokens"]]
  is_unigram = content["model"]["type"] == "Unigram"
  kept = [token for token in tokens if token.special or is_unigram]
  renamed = [token.copy(content=names.get(token.content, token.content)) for token in kept]
  return renamed + [
    AddedToken(token, special=True) if isinstance(token, str) else AddedToken.of(token)
    for token in new
  ]


def _emptied(content: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
  """Takes the vocabulary out of the content of a tokenizer.json."""
  model = dict(content["model"])
  if model["type"] == "Unigram":
    unknown = _unknown(content, names)
    model |= {"vocab": [[unknown, 0.0]], "unk_id": 0}
  else:
    model["vocab"] = {}
    if "merges" in model:
      model["merges"] = []
    if model.get("unk_token") is not None:
      model["unk_token"] = _unknown(content, names)
  return {**content, "added_tokens": [], "post_processor": None, "model": model}


def _unknown(content: Mapping[str, Any], names: Mapping[str, str]) -> str:
  model = content["model"]
  is_unigram = model["type"] == "Unigram"
  token = model["vocab"][model["unk_id"]][0] if is_unigram else model["unk_token"]
  return names.get(token, token)


def _trainer(
  content: Mapping[str, Any], kind: str, names: Mapping[str, str], kwargs: dict[str, Any]
) -> type[Any]:
  """Returns the library's trainer of a kind of model, and adds what it needs to `kwargs`."""
  from tokenizers import pre_tokenizers, trainers

  model = content["model"]
  if kind == "Unigram":
    kwargs["unk_token"] = _unknown(content, names)
  if kind == "BPE":
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
      if model.get(name) is not None:
        kwargs.setdefault(name, model[name])
    if (content.get("pre_tokenizer") or {}).get("type") == "ByteLevel":
      kwargs["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
  known = {
    "BPE": trainers.BpeTrainer,
    "Unigram": trainers.UnigramTrainer,
    "WordLevel": trainers.WordLevelTrainer,
    "WordPiece": trainers.WordPieceTrainer,
  }
  return known[kind]


def _renamed_template(template: Template, names: Mapping[str, str], library: Any) -> Template:
  def renamed(place):
    if not isinstance(place, Special):
      return place
    tokens = tuple(names.get(token, token) for token in place.tokens)
    return place._replace(tokens=tokens, ids=tuple(map(library.token_to_id, tokens)))

  single, pair = (tuple(map(renamed, places)) for places in (template.single, template.pair))
  return template._replace(single=single, pair=pair)


def _settings(tokenizer: Any, names: Mapping[str, str], new: Sequence[Any]) -> dict[str, Any]:
  """Returns the arguments of the constructor, special tokens by their new names."""
  settings = dict(tokenizer.init_kwargs)
  for name in SpecialTokensMixin.SPECIAL_TOKENS_ATTRIBUTES:
    token = tokenizer._special_tokens_map.get(name)
    if token is None or name == _MORE:
      continue
    content = names.get(str(token), str(token))
    is_text = isinstance(token, str)
    settings[name] = content if is_text else token.copy(content=content, special=True)
  more = [*tokenizer.additional_special_tokens, *new]
  return {**settings, **({_MORE: more} if more else {})}
