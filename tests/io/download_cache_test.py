"""Tests of `bert/io/download_cache.py` and `bert/io/http.py` against a web server on this machine.

Alone: `python -m pytest tests/io/download_cache_test.py -q` (seconds, no TensorFlow, no network).
"""

import functools
import gzip
import hashlib
import http.server
import io
import multiprocessing
import os
import pathlib
import random
import shutil
import socket
import sys
import tarfile
import threading
import zipfile

import pytest

from bert.io import download_cache
from bert.io import http as fetch
from bert.io.download_cache import DownloadError, download_model, download_task_data

MODEL = "uncased_L-2_H-128_A-2"
ARCHIVE = download_cache.RELEASED_MODELS[MODEL]
MODEL_FILES = {
  "bert_config.json": b"{}",
  "vocab.txt": b"[PAD]\n",
  "bert_model.ckpt.index": b"index",
  # Incompressible and longer than a few reads, so that a cut falls into the middle of it.
  "bert_model.ckpt.data-00000-of-00001": random.Random(0).randbytes(1 << 20),
}


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


MODEL_ZIP = zip_of(MODEL_FILES, f"{MODEL}/")


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
    self.wfile.write(rest[: state.cut_after.pop(0)] if state.cut_after else rest)


@pytest.fixture
def server(monkeypatch):
  monkeypatch.setattr(fetch, "RETRY_SECONDS", 0.0)
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  monkeypatch.delenv("BERT_DOWNLOAD_BASE_URL", raising=False)
  state = Server()
  handler = functools.partial(Handler, state)
  httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
  state.url = f"http://127.0.0.1:{httpd.server_port}"
  thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
  thread.start()
  yield state
  httpd.shutdown()
  thread.join()
  httpd.server_close()


@pytest.fixture
def get_model(server, tmp_path):
  """Fetches `MODEL` from the local server into a cache of its own."""
  server.files["/" + ARCHIVE] = MODEL_ZIP
  return lambda: download_model(MODEL, tmp_path / "cache", server.url)


def content_of(folder):
  folder = pathlib.Path(folder)
  paths = [path for path in folder.rglob("*") if path.is_file()]
  return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def cached_names(tmp_path):
  """What the model's part of the cache holds, apart from the lock file."""
  folder = (tmp_path / "cache" / "models" / ARCHIVE).parent
  return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


# ---------------------------------------------------------------------------------------------
# Tables.


def test_every_released_model_has_its_archive():
  archives = download_cache.RELEASED_MODELS
  assert len(archives) == 33  # 7 of 2018, 2 with whole-word masking, 24 small ones
  assert len(set(archives.values())) == 33
  dates = [path.split("/")[0] for path in archives.values()]
  assert [dates.count(date) for date in sorted(set(dates))] == [4, 2, 1, 2, 24]
  assert archives["uncased_L-12_H-768_A-12"] == "2018_10_18/uncased_L-12_H-768_A-12.zip"
  assert archives["2020_02_20/uncased_L-12_H-768_A-12"] == "2020_02_20/uncased_L-12_H-768_A-12.zip"
  assert archives["cased_L-24_H-1024_A-16"] == "2018_10_18/cased_L-24_H-1024_A-16.zip"
  assert archives["chinese_L-12_H-768_A-12"] == "2018_11_03/chinese_L-12_H-768_A-12.zip"
  assert archives["multi_cased_L-12_H-768_A-12"].startswith("2018_11_23/")
  assert archives["wwm_cased_L-24_H-1024_A-16"].startswith("2019_05_30/")
  assert archives["uncased_L-10_H-512_A-8"] == "2020_02_20/uncased_L-10_H-512_A-8.zip"


def test_released_names_are_known_and_paths_are_not():
  assert download_cache.is_released_name("uncased_L-4_H-256_A-4")
  for text in ("uncased_L-3_H-256_A-4", "/models/uncased_L-4_H-256_A-4", "", None):
    assert not download_cache.is_released_name(text)


def test_unknown_names_list_the_known_ones(tmp_path):
  with pytest.raises(DownloadError, match=r"'\.\./x'.*uncased_L-12_H-768_A-12"):
    download_model("../x", tmp_path)
  with pytest.raises(DownloadError, match=r"'SQuAD 3'.*MRPC.*IMDB"):
    download_task_data("SQuAD 3", tmp_path)


