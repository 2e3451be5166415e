"""The special tokens of a tokenizer, as attributes: `cls_token`, `cls_token_id`, and so on."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert.transformers.added_tokens import AddedToken
from bert.transformers.tokenization_options import LOGGER

_MORE = "additional_special_tokens"
_NAMES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_UNSET = "_special_tokens_map"


class SpecialTokenError(ValueError, AssertionError):
  """What was to become a special token is none; transformers 4 raises an AssertionError."""


class SpecialTokensMixin:
  """Special tokens by name.

  Each of `bos_token`, `eos_token`, `unk_token`, `sep_token`, `pad_token`, `cls_token`, `mask_token`
  and `additional_special_tokens` is an attribute that can be set, and so is the id of each:
  `cls_token_id`, ..., `additional_special_tokens_ids`. What is not set is None, and [].

  Attributes:
    SPECIAL_TOKENS_ATTRIBUTES: these names.
    verbose: whether to log what is odd.
  """

  SPECIAL_TOKENS_ATTRIBUTES: list[str] = [*(f"{name}_token" for name in _NAMES), _MORE]

  def __init__(self, verbose: bool = False, **tokens: Any):
    """Sets the tokens among the keywords; raises a TypeError if one is no token."""
    self._pad_token_type_id = 0
    self.verbose = verbose
    unset: dict[str, Any] = dict.fromkeys(self.SPECIAL_TOKENS_ATTRIBUTES)
    self._special_tokens_map: dict[str, Any] = {**unset, _MORE: []}
    for name, value in tokens.items():
      if value is None or name not in self.SPECIAL_TOKENS_ATTRIBUTES:
        continue
      if name == _MORE:
        setattr(self, name, _list_of_tokens(name, value, TypeError))
      elif isinstance(value, str):
        setattr(self, name, value)
      else:
        setattr(self, name, _token(name, value, TypeError))

  # -------------------------------------------------------------------------------------------
  # Attributes.

  def __setattr__(self, name: str, value: Any) -> None:
    known = self.__dict__.get(_UNSET, {})
    token_name = _without_id(name)
    if name in known:
      if name != _MORE and not isinstance(value, str) and value is not None:
        value = _token(name, value, ValueError)
      known[name] = value
    elif token_name in known:
      if value is not None:
        is_list = token_name == _MORE
        value = (
          [self.convert_ids_to_tokens(index) for index in value]
          if is_list
          else self.convert_ids_to_tokens(value)
        )
      known[token_name] = value
    else:
      super().__setattr__(name, value)

  def __getattr__(self, name: str) -> Any:
    """Returns what is not an ordinary attribute: a special token or its id."""
    known = self.__dict__.get(_UNSET, {})
    if name in known:
      value = known[name]
      if value is None:
        if self.verbose:
          LOGGER.error("%s of this tokenizer is not set.", name)
        return None
      return [str(token) for token in value] if name == _MORE else str(value)
    token_name = _without_id(name)
    if token_name in known:
      tokens = getattr(self, token_name)
      return None if tokens is None else self.convert_tokens_to_ids(tokens)
    raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

  @property
  def pad_token_type_id(self) -> int:
    """The segment of padding."""
    return self._pad_token_type_id

  @property
  def special_tokens_map(self) -> dict[str, str | list[str]]:
    """Name -> token, of those that are set."""
    return {name: getattr(self, name) for name in self.special_tokens_map_extended}

  @property
  def special_tokens_map_extended(self) -> dict[str, Any]:
    """Name -> token as it was set, text or `AddedToken`, of those that are set."""
    known = self._special_tokens_map
    return {name: known[name] for name in self.SPECIAL_TOKENS_ATTRIBUTES if known[name]}

  @property
  def all_special_tokens_extended(self) -> list[str | AddedToken]:
    """The tokens as they were set, each once."""
    found: dict[str, str | AddedToken] = {}
    for value in self.special_tokens_map_extended.values():
      for token in value if isinstance(value, list | tuple) else [value]:
        found.setdefault(str(token), token)
    return list(found.values())

  @property
  def all_special_tokens(self) -> list[str]:
    """The tokens, each once."""
    return list(map(str, self.all_special_tokens_extended))

  @property
  def all_special_ids(self) -> list[int]:
    """Their ids."""
    return self.convert_tokens_to_ids(self.all_special_tokens)

  # -------------------------------------------------------------------------------------------
  # Adding.

  def add_special_tokens(
    self,
    special_tokens_dict: Mapping[str, Any],
    replace_additional_special_tokens: bool = True,
  ) -> int:
    """Sets special tokens, and adds those that the vocabulary does not have.

    A model then needs `resize_token_embeddings(len(tokenizer))`.

    Args:
      special_tokens_dict: name -> token; a list of `additional_special_tokens`.
      replace_additional_special_tokens: whether such a list replaces the one before; its tokens
        stay in the vocabulary.

    Returns:
      The number of added tokens.

    Raises:
      SpecialTokenError: a name is not known, or a value is no token.
    """
    added: list[AddedToken] = []
    for name, value in special_tokens_dict.items():
      if name not in self.SPECIAL_TOKENS_ATTRIBUTES:
        known = ", ".join(self.SPECIAL_TOKENS_ATTRIBUTES)
        raise SpecialTokenError(f"{name!r} is not the name of a special token; known: {known}.")
      if name == _MORE:
        tokens = [_special(token) for token in _list_of_tokens(name, value, SpecialTokenError)]
        if replace_additional_special_tokens:
          if tokens:
            setattr(self, name, list(tokens))
        else:
          tokens = [token for token in tokens if str(token) not in getattr(self, name)]
          self._special_tokens_map[name].extend(tokens)
        added += tokens
      else:
        is_text = isinstance(value, str)
        token = _special(value if is_text else _token(name, value, SpecialTokenError))
        setattr(self, name, token)
        if token not in added:
          added.append(token)
    return self.add_tokens(added, special_tokens=True)

  def add_tokens(
    self,
    new_tokens: str | AddedToken | Sequence[str | AddedToken],
    special_tokens: bool = False,
  ) -> int:
    """Adds tokens, which stay whole in every text; those in the vocabulary keep their ids.

    A model then needs `resize_token_embeddings(len(tokenizer))`.

    Args:
      new_tokens: one token, or several.
      special_tokens: whether they are special: found before a text is lower-cased, and skipped by
        `decode(..., skip_special_tokens=True)`.

    Returns:
      The number of added tokens.

    Raises:
      TypeError: one of them is no token.
    """
    if not new_tokens:
      return 0
    several = new_tokens if isinstance(new_tokens, list | tuple) else [new_tokens]
    return self._add_tokens(several, special_tokens=special_tokens)

  def _add_tokens(self, new_tokens: Iterable[Any], special_tokens: bool = False) -> int:
    raise NotImplementedError


def _without_id(name: str) -> str:
  return name.removesuffix("_ids") if name.endswith("_ids") else name.removesuffix("_id")


def _special(token: str | AddedToken) -> AddedToken:
  return AddedToken(token, normalized=False, special=True) if isinstance(token, str) else token


def _token(name: str, value: Any, error: type[Exception]) -> AddedToken:
  try:
    return AddedToken.of(value)
  except TypeError:
    raise error(
      f"{name} must be str or AddedToken, not {type(value).__name__}: {value!r:.80}"
    ) from None


def _list_of_tokens(name: str, values: Any, error: type[Exception]) -> list[str | AddedToken]:
  if not isinstance(values, list | tuple):
    raise error(f"{name} must be a list of tokens, not {type(values).__name__}: {values!r:.80}")
  return [value if isinstance(value, str) else _token(name, value, error) for value in values]
