"""One file over HTTPS, resumed where the transfer broke off.

  fetch("https://host/name.zip", pathlib.Path("name.zip.part"))

`download_cache.py` decides where files are stored.
"""

import contextlib
import http.client
import ipaddress
import json
import pathlib
import re
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import BinaryIO

MAX_DOWNLOAD_BYTES = 4 << 30  # the largest released archive has 1.2 GiB
TIMEOUT_SECONDS = 30.0  # without any data, not for the whole download
ATTEMPTS = 3  # in a row without any new byte
RETRY_SECONDS = 1.0  # before the second attempt; twice that before the third
_CHUNK_BYTES = 1 << 18


class DownloadError(ValueError):
  """A download or an archive that cannot be used; the message says what to do."""


class _InterruptedError(Exception):
  """The transfer broke off; another attempt may succeed."""


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
    except (urllib.error.HTTPError, _InterruptedError) as error:
      reason = _reason(error, part)
    if _size(part) > most_bytes:
      # Only attempts without progress count: a long download over a bad line may break often.
      failures, most_bytes = 0, _size(part)
    failures += 1
    if failures >= ATTEMPTS:
      raise DownloadError(f"Cannot download {url}: {reason}.")
    time.sleep(RETRY_SECONDS * failures)


def _reason(error: urllib.error.HTTPError | _InterruptedError, part: pathlib.Path) -> str:
  """Explains why an attempt failed; raises `DownloadError` if another would fail too."""
  if isinstance(error, _InterruptedError):
    return str(error)
  reason = f"the server answered {error.code} {error.reason}"
  error.close()
  if error.code == 416:  # nothing after our bytes: the file on the server has become shorter
    _forget(part)
  elif error.code < 500 and error.code not in (408, 429):
    raise DownloadError(f"Cannot download {error.url}: {reason}.") from error
  return reason


def _size(path: pathlib.Path) -> int:
  return path.stat().st_size if path.exists() else 0


def _forget(part: pathlib.Path) -> None:
  part.unlink(missing_ok=True)
  _state_path(part).unlink(missing_ok=True)


def _fetch_rest(url: str, part: pathlib.Path) -> None:
  """Completes `part`; on `_InterruptedError` or `HTTPError` the bytes received are kept."""
  state = _read_state(part, url)
  have = _size(part) if state else 0
  if state and have == state["total"]:
    return
  with _open(url, have, state) as response:
    if response.status == 206:
      state["total"] = _total_of_continued(response, part, have, state)
    elif response.status == 200:
      # The whole file: it is new, or has changed, or the server does not support ranges.
      have, state = 0, _new_state(url, response)
      part.write_bytes(b"")
      _write_state(part, state)
    else:
      raise _InterruptedError(f"the server answered {response.status} {response.reason}")
    _check_room(url, part, have, state["total"])
    with open(part, "ab") as file:
      _copy_body(response, file, url, have, state["total"])
  # Without a declared length, the regular end of the body is the only proof of completeness.
  _write_state(part, {**state, "total": _size(part)})


def _open(url: str, have: int, state: dict | None) -> http.client.HTTPResponse:
  headers = {"User-Agent": "bert-download/1.0", "Accept-Encoding": "identity"}
  if have:
    # If-Range: the rest of the same file, or all of the new one; never the rest of a new one.
    headers |= {"Range": f"bytes={have}-", "If-Range": state["validator"]}
  opener = urllib.request.build_opener(_SafeRedirects())
  try:
    return opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS)
  except urllib.error.HTTPError:
    raise
  except (OSError, http.client.HTTPException) as error:
    host = urllib.parse.urlsplit(url).hostname
    raise _InterruptedError(
      f"no connection to {host} ({getattr(error, 'reason', error)}); check the network"
    ) from error