# ---------------------------------------------------------------------------------------------
# A model, from the server to the folder.


def test_model_is_unpacked_complete_and_leaves_nothing_else(get_model, server, tmp_path):
  folder = get_model()
  assert pathlib.Path(folder).name == MODEL
  assert content_of(folder) == MODEL_FILES
  assert cached_names(tmp_path) == [MODEL]
  assert server.requests == [("/" + ARCHIVE, None)]


def test_archive_without_a_folder_inside_is_unpacked_alike(get_model, server):
  server.files["/" + ARCHIVE] = zip_of(MODEL_FILES)
  assert content_of(get_model()) == MODEL_FILES


def test_cached_model_costs_no_request(get_model, server):
  folder = get_model()
  server.requests.clear()
  assert get_model() == folder
  assert server.requests == []


def test_cached_model_that_lost_a_file_is_reported(get_model):
  folder = pathlib.Path(get_model())
  (folder / "vocab.txt").unlink()
  with pytest.raises(DownloadError, match=r"lacks vocab\.txt.*Delete the folder"):
    get_model()


def test_the_cache_is_found_by_argument_then_environment(monkeypatch, server, tmp_path):
  server.files["/models/" + ARCHIVE] = MODEL_ZIP
  monkeypatch.setenv("BERT_DOWNLOAD_BASE_URL", server.url + "/")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
  monkeypatch.delenv("BERT_CACHE_DIR", raising=False)
  place = "models/" + ARCHIVE.removesuffix(".zip")
  assert download_model(MODEL) == str(tmp_path / "xdg" / "bert" / place)
  monkeypatch.setenv("BERT_CACHE_DIR", str(tmp_path / "own"))
  assert download_model(MODEL) == str(tmp_path / "own" / place)
  assert download_model(MODEL, tmp_path / "arg") == str(tmp_path / "arg" / place)


def test_archive_put_there_by_hand_is_used_and_kept(get_model, server, tmp_path):
  archive = tmp_path / "cache" / "models" / ARCHIVE
  archive.parent.mkdir(parents=True)
  archive.write_bytes(MODEL_ZIP)
  assert content_of(get_model()) == MODEL_FILES
  assert server.requests == []
  assert archive.read_bytes() == MODEL_ZIP


# ---------------------------------------------------------------------------------------------
# Broken connections.


def test_cut_download_goes_on_where_it_stopped(get_model, server):
  server.cut_after = [300_000, 400_000]
  assert content_of(get_model()) == MODEL_FILES
  ranges = [range_ for _, range_ in server.requests]
  assert ranges == [None, "bytes=300000-", "bytes=700000-"]


def test_progress_gives_new_attempts_but_standing_still_does_not(get_model, server):
  server.cut_after = [100_000] * 8
  assert content_of(get_model()) == MODEL_FILES
  assert len(server.requests) == 9


def test_download_goes_on_in_the_next_run(get_model, server, tmp_path):
  server.cut_after = [300_000, 0, 0]
  with pytest.raises(DownloadError, match=r"ended after 300,000 of 1,04\d,\d+ bytes"):
    get_model()
  assert cached_names(tmp_path) == [f"{MODEL}.zip.part", f"{MODEL}.zip.part.json"]
  server.requests.clear()
  assert content_of(get_model()) == MODEL_FILES
  assert server.requests == [("/" + ARCHIVE, "bytes=300000-")]
  assert cached_names(tmp_path) == [MODEL]


def test_server_without_ranges_starts_over(server, tmp_path):
  # The very bytes, for a zip reader would not mind a half file in front of its archive.
  server.files["/x"] = MODEL_ZIP
  server.ranges = False
  server.cut_after = [300_000]
  fetch.fetch(server.url + "/x", tmp_path / "x.part")
  assert (tmp_path / "x.part").read_bytes() == MODEL_ZIP
  assert len(server.requests) == 2


def test_without_a_validator_nothing_is_resumed(get_model, server):
  server.etags = False
  server.cut_after = [300_000]
  assert content_of(get_model()) == MODEL_FILES
  assert [range_ for _, range_ in server.requests] == [None, None]


