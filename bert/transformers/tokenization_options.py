"""What a call of a tokenizer can be asked for: padding, truncation, kinds of tensors.

options = resolve(padding=True, truncation="only_second", max_length=384, model_max_length=512)
options.padding, options.truncation, options.max_length
"""

import enum
import logging
import numbers
import warnings
from typing import Any, NamedTuple

LOGGER = logging.getLogger("transformers.tokenization")  # so that users' settings for it hold
NO_LIMIT = int(1e30)  # `model_max_length` if it is not known
_KNOWN_LIMIT = int(1e20)  # a length above stands for none


class ExplicitEnum(str, enum.Enum):
  """Words for an argument, each of which equals its text."""

  @classmethod
  def _missing_(cls, value):
    known = ", ".join(repr(member.value) for member in cls)
    raise ValueError(f"{value!r} is not a valid {cls.__name__}; known: {known}.")


class TensorType(ExplicitEnum):
  """What `return_tensors` can ask for."""

  PYTORCH = "pt"
  TENSORFLOW = "tf"
  NUMPY = "np"
  JAX = "jax"
  MLX = "mlx"


class PaddingStrategy(ExplicitEnum):
  """To which length rows are padded."""

  LONGEST = "longest"
  MAX_LENGTH = "max_length"
  DO_NOT_PAD = "do_not_pad"


class TruncationStrategy(ExplicitEnum):
  """Which text of a pair loses tokens."""

  ONLY_FIRST = "only_first"
  ONLY_SECOND = "only_second"
  LONGEST_FIRST = "longest_first"
  DO_NOT_TRUNCATE = "do_not_truncate"


class Options(NamedTuple):
  """Padding and truncation of one call."""

  padding: PaddingStrategy
  truncation: TruncationStrategy
  max_length: int | None  # in tokens

  @property
  def pads(self) -> bool:
    """Whether rows are padded."""
    return self.padding is not PaddingStrategy.DO_NOT_PAD

  @property
  def truncates(self) -> bool:
    """Whether rows are cut."""
    return self.truncation is not TruncationStrategy.DO_NOT_TRUNCATE


def warn_once(warned: dict[str, bool], kind: str, message: str, verbose: bool = True) -> None:
  """Logs a warning, unless one of this kind is in `warned`, which notes it."""
  if verbose and not warned.get(kind):
    LOGGER.warning(message)
    warned[kind] = True


def resolve(
  padding: bool | str | PaddingStrategy,
  truncation: bool | str | TruncationStrategy | None,
  max_length: int | None,
  pad_to_multiple_of: int | None,
  model_max_length: int,
  warned: dict[str, bool],
  verbose: bool = True,
) -> Options:
  """Decides what is meant.

  Args:
    padding: True or "longest", "max_length", False or "do_not_pad".
    truncation: True or "longest_first", "only_first", "only_second", False or "do_not_truncate";
      None is False, unless `max_length` is given and `padding` is not.
    max_length: in tokens; of the model by default.
    pad_to_multiple_of: rows are padded to a multiple of it.
    model_max_length: the longest row of the model.
    warned: what was warned of.
    verbose: whether to warn.

  Raises:
    ValueError: an argument has no such value.
  """
  _check_number("max_length", max_length, 0)
  _check_number("pad_to_multiple_of", pad_to_multiple_of, 1)
  if max_length is not None and padding is False and truncation is None:
    warn_once(
      warned,
      "Truncation-not-explicitly-activated",
      f"max_length={max_length} without truncation: rows are cut as by truncation=True "
      "('longest_first'). Pass it, or another strategy, to say so.",
      verbose,
    )
    truncation = TruncationStrategy.LONGEST_FIRST
  pads = _strategy(PaddingStrategy, padding, "longest", "do_not_pad")
  cuts = _strategy(TruncationStrategy, truncation, "longest_first", "do_not_truncate")
  options = Options(pads, cuts, max_length)
  if padding is True and max_length is not None and not options.truncates and verbose:
    warnings.warn(
      f"max_length={max_length} has no effect with padding=True and without truncation. Pass "
      "padding='max_length' to pad to it.",
      stacklevel=4,
    )
  if max_length is None:
    options = _with_length_of_model(options, model_max_length, warned, verbose)
  length = options.max_length
  is_both = options.truncates and options.pads and length is not None
  if is_both and pad_to_multiple_of and length % pad_to_multiple_of:
    raise ValueError(
      f"Rows are cut to max_length={length}, which is no multiple of "
      f"pad_to_multiple_of={pad_to_multiple_of}, to which they are padded."
    )
  return options


def _with_length_of_model(
  options: Options, model_max_length: int, warned: dict[str, bool], verbose: bool
) -> Options:
  if model_max_length <= _KNOWN_LIMIT:
    if options.truncates or options.padding is PaddingStrategy.MAX_LENGTH:
      return options._replace(max_length=model_max_length)
    return options
  unknown = "without max_length, and the tokenizer has no model_max_length"
  if options.padding is PaddingStrategy.MAX_LENGTH:
    warn_once(
      warned,
      "Asking-to-pad-to-max_length",
      f"padding='max_length' {unknown}: nothing is padded.",
      verbose,
    )
    options = options._replace(padding=PaddingStrategy.DO_NOT_PAD)
  if options.truncates:
    warn_once(
      warned,
      "Asking-to-truncate-to-max_length",
      f"truncation={options.truncation.value!r} {unknown}: nothing is cut.",
      verbose,
    )
    options = options._replace(truncation=TruncationStrategy.DO_NOT_TRUNCATE)
  return options


def _strategy(kind: type[Any], value: Any, if_true: str, if_false: str) -> Any:
  if value is None or isinstance(value, bool):
    return kind(if_true if value else if_false)
  return kind(value)


def _check_number(name: str, value: Any, least: int) -> None:
  if value is None:
    return
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise ValueError(f"{name} must be a whole number or None, not {value!r:.80}.")
  if value < least:
    raise ValueError(f"{name} is {value}; it must be at least {least}.")


def check_side(name: str, value: Any) -> str:
  """Returns "left" or "right"; raises a ValueError for anything else."""
  if value not in ("left", "right"):
    raise ValueError(f"{name} must be 'left' or 'right', not {value!r:.80}.")
  return value


def longer_by_multiple(length: int, multiple: int | None) -> int:
  """Rounds a length up.

  Example:
    >>> longer_by_multiple(9, 8), longer_by_multiple(8, 8), longer_by_multiple(9, None)
    (16, 8, 9)
  """
  return -(-length // multiple) * multiple if multiple else length
