"""What the flags of long documents (`shared_flags.define_long_text_flags`) mean."""

from bert.scripts import command_line
from bert.tasks.windows import MIN_SEQ_LENGTH, WindowOptions


def check_window_settings(settings) -> None:
  """Checks the flags of long documents, and names those without effect.

  Args:
    settings: flag values as attributes.

  Raises:
    UsageError: a flag has an invalid value.
  """
  least = {"window_stride": 1, "max_windows": 1}
  if settings.long_text == "truncate":
    reason = "it is for --long_text=windows"
    command_line.explain_ignored_flags(dict.fromkeys([*least, "window_pooling"], reason))
    return
  for name, number in {**least, "max_seq_length": MIN_SEQ_LENGTH}.items():
    value = getattr(settings, name)
    if value is not None and value < number:
      raise command_line.UsageError(
        f"--{name}={value}: must be at least {number} with --long_text=windows."
      )


def window_options(settings) -> WindowOptions | None:
  """How documents are read; None where long texts are truncated."""
  if settings.long_text == "truncate":
    return None
  stride = settings.window_stride or (settings.max_seq_length - 2) // 2
  return WindowOptions(stride, settings.max_windows, settings.window_pooling)