@pytest.mark.parametrize("ignores_if_range", [False, True])
def test_file_that_changed_is_never_glued(get_model, server, ignores_if_range):
  server.cut_after = [300_000, 0, 0]
  with pytest.raises(DownloadError):
    get_model()
  # Same length, other bytes: only the ETag tells.
  changed = dict(MODEL_FILES, **{"vocab.txt": b"[XXX]\n"})
  server.files["/" + ARCHIVE] = zip_of(changed, f"{MODEL}/")
  assert len(server.files["/" + ARCHIVE]) == len(MODEL_ZIP)
  server.ignores_if_range = ignores_if_range
  assert content_of(get_model()) == changed


def test_file_that_became_shorter_starts_over(get_model, server):
  server.cut_after = [900_000, 0, 0]
  with pytest.raises(DownloadError):
    get_model()
  shorter = dict(MODEL_FILES, **{"bert_model.ckpt.data-00000-of-00001": b"short"})
  server.files["/" + ARCHIVE] = zip_of(shorter, f"{MODEL}/")
  server.ignores_if_range = True  # answers 416
  assert content_of(get_model()) == shorter


def test_body_without_a_declared_length(get_model, server):
  server.lengths = False
  server.cut_after = [300_000]
  assert content_of(get_model()) == MODEL_FILES
  assert server.requests[1][1].startswith("bytes=")


def test_busy_server_is_asked_again(get_model, server):
  server.statuses = [503, 429]
  assert content_of(get_model()) == MODEL_FILES


def test_missing_file_is_reported_at_once(get_model, server, tmp_path):
  server.files.clear()
  by_hand = tmp_path / "cache" / "models" / ARCHIVE
  with pytest.raises(DownloadError) as error:
    get_model()
  for part in (server.url + "/" + ARCHIVE, "404", str(by_hand)):
    assert part in str(error.value)
  assert len(server.requests) == 1
  assert cached_names(tmp_path) == []


def test_without_a_network_the_message_says_what_to_do(server, tmp_path):
  with socket.socket() as closed:
    closed.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
    url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(DownloadError) as error:
      download_model(MODEL, tmp_path / "cache", url)
  for part in (f"{url}/{ARCHIVE}", "network", str(tmp_path / "cache" / "models" / ARCHIVE)):
    assert part in str(error.value)


def test_silent_server_times_out(monkeypatch, server, tmp_path):
  monkeypatch.setattr(fetch, "TIMEOUT_SECONDS", 0.05)
  with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, never answers
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with pytest.raises(DownloadError, match="timed out"):
      download_model(MODEL, tmp_path, url)


def test_too_large_is_refused_by_the_declared_length(get_model, server, tmp_path, monkeypatch):
  monkeypatch.setattr(fetch, "MAX_DOWNLOAD_BYTES", 500_000)
  with pytest.raises(DownloadError, match="limit of 500,000"):
    get_model()
  part = tmp_path / "cache" / "models" / (ARCHIVE + ".part")
  assert part.stat().st_size == 0


def test_too_large_is_refused_by_the_real_length(get_model, server, monkeypatch):
  monkeypatch.setattr(fetch, "MAX_DOWNLOAD_BYTES", 500_000)
  server.lengths = False
  with pytest.raises(DownloadError, match="limit of 500,000"):
    get_model()


def test_full_disk_is_noticed_before_the_download(get_model, monkeypatch):
  nearly_full = shutil.disk_usage(".")._replace(free=1000)
  monkeypatch.setattr(fetch.shutil, "disk_usage", lambda path: nearly_full)
  with pytest.raises(DownloadError, match="only 1,000 free"):
    get_model()


def test_cache_that_cannot_be_written_is_reported(server, tmp_path):
  (tmp_path / "file").write_text("in the way")
  with pytest.raises(DownloadError, match=r"Cannot write the cache.*BERT_CACHE_DIR"):
    download_model(MODEL, tmp_path / "file", server.url)


# ---------------------------------------------------------------------------------------------
# Where a request may go.


