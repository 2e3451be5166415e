"""The page of a report: one file that needs no network, no server and no scripts.

  html = html_page.render(subject)

Values become HTML in the templates of `page` alone, where jinja2 escapes all of them. Beside that
the page forbids itself every script but its own, whose hash it names, so that a text that got
through would still be a text.
"""

import base64
import functools
import hashlib
import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

from bert.reports.contents import MOST_CASES, contents, numbers
from bert.reports.subject import Subject
from bert.tasks import run_statistics, shown

MOST_BYTES = 2_000_000
_PAGE = pathlib.Path(__file__).parent / "page"
_NO_BREAK = "\u00a0"


def render(subject: Subject) -> str:
  """Makes the page of a run."""
  return page("report.html", functools.partial(contents, subject), numbers)


def page(
  template: str,
  contents_of: Callable[[int], dict[str, Any]],
  numbers_of: Callable[[dict[str, Any]], dict[str, Any]],
) -> str:
  """Makes a page; with fewer examples where it would be larger than `MOST_BYTES`.

  Args:
    template: its name in `page`.
    contents_of: returns what the template shows, with at most N examples in a list.
    numbers_of: returns the numbers of that, as JSON.
  """
  made = _template(template)
  for most_cases in (MOST_CASES, 10, 3, 0):
    content = contents_of(most_cases)
    html = made.render(**content, data=_data(numbers_of(content)), **_inlined())
    if len(html.encode("utf-8")) <= MOST_BYTES:
      break
  return html


def _template(name: str) -> Any:
  import jinja2

  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_PAGE),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
  )
  environment.filters |= {"percent": percent, "short": short, "flag_value": flag_value}
  environment.filters |= {"readable": run_statistics.title}
  environment.filters |= {"rounded": rounded, "signed": signed, "titles": run_statistics.titles}
  environment.filters |= {"points": points, "p_value": p_value, "is_visible": shown.is_visible}
  return environment.get_template(name)


def _inlined() -> dict[str, Any]:
  """Returns style, script and the latter's hash, as they stand in the page."""
  import markupsafe

  script = (_PAGE / "report.js").read_text(encoding="utf-8")
  digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
  style = (_PAGE / "report.css").read_text(encoding="utf-8")
  return {
    "style": markupsafe.Markup(style),
    "script": markupsafe.Markup(script),
    "script_hash": digest,
    "raw": markupsafe.Markup,
  }


def _data(values: Any) -> Any:
  """Writes JSON that can stand in a script element: no text in it ends that element."""
  import markupsafe

  text = json.dumps(
    _with_numbers(values),
    ensure_ascii=False,
    allow_nan=False,
    separators=(",", ":"),
    default=str,
  )
  for letter in "<>&\u2028\u2029":
    text = text.replace(letter, f"\\u{ord(letter):04x}")
  return markupsafe.Markup(text)


def _with_numbers(value: Any) -> Any:
  """Returns values with None for numbers that JSON does not have: NaN and infinity."""
  if isinstance(value, float):
    return value if math.isfinite(value) else None
  if isinstance(value, dict):
    return {str(name): _with_numbers(each) for name, each in value.items()}
  return [_with_numbers(each) for each in value] if isinstance(value, (list, tuple)) else value


# ---------------------------------------------------------------------------------------------
# Values.


def percent(share: float) -> str:
  """Writes a share.

  Example:
    >>> percent(0.6838).replace(chr(0xa0), " "), percent(1.0).replace(chr(0xa0), " ")
    ('68.4 %', '100 %')
  """
  digits = f"{100 * share:.1f}"
  return f"{'100' if digits == '100.0' else digits}{_NO_BREAK}%"


def short(number: float | None) -> str:
  """Writes a number with three digits after the point at most.

  Example:
    >>> short(1.23456), short(0.00001234), short(12.0), short(None)
    ('1.235', '1.23e-05', '12', '–')
  """
  if number is None:
    return "–"
  text = f"{number:.3f}".rstrip("0").rstrip(".")
  return f"{number:.3g}" if text in ("0", "-0") and number else text


def rounded(text: str) -> str:
  """Writes a number of a result with four digits at most.

  Example:
    >>> rounded("0.27522346"), rounded("0.5"), rounded("81.25")
    ('0.2752', '0.5', '81.25')
  """
  return f"{float(text):.4g}"


def signed(number: float) -> str:
  """Writes a difference with four digits after the point at most.

  Example:
    >>> signed(0.01471), signed(-3.0), signed(-0.00001), signed(0.0)
    ('+0.0147', '−3', '±0', '±0')
  """
  digits = f"{abs(number):.4f}".rstrip("0").rstrip(".")
  return ("±" if digits == "0" else "+" if number > 0 else "−") + digits


def points(difference: float) -> str:
  """Writes a difference of two shares in percentage points.

  Example:
    >>> points(0.0147), points(-0.12), points(0.0001)
    ('+1.5', '−12.0', '±0.0')
  """
  digits = f"{abs(100 * difference):.1f}"
  return ("±" if digits == "0.0" else "+" if difference > 0 else "−") + digits


def p_value(value: float) -> str:
  """Writes a p-value.

  Example:
    >>> p_value(0.3877), p_value(0.0123), p_value(0.00001)
    ('0.39', '0.012', 'below 0.001')
  """
  if value < 0.001:
    return "below 0.001"
  return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def flag_value(value: Any) -> str:
  """Writes the value of a flag as a command line has it.

  Example:
    >>> flag_value(True), flag_value(["a", "b"]), flag_value(None), flag_value(2e-05)
    ('true', 'a,b', '', '2e-05')
  """
  if isinstance(value, bool):
    return str(value).lower()
  if isinstance(value, (list, tuple)):
    return ",".join(map(str, value))
  return "" if value is None else str(value)
