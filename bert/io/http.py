"""One file over HTTPS, resumed where the transfer broke off.

  fetch("https://host/name.zip", pathlib.Path("name.zip.part"))

`download_cache.py` decides where files are stored.
"""

import ipaddress
import json
import pathlib
import shutil
import sys
import time
import urllib.parse
from typing import Any

import requests
import tqdm

MAX_DOWNLOAD_BYTES = 4 << 30  # the largest released archive has 1.2 GiB
TIMEOUT_SECONDS = 30.0  # without any data, not for the whole download
ATTEMPTS = 3  # in a row without any new byte
RETRY_SECONDS = 1.0  # before the second attempt; twice that before the third
_CHUNK_BYTES = 1 << 16
_SECONDS_BETWEEN_LINES = 10.0  # of progress, in a log
_RETRIED = (408, 416, 429)  # and 5xx: another attempt may succeed


class DownloadError(ValueError):
  """A download or an archive that cannot be used; the message says what to do."""


def fetch(url: str, part: pathlib.Path) -> None:
  """Downloads `url` to `part`, continuing after the bytes of the same file that `part` has.

  The file `part` + ".json" records which version of which URL the bytes belong to.

  Raises:
    DownloadError: not HTTPS, no connection, refused by the server, interrupted repeatedly, too
      large, or no space. The bytes received so far stay in `part` for the next call.
  """
  _check_url(url)
  failures, most_bytes = 0, _size(part)
  while True:
    try:
      return _fetch_rest(url, part)
    except requests.RequestException as error:
      reason = _reason(error, url, part)
    if _size(part) > most_bytes:
      # Only attempts without progress count: a long download over a bad line may break often.
      failures, most_bytes = 0, _size(part)
    failures += 1
    if failures >= ATTEMPTS:
      raise DownloadError(f"Cannot download {url}: {reason}.")
    time.sleep(RETRY_SECONDS * failures)


def _reason(error: requests.RequestException, url: str, part: pathlib.Path) -> str:
  """Explains why an attempt failed; raises `DownloadError` if another would fail too."""
  response = error.response
  if response is None:
    host = urllib.parse.urlsplit(url).hostname
    kind = "timed out" if isinstance(error, requests.Timeout) else "broke off or was refused"
    return f"the connection to {host} {kind} after {_size(part):,} bytes; check the network"
  status = response.status_code
  if status < 500 and status not in _RETRIED:
    raise DownloadError(f"Cannot download {url}: the server answered {error}.") from error
  return f"the server answered {error}"


def _fetch_rest(url: str, part: pathlib.Path) -> None:
  """Completes `part`; on a `RequestException` the bytes received are kept."""
  state = _read_state(part, url)
  have = _size(part) if state else 0
  if state and have == state["total"]:
    return
  headers = {"User-Agent": "bert-download/1.0", "Accept-Encoding": "identity"}
  if have:
    # If-Range: the rest of the same file, or all of the new one; never the rest of a new one.
    headers |= {"Range": f"bytes={have}-", "If-Range": state["validator"]}
  with requests.Session() as session:
    session.hooks["response"].append(_check_redirect)
    with session.get(url, headers=headers, stream=True, timeout=TIMEOUT_SECONDS) as response:
      if response.status_code == 416:  # nothing after our bytes: the file has become shorter
        _forget(part)
      response.raise_for_status()
      length = response.headers.get("Content-Length")
      if response.status_code == 206:
        _check_is_rest(response, part, have, state)
      else:  # the whole file: it is new, or has changed, or the server does not support ranges
        have, total = 0, int(length) if length else None
        state = {"url": url, "validator": _validator(response), "total": total}
        part.write_bytes(b"")
        _state_path(part).write_text(json.dumps(state), encoding="utf-8")
      _check_room(url, part, have, state["total"])
      _copy_body(response, url, part, have, state["total"])
  # Without a declared length, the regular end of the body is the only proof of completeness.
  _state_path(part).write_text(json.dumps({**state, "total": _size(part)}), encoding="utf-8")