@pytest.mark.parametrize(
  "url",
  [
    "http://example.com/",
    "http://localhost.example.com/",
    "http://127.0.0.1.example.com/",
    "ftp://127.0.0.1/",
    "file:///etc",
    "https:///nothing",
    "http://[::1",
  ],
)
def test_only_https_or_this_machine(url, tmp_path, monkeypatch):
  monkeypatch.setattr(fetch, "_open", lambda *_: pytest.fail("a request went out"))
  with pytest.raises(DownloadError, match=r"Refused|no URL"):
    download_model(MODEL, tmp_path, url)


def test_redirect_to_plain_http_is_refused(get_model, server):
  server.redirects["/" + ARCHIVE] = "http://example.com/x.zip"
  with pytest.raises(DownloadError, match=r"Refused to fetch http://example\.com"):
    get_model()
  server.redirects["/" + ARCHIVE] = "file:///etc/passwd"
  with pytest.raises(DownloadError):
    get_model()


def test_redirect_from_https_to_this_machine_is_refused():
  request = fetch.urllib.request.Request("https://example.com/x.zip")
  with pytest.raises(DownloadError, match="unencrypted"):
    fetch._SafeRedirects().redirect_request(request, None, 302, "", {}, "http://127.0.0.1/x.zip")


def test_redirect_within_this_machine_is_followed(get_model, server):
  server.files["/elsewhere.zip"] = server.files.pop("/" + ARCHIVE)
  server.redirects["/" + ARCHIVE] = "/elsewhere.zip"
  assert content_of(get_model()) == MODEL_FILES


# ---------------------------------------------------------------------------------------------
# Archives that are damaged or hostile.


def test_declared_length_shorter_than_the_archive(get_model, server, tmp_path):
  server.files["/" + ARCHIVE] = MODEL_ZIP[:-1000]
  with pytest.raises(DownloadError, match="damaged"):
    get_model()
  # It must not be taken for a finished download by the next run.
  assert cached_names(tmp_path) == []
  server.files["/" + ARCHIVE] = MODEL_ZIP
  assert content_of(get_model()) == MODEL_FILES


def test_archive_without_the_model_is_refused(get_model, server, tmp_path):
  files = dict(MODEL_FILES)
  del files["vocab.txt"]
  server.files["/" + ARCHIVE] = zip_of(files, "x/")
  with pytest.raises(DownloadError, match=r"did not bring vocab\.txt"):
    get_model()
  assert cached_names(tmp_path) == []


def test_run_killed_while_unpacking_leaves_no_model(get_model, tmp_path, monkeypatch):
  folder = (tmp_path / "cache" / "models" / ARCHIVE).with_suffix("")
  rename = os.rename

  def killed_at_the_last_moment(source, target):
    if pathlib.Path(target) == folder:
      raise KeyboardInterrupt
    rename(source, target)

  with monkeypatch.context() as patch:
    patch.setattr(download_cache.os, "rename", killed_at_the_last_moment)
    with pytest.raises(KeyboardInterrupt):
      get_model()
  assert not folder.exists()
  # What a SIGKILL would leave behind is cleared as well.
  leftover = tmp_path / "cache" / "models" / pathlib.Path(ARCHIVE).parent / f".{MODEL}.unpacking"
  leftover.mkdir()
  (leftover / "vocab.txt").write_text("half")
  assert content_of(get_model()) == MODEL_FILES
  assert cached_names(tmp_path) == [MODEL]


def _unix_zip_member(name, mode):
  info = zipfile.ZipInfo(name)
  info.create_system, info.external_attr = 3, mode << 16
  return info


def _tar_member(name, kind, linkname=""):
  info = tarfile.TarInfo(name)
  info.type, info.linkname = kind, linkname
  return info


OUTSIDE = ["../out", "a/../../out", "/out", "C:/out", "..\\out", "\\\\host\\out", "a:stream"]


