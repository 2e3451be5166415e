"""The cache of downloads, against a web server on this machine.

Alone: python -m pytest tests/io/download_cache_test.py (seconds, no TensorFlow, no network)
"""

import os
import pathlib
import random
import shutil
import socket
import tarfile
import threading

import pytest

from bert.checkpoints.released_models import RELEASED_MODELS, download_model
from bert.io import download_cache, http
from bert.io.http import DownloadError
from tests.kit.web_server import content_of, download_server, tar_member, tar_of, zip_of

MODEL = "uncased_L-2_H-128_A-2"
ARCHIVE = RELEASED_MODELS[MODEL]
MODEL_FILES = {
  "bert_config.json": b"{}",
  "vocab.txt": b"[PAD]\n",
  "bert_model.ckpt.index": b"index",
  # Incompressible and longer than a few reads, so that a cut falls into the middle of it.
  "bert_model.ckpt.data-00000-of-00001": random.Random(0).randbytes(1 << 20),
}
MODEL_ZIP = zip_of(MODEL_FILES, f"{MODEL}/")


@pytest.fixture
def server(monkeypatch):
  with download_server(monkeypatch) as state:
    yield state


@pytest.fixture
def get_model(server, tmp_path):
  """Fetches `MODEL` from the local server into a cache of its own."""
  server.files["/" + ARCHIVE] = MODEL_ZIP
  return lambda: download_model(MODEL, tmp_path / "cache", server.url)


def cached_names(tmp_path):
  """What the model's part of the cache holds, apart from the lock file."""
  folder = (tmp_path / "cache" / "models" / ARCHIVE).parent
  return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


# ---------------------------------------------------------------------------------------------
# A model, from the server to the folder.


def test_model_is_unpacked_complete_and_leaves_nothing_else(get_model, server, tmp_path):
  folder = get_model()
  assert pathlib.Path(folder).name == MODEL
  assert content_of(folder) == MODEL_FILES
  assert cached_names(tmp_path) == [MODEL]
  assert server.requests == [("/" + ARCHIVE, None)]


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
  # As many whole reads as were received.
  assert ranges == [
    None,
    f"bytes={300_000 >> 16 << 16}-",
    f"bytes={(262_144 + 400_000) >> 16 << 16}-",
  ]


def test_download_goes_on_in_the_next_run(get_model, server, tmp_path):
  server.cut_after = [300_000, 0, 0]
  with pytest.raises(DownloadError, match=r"broke off .* after 262,144 bytes"):
    get_model()
  assert cached_names(tmp_path) == [f"{MODEL}.zip.part", f"{MODEL}.zip.part.json"]
  server.requests.clear()
  assert content_of(get_model()) == MODEL_FILES
  assert server.requests == [("/" + ARCHIVE, "bytes=262144-")]
  assert cached_names(tmp_path) == [MODEL]


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
  monkeypatch.setattr(http, "TIMEOUT_SECONDS", 0.05)
  with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, never answers
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with pytest.raises(DownloadError, match="timed out"):
      download_model(MODEL, tmp_path, url)


def test_too_large_is_refused_by_the_declared_length(get_model, server, tmp_path, monkeypatch):
  monkeypatch.setattr(http, "MAX_DOWNLOAD_BYTES", 500_000)
  with pytest.raises(DownloadError, match="limit of 500,000"):
    get_model()
  part = tmp_path / "cache" / "models" / (ARCHIVE + ".part")
  assert part.stat().st_size == 0


def test_too_large_is_refused_by_the_real_length(get_model, server, monkeypatch):
  monkeypatch.setattr(http, "MAX_DOWNLOAD_BYTES", 500_000)
  server.lengths = False
  with pytest.raises(DownloadError, match="limit of 500,000"):
    get_model()


def test_full_disk_is_noticed_before_the_download(get_model, monkeypatch):
  nearly_full = shutil.disk_usage(".")._replace(free=1000)
  monkeypatch.setattr(http.shutil, "disk_usage", lambda path: nearly_full)
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
  monkeypatch.setattr(http.requests, "Session", lambda *_: pytest.fail("a request went out"))
  with pytest.raises(DownloadError, match=r"Refused|not a URL"):
    download_model(MODEL, tmp_path, url)