def _copy_body(response, file: BinaryIO, url: str, have: int, total: int | None) -> None:
  with _progress(url.rsplit("/", 1)[1], have, total) as advance:
    while True:
      try:
        chunk = response.read(_CHUNK_BYTES)
      except (OSError, http.client.HTTPException) as error:
        raise _InterruptedError(f"the connection broke after {have:,} bytes ({error!r})") from error
      if not chunk:
        break
      have += len(chunk)
      if have > MAX_DOWNLOAD_BYTES:
        raise DownloadError(f"{url} is larger than the limit of {MAX_DOWNLOAD_BYTES:,} bytes.")
      file.write(chunk)
      advance(len(chunk))
  # `read` reports an early end of the connection like an ordinary end of the body.
  if total is not None and have != total:
    raise _InterruptedError(f"the connection ended after {have:,} of {total:,} bytes")


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


# The state file beside a .part file: {"url", "validator", "total"}.


def _state_path(part: pathlib.Path) -> pathlib.Path:
  return part.with_name(part.name + ".json")


def _read_state(part: pathlib.Path, url: str) -> dict | None:
  """Reads the state of `part` if it can be resumed from `url`, else None."""
  try:
    state = json.loads(_state_path(part).read_text(encoding="utf-8"))
    same_url = state["url"] == url and part.exists()
    complete = state["total"] == _size(part)
    return state if same_url and (state["validator"] or complete) else None
  except (OSError, ValueError, KeyError, TypeError):
    return None


def _write_state(part: pathlib.Path, state: dict) -> None:
  _state_path(part).write_text(json.dumps(state), encoding="utf-8")


def _new_state(url: str, response: http.client.HTTPResponse) -> dict:
  return {"url": url, "validator": _validator(response), "total": _length(response)}


def _length(response: http.client.HTTPResponse) -> int | None:
  length = response.headers.get("Content-Length", "")
  return int(length) if length.isdigit() else None


def _validator(response: http.client.HTTPResponse) -> str | None:
  """Returns an identifier of this version of the file, for `If-Range` (RFC 9110, 13.1.5)."""
  etag = response.headers.get("ETag", "")
  if etag and not etag.startswith("W/"):  # weak: "equivalent", not byte for byte
    return etag
  return response.headers.get("Last-Modified")


def _total_of_continued(response, part: pathlib.Path, have: int, state: dict) -> int:
  """Returns the file's length; forgets `part` and raises if this is not the rest of that file."""
  content_range = response.headers.get("Content-Range", "")
  match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", content_range.strip())
  fits = match and int(match[1]) == have and state["total"] in (None, int(match[2]))
  validator = _validator(response)
  if not fits or (validator and validator != state["validator"]):
    _forget(part)
    raise _InterruptedError(f"the file on the server has changed ({content_range!r})")
  return int(match[2])


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


def _is_loopback(host: str | None) -> bool:
  try:
    return host == "localhost" or ipaddress.ip_address(host).is_loopback
  except ValueError:
    return False


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
  def redirect_request(self, req, fp, code, msg, headers, newurl):
    _check_url(newurl)
    if req.type == "https" and not newurl.lower().startswith("https:"):
      raise DownloadError(f"Refused the redirect from {req.full_url} to unencrypted {newurl}.")
    return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextlib.contextmanager
def _progress(label: str, have: int, total: int | None) -> Iterator[Callable[[int], None]]:
  """Shows a bar on a terminal; elsewhere, such as in a log file, one line per tenth."""
  if sys.stderr.isatty():
    import tqdm

    with tqdm.tqdm(
      desc=label, initial=have, total=total, unit="B", unit_scale=True, unit_divisor=1024
    ) as bar:
      yield bar.update
    return
  line_bytes = max(total // 10, 1) if total else 100 << 20
  of_total = f" of {total / 2**20:.1f}" if total else ""

  def advance(count: int) -> None:
    nonlocal have
    have += count
    if have // line_bytes > (have - count) // line_bytes:
      print(f"{label}: {have / 2**20:.1f}{of_total} MiB", file=sys.stderr, flush=True)

  yield advance