@pytest.mark.parametrize(
  ("archive", "message"),
  [
    *[(zip_of([(name, b"x")]), "outside the folder") for name in OUTSIDE],
    *[(tar_of([(name, b"x")]), "outside the folder") for name in OUTSIDE],
    (zip_of([(_unix_zip_member("link", 0o120777), b"/etc")]), "link or a device"),
    (zip_of([(_unix_zip_member("pipe", 0o010666), b"")]), "link or a device"),
    (tar_of([(_tar_member("link", tarfile.SYMTYPE, "/etc"), b"")]), "link or a device"),
    (tar_of([("a", b""), (_tar_member("b", tarfile.LNKTYPE, "a"), b"")]), "link or a device"),
    (tar_of([(_tar_member("null", tarfile.CHRTYPE), b"")]), "link or a device"),
    (tar_of([("a", b"1"), ("a", b"2")]), "two members"),
    (tar_of([("a", b"1"), ("A", b"2")]), "two members"),
  ],
)
def test_hostile_archive_writes_nothing_outside(archive, message, tmp_path):
  (tmp_path / "archive").write_bytes(archive)
  folder = tmp_path / "inner" / "folder"
  folder.mkdir(parents=True)
  with pytest.raises(DownloadError, match=message):
    fetch.unpack(tmp_path / "archive", folder)
  outside = [path for path in tmp_path.rglob("*") if folder not in path.parents]
  assert sorted(path.name for path in outside) == ["archive", "folder", "inner"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_zip_with_two_members_of_one_name(tmp_path):
  (tmp_path / "archive").write_bytes(zip_of([("a", b"1"), ("a", b"2")]))
  with pytest.raises(DownloadError, match="two members"):
    fetch.unpack(tmp_path / "archive", tmp_path)


BOMBS = [zip_of([("zeros", bytes(1 << 20))]), tar_of([("zeros", bytes(1 << 20))])]
SWARMS = [zip_of([(str(i), b"") for i in range(20)]), tar_of([(str(i), b"") for i in range(20)])]


@pytest.mark.parametrize("bomb", [*BOMBS, *SWARMS])
def test_archive_that_swells_is_refused(bomb, tmp_path, monkeypatch):
  monkeypatch.setattr(fetch, "MAX_UNPACKED_BYTES", 100_000)
  monkeypatch.setattr(fetch, "MAX_UNPACKED_FILES", 10)
  (tmp_path / "archive").write_bytes(bomb)
  (tmp_path / "out").mkdir()
  with pytest.raises(DownloadError, match=r"more than 100,000 bytes or 10 files"):
    fetch.unpack(tmp_path / "archive", tmp_path / "out")
  assert sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) == 0


def test_tar_followed_by_endless_zeros_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(fetch, "MAX_UNPACKED_BYTES", 100_000)
  tar = gzip.decompress(tar_of([("a", b"x")]))
  (tmp_path / "archive").write_bytes(gzip.compress(tar + bytes(1 << 20)))
  with pytest.raises(DownloadError, match="more than 100,000 bytes"):
    fetch.unpack(tmp_path / "archive", tmp_path)


def test_zip_that_lies_about_sizes_is_damaged(tmp_path):
  lying = bytearray(zip_of([("zeros", bytes(5000))]))
  entry = lying.index(b"PK\x01\x02")
  lying[entry + 24 : entry + 28] = (10).to_bytes(4, "little")  # the uncompressed size
  (tmp_path / "archive").write_bytes(lying)
  with pytest.raises(DownloadError, match="damaged"):
    fetch.unpack(tmp_path / "archive", tmp_path)
  assert (tmp_path / "zeros").stat().st_size <= 10


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_no_flipped_byte_and_no_cut_goes_unnoticed(make, tmp_path):
  content = random.Random(1).randbytes(2000)
  archive = make([("a", content)])
  damaged = [archive[:at] for at in range(0, len(archive), 97)]
  start = archive.index(content[:50]) if make is zip_of else 100
  for at in range(start, start + 1800, 83):
    damaged.append(archive[:at] + bytes([archive[at] ^ 0x10]) + archive[at + 1 :])
  for number, data in enumerate(damaged):
    folder = tmp_path / str(number)
    folder.mkdir()
    (tmp_path / "archive").write_bytes(data)
    with pytest.raises(DownloadError, match="damaged"):
      fetch.unpack(tmp_path / "archive", folder)


@pytest.mark.parametrize("data", [b"", b"<html>Not found</html>"])
def test_file_that_is_no_archive(data, tmp_path):
  (tmp_path / "archive").write_bytes(data)
  with pytest.raises(DownloadError, match="damaged or no archive"):
    fetch.unpack(tmp_path / "archive", tmp_path)


