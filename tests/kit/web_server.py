"""A web server on this machine that misbehaves as it is asked to, and archives for it to serve."""

import contextlib
import functools
import hashlib
import http.server
import io
import pathlib
import tarfile
import threading
import zipfile

from bert.io import http as bert_http


def zip_of(files, folder=""):
  """Bytes of a zip; `files` is a dict or a list of (name or ZipInfo, content)."""
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, content in dict(files).items() if isinstance(files, dict) else files:
      archive.writestr(folder + name if isinstance(name, str) else name, content)
  return buffer.getvalue()


def tar_of(members):
  """Bytes of a tar.gz; `members` is a list of (TarInfo or name, content)."""
  buffer = io.BytesIO()
  with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
    for info, content in members:
      info = tarfile.TarInfo(info) if isinstance(info, str) else info
      info.size = len(content)
      archive.addfile(info, io.BytesIO(content))
  return buffer.getvalue()


def tar_member(name, kind, linkname=""):
  """A member without content: a folder, a link, a device."""
  info = tarfile.TarInfo(name)
  info.type, info.linkname = kind, linkname
  return info


def content_of(folder):
  """The files below a folder: relative name -> content."""
  folder = pathlib.Path(folder)
  paths = [path for path in folder.rglob("*") if path.is_file()]
  return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


class Server:
  """What the web server has, how it misbehaves, and what it was asked."""

  def __init__(self):
    self.files: dict[str, bytes] = {}
    self.requests: list[tuple[str, str | None]] = []  # (path, Range header)
    self.cut_after: list[int] = []  # bytes of body after which the next answers break off
    self.statuses: list[int] = []  # answers before it behaves
    self.redirects: dict[str, str] = {}
    self.ranges = self.etags = self.lengths = True
    self.ignores_if_range = False
    self.url = ""

  def etag(self, body):
    return '"' + hashlib.sha256(body).hexdigest()[:16] + '"'


class Handler(http.server.BaseHTTPRequestHandler):
  protocol_version = "HTTP/1.1"

  def __init__(self, server_state, *args):
    self.state = server_state
    super().__init__(*args)

  def log_message(self, *args):
    pass

  def do_GET(self):
    state, self.close_connection = self.state, True
    state.requests.append((self.path, self.headers["Range"]))
    if state.statuses:
      return self.answer(state.statuses.pop(0))
    if self.path in state.redirects:
      return self.answer(302, Location=state.redirects[self.path])
    if self.path not in state.files:
      return self.answer(404)
    return self.send_file(state.files[self.path])

  def answer(self, status, **headers):
    self.send_response(status)
    for key, value in {"Content-Length": "0", **headers}.items():
      self.send_header(key.replace("_", "-"), value)
    self.end_headers()

  def send_file(self, body):
    state, start, headers = self.state, 0, {}
    if state.etags:
      headers["ETag"] = state.etag(body)
    fresh = state.ignores_if_range or self.headers["If-Range"] == headers.get("ETag")
    if self.headers["Range"] and state.ranges and fresh:
      start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
      if start >= len(body):
        return self.answer(416)
      headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
    rest = body[start:]
    if state.lengths:
      headers["Content-Length"] = str(len(rest))
    else:
      headers["Transfer-Encoding"] = "chunked"
      rest = b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest)
    self.send_response(206 if start else 200)
    for key, value in headers.items():
      self.send_header(key, value)
    self.end_headers()
    with contextlib.suppress(ConnectionError):  # whoever asked has seen enough
      self.wfile.write(rest[: state.cut_after.pop(0)] if state.cut_after else rest)


@contextlib.contextmanager
def download_server(monkeypatch):
  """A server for this project's downloads, which try again at once; gives its `Server`."""
  monkeypatch.setattr(bert_http, "RETRY_SECONDS", 0.0)
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  monkeypatch.delenv("BERT_DOWNLOAD_BASE_URL", raising=False)
  with web_server() as state:
    yield state


@contextlib.contextmanager
def web_server():
  """Runs a server; gives its `Server`."""
  state = Server()
  handler = functools.partial(Handler, state)
  httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
  state.url = f"http://127.0.0.1:{httpd.server_port}"
  thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
  thread.start()
  try:
    yield state
  finally:
    httpd.shutdown()
    thread.join()
    httpd.server_close()