def test_redirect_to_plain_http_is_refused(get_model, server):
  server.redirects["/" + ARCHIVE] = "http://example.com/x.zip"
  with pytest.raises(DownloadError, match=r"Refused to fetch http://example\.com"):
    get_model()
  server.redirects["/" + ARCHIVE] = "file:///etc/passwd"
  with pytest.raises(DownloadError, match="Refused to fetch file"):
    get_model()
  server.files["/elsewhere.zip"] = server.files.pop("/" + ARCHIVE)
  server.redirects["/" + ARCHIVE] = "/elsewhere.zip"
  assert content_of(get_model()) == MODEL_FILES


# ---------------------------------------------------------------------------------------------
# Archives that do not hold a model, and runs that are killed.


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
  with pytest.raises(DownloadError, match=r"did not contain vocab\.txt"):
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


# ---------------------------------------------------------------------------------------------
# Two at once.


def test_who_waited_takes_what_the_other_made(server, get_model, tmp_path, caplog):
  folder = (tmp_path / "cache" / "models" / ARCHIVE).with_suffix("")
  folder.parent.mkdir(parents=True)
  with download_cache._lock(folder.with_name(folder.name + ".lock")):
    thread = threading.Thread(target=get_model)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    assert f"Waiting for another process that downloads {folder.name}" in caplog.text
    folder.mkdir()
    for name, content in MODEL_FILES.items():
      (folder / name).write_bytes(content)
  thread.join()
  assert server.requests == []


# ---------------------------------------------------------------------------------------------
# Archives that are damaged or hostile.

OUTSIDE = ["../out", "a/../../out", "/out"]


def unpacked(archive, tmp_path, number=0):
  """The folder into which an archive is unpacked, and what appears outside of it."""
  folder = tmp_path / "inner" / str(number)
  folder.mkdir(parents=True)
  (tmp_path / "archive").write_bytes(archive)
  try:
    download_cache.unpack(tmp_path / "archive", folder)
  finally:
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "inner"]
  return folder


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_member_of_a_zip_lands_outside(name, tmp_path):
  folder = unpacked(zip_of([(name, b"x"), ("good", b"y")]), tmp_path)
  assert content_of(folder)["good"] == b"y"


@pytest.mark.parametrize(
  "archive",
  [
    tar_of([("../out", b"x")]),
    tar_of([(tar_member("link", tarfile.SYMTYPE, "a"), b"")]),
    tar_of([("a", b""), (tar_member("b", tarfile.LNKTYPE, "a"), b"")]),
    tar_of([(tar_member("null", tarfile.CHRTYPE), b"")]),
  ],
)
def test_a_hostile_tar_is_refused(archive, tmp_path):
  with pytest.raises(DownloadError, match="damaged, hostile"):
    unpacked(archive, tmp_path)


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_an_archive_that_swells_is_refused(make, tmp_path, monkeypatch):
  monkeypatch.setattr(download_cache, "MAX_UNPACKED_BYTES", 100_000)
  with pytest.raises(DownloadError, match="more than 100,000 bytes"):
    unpacked(make([("zeros", bytes(1 << 20))]), tmp_path)
  assert content_of(tmp_path / "inner") == {}


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_no_flipped_byte_and_no_cut_goes_unnoticed(make, tmp_path):
  content = random.Random(1).randbytes(2000)
  archive = make([("a", content)])
  damaged = [b"<html>", *(archive[:at] for at in range(0, len(archive), 97))]
  start = archive.index(content[:50]) if make is zip_of else 100
  for at in range(start, start + 1800, 83):
    damaged.append(archive[:at] + bytes([archive[at] ^ 0x10]) + archive[at + 1 :])
  for number, data in enumerate(damaged):
    with pytest.raises(DownloadError, match="damaged"):
      unpacked(data, tmp_path, number)