# ---------------------------------------------------------------------------------------------
# Two at once.


def _get_with_others(barrier, folders, *arguments):
  barrier.wait(timeout=60)
  folders.put(download_model(*arguments))


def test_of_three_processes_one_downloads_and_all_get_the_model(server, tmp_path):
  server.files["/" + ARCHIVE] = MODEL_ZIP
  context = multiprocessing.get_context("spawn")
  barrier, folders = context.Barrier(3), context.Queue()
  arguments = (barrier, folders, MODEL, str(tmp_path / "cache"), server.url)
  processes = [context.Process(target=_get_with_others, args=arguments) for _ in range(3)]
  for process in processes:
    process.start()
  got = {folders.get(timeout=60) for _ in processes}
  for process in processes:
    process.join(60)
  assert len(got) == 1
  assert content_of(got.pop()) == MODEL_FILES
  assert len(server.requests) == 1


def test_who_waited_takes_what_the_other_made(server, get_model, tmp_path):
  folder = (tmp_path / "cache" / "models" / ARCHIVE).with_suffix("")
  folder.parent.mkdir(parents=True)
  with download_cache._lock(folder.with_name(folder.name + ".lock")):
    thread = threading.Thread(target=get_model)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    folder.mkdir()
    for name, content in MODEL_FILES.items():
      (folder / name).write_bytes(content)
  thread.join()
  assert server.requests == []


# ---------------------------------------------------------------------------------------------
# Progress.


def test_progress_is_lines_in_a_log_and_a_bar_on_a_terminal(get_model, capsys, monkeypatch):
  get_model()
  lines = [line for line in capsys.readouterr().err.splitlines() if " of 1.0 MiB" in line]
  assert lines[-1].startswith(f"{MODEL}.zip: 1.0 of 1.0")
  assert 1 <= len(lines) <= 10
  monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
  with fetch._progress("x.zip", 0, 100) as advance:
    advance(100)
  assert "100%" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------
# Task data.

TSV = {"train.tsv": b"a\n", "dev.tsv": b"b\n", "test.tsv": b"c\n"}


@pytest.mark.parametrize(
  ("task", "archive", "folder"),
  [
    ("CoLA", "CoLA.zip", "CoLA"),
    ("sst-2", "SST-2.zip", "SST-2"),
    ("QQP", "QQP-clean.zip", "QQP"),
    ("sts_b", "STS-B.zip", "STS-B"),
    ("qnli", "QNLIv2.zip", "QNLI"),
    ("RTE", "RTE.zip", "RTE"),
    ("wnli", "WNLI.zip", "WNLI"),
  ],
)
def test_glue_archives(task, archive, folder, server, tmp_path):
  # Apple's shadow files lie beside the real ones in some of the archives.
  extra = {f"{folder}/original/x.txt": b"", "__MACOSX/._train.tsv": b"", ".DS_Store": b""}
  files = {f"{folder}/{name}": content for name, content in TSV.items()}
  server.files["/" + archive] = zip_of({**files, **extra})
  data_dir = download_task_data(task, tmp_path, server.url)
  assert pathlib.Path(data_dir) == tmp_path / "tasks" / folder
  assert content_of(data_dir) == {**TSV, "original/x.txt": b""}


def test_mnli_has_two_dev_sets(server, tmp_path):
  names = ["train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"]
  names += ["test_matched.tsv", "test_mismatched.tsv"]
  server.files["/MNLI.zip"] = zip_of({f"MNLI/{name}": b"x" for name in names[:-1]})
  with pytest.raises(DownloadError, match=r"did not bring test_mismatched\.tsv"):
    download_task_data("MNLI", tmp_path, server.url)
  server.files["/MNLI.zip"] = zip_of({f"MNLI/{name}": b"x" for name in names})
  assert sorted(content_of(download_task_data("mnli", tmp_path, server.url))) == sorted(names)


def test_ax_is_one_file(server, tmp_path):
  server.files["/AX.tsv"] = b"index\tsentence1\tsentence2\n"
  data_dir = download_task_data("AX", tmp_path, server.url)
  assert content_of(data_dir) == {"AX.tsv": b"index\tsentence1\tsentence2\n"}