def _copy_body(
  response: requests.Response, url: str, part: pathlib.Path, have: int, total: int | None
) -> None:
  with (
    open(part, "ab") as file,
    tqdm.tqdm(
      desc=url.rsplit("/", 1)[1],
      initial=have,
      total=total,
      unit="B",
      unit_scale=True,
      mininterval=0.1 if sys.stderr.isatty() else _SECONDS_BETWEEN_LINES,
    ) as bar,
  ):
    for chunk in response.iter_content(_CHUNK_BYTES):
      have += len(chunk)
      if have > MAX_DOWNLOAD_BYTES:
        raise DownloadError(f"{url} is larger than the limit of {MAX_DOWNLOAD_BYTES:,} bytes.")
      file.write(chunk)
      bar.update(len(chunk))


def _check_room(url: str, part: pathlib.Path, have: int, total: int | None) -> None:
  if total is None:
    return
  if total > MAX_DOWNLOAD_BYTES:
    raise DownloadError(
      f"{url} has {total:,} bytes, more than the limit of {MAX_DOWNLOAD_BYTES:,} bytes."
    )
  free = shutil.disk_usage(part.parent).free
  if total - have > free:
    raise DownloadError(
      f"{url} needs {total - have:,} bytes, but {part.parent} has only {free:,} free. "
      "Make room there."
    )


def _size(path: pathlib.Path) -> int:
  return path.stat().st_size if path.exists() else 0


# The state file beside a .part file: {"url", "validator", "total"}.


def _state_path(part: pathlib.Path) -> pathlib.Path:
  return part.with_name(part.name + ".json")


def _forget(part: pathlib.Path) -> None:
  part.unlink(missing_ok=True)
  _state_path(part).unlink(missing_ok=True)


def _read_state(part: pathlib.Path, url: str) -> dict[str, Any] | None:
  """Reads the state of `part` if it can be resumed from `url`, else None."""
  try:
    state = json.loads(_state_path(part).read_text(encoding="utf-8"))
    is_usable = state["validator"] or state["total"] == _size(part)
    return state if state["url"] == url and part.exists() and is_usable else None
  except (OSError, ValueError, KeyError, TypeError):
    return None


def _validator(response: requests.Response) -> str | None:
  """Returns an identifier of this version of the file, for `If-Range` (RFC 9110, 13.1.5)."""
  etag = response.headers.get("ETag", "")
  if etag and not etag.startswith("W/"):  # weak: "equivalent", not byte for byte
    return etag
  return response.headers.get("Last-Modified")


def _check_is_rest(
  response: requests.Response, part: pathlib.Path, have: int, state: dict[str, Any]
) -> None:
  """Forgets `part` and raises if this is not the rest of the file that it begins."""
  content_range, validator = response.headers.get("Content-Range", ""), _validator(response)
  total = "" if state["total"] is None else state["total"]
  begins = content_range.startswith(f"bytes {have}-") and content_range.endswith(f"{total}")
  if not begins or (validator and validator != state["validator"]):
    _forget(part)
    raise requests.ConnectionError(f"the file on the server has changed ({content_range!r})")


# ---------------------------------------------------------------------------------------------
# Where a request may go.


def _check_url(url: str) -> None:
  """Allows HTTPS, so that the file cannot be changed on the way, and HTTP within this machine."""
  try:
    parts = urllib.parse.urlsplit(url)
    allowed = parts.hostname and (
      parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))
    )
  except ValueError as error:
    raise DownloadError(f"{url!r} is not a URL: {error}.") from error
  if not allowed:
    raise DownloadError(f"Refused to fetch {url}: not https:// (nor http:// on this machine).")


def _is_loopback(host: str) -> bool:
  try:
    return host == "localhost" or ipaddress.ip_address(host).is_loopback
  except ValueError:
    return False


def _check_redirect(response: requests.Response, **_: Any) -> None:
  """Is called with each response, before a redirect is followed."""
  if not response.is_redirect:
    return
  target = urllib.parse.urljoin(response.url, response.headers["Location"])
  _check_url(target)
  if response.url.startswith("https:") and not target.startswith("https:"):
    raise DownloadError(f"Refused the redirect from {response.url} to unencrypted {target}.")