def test_xnli_joins_its_two_archives(server, tmp_path):
  dev = {"xnli.dev.tsv": b"d", "xnli.test.tsv": b"t", "README.md": b"1"}
  train = {"multinli/multinli.train.zh.tsv": b"z", "README.md": b"2"}
  server.files["/XNLI-1.0.zip"] = zip_of(dev, "XNLI-1.0/")
  server.files["/XNLI-MT-1.0.zip"] = zip_of(train, "XNLI-MT-1.0/")
  data_dir = download_task_data("xnli", tmp_path, server.url)
  assert content_of(data_dir) == {**train, **dev}


def test_imdb_is_a_tar(server, tmp_path):
  reviews = [f"{split}/{kind}/0_9.txt" for split in ("train", "test") for kind in ("pos", "neg")]
  folders = [(_tar_member("aclImdb", tarfile.DIRTYPE), b"")]
  archive = tar_of(folders + [(f"aclImdb/{name}", b"good") for name in reviews])
  server.files["/aclImdb_v1.tar.gz"] = archive
  data_dir = download_task_data("IMDB", tmp_path, server.url)
  assert pathlib.Path(data_dir).name == "aclImdb"
  assert content_of(data_dir) == dict.fromkeys(reviews, b"good")


def _serve_mrpc(server, train, test, dev_ids):
  header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
  server.files["/msr_paraphrase_train.txt"] = (header + train).encode()
  server.files["/msr_paraphrase_test.txt"] = (header + test).encode()
  server.files["/mrpc_dev_ids.tsv"] = dev_ids.encode()


def test_mrpc_is_split_by_the_list_of_ids(server, tmp_path):
  train = '1\t11\t12\tA "b .\tB\r\n0\t21\t22\tC\tD\r\n1\t11\t22\tE\tF\r\n'
  _serve_mrpc(server, train, "0\t31\t32\tG\tH\n1\t41\t42\tI\tJ\n", "21\t22\n99\t98\n")
  folder = content_of(download_task_data("MRPC", tmp_path, server.url))
  header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n".encode()
  assert folder == {
    "train.tsv": header + b'1\t11\t12\tA "b .\tB\n1\t11\t22\tE\tF\n',
    "dev.tsv": header + b"0\t21\t22\tC\tD\n",
    "test.tsv": b"index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t31\t32\tG\tH\n1\t41\t42\tI\tJ\n",
  }


def test_mrpc_without_the_list_of_ids_is_no_mrpc(server, tmp_path):
  _serve_mrpc(server, "1\t1\t2\tA\tB\n", "1\t1\t2\tA\tB\n", "1\t2\n")
  del server.files["/mrpc_dev_ids.tsv"]
  with pytest.raises(DownloadError, match=r"mrpc_dev_ids\.tsv.*404"):
    download_task_data("MRPC", tmp_path, server.url)
  server.files["/mrpc_dev_ids.tsv"] = b"7\t8\n"
  with pytest.raises(DownloadError, match="do not split"):
    download_task_data("MRPC", tmp_path, server.url)


def test_mrpc_with_a_short_row_names_the_line(server, tmp_path):
  _serve_mrpc(server, "1\t1\t2\tA\tB\n1\t1\t2\tA\n", "", "1\t2\n")
  with pytest.raises(DownloadError, match="line 3: 4 columns instead of 5"):
    download_task_data("MRPC", tmp_path, server.url)


def test_mrpc_equals_the_real_one(server, tmp_path, data_dir):
  real = content_of(data_dir / "glue" / "MRPC")
  train, dev, test = (
    real[f"{name}.tsv"].decode().splitlines(keepends=True)[1:] for name in ("train", "dev", "test")
  )
  # The training file has GLUE's dev rows among the others; the test file has labels.
  mixed = [row if row.endswith("\n") else row + "\n" for row in train + dev]
  dev_ids = "".join("\t".join(row.split("\t")[1:3]) + "\n" for row in dev)
  labelled = "".join("1\t" + row.split("\t", 1)[1] for row in test)
  _serve_mrpc(server, "".join(mixed), labelled, dev_ids)
  folder = content_of(download_task_data("MRPC", tmp_path, server.url))
  assert {name: text.strip() for name, text in folder.items()} == {
    name: text.strip() for name, text in real.items()
  }
