"""The cache of downloads, against a web server on this machine.

Alone: python -m pytest tests/io/download_cache_test.py (seconds, no TensorFlow, no network)
"""

import multiprocessing
import os
import pathlib
import random
import shutil
import socket
import sys
import threading

import pytest

from bert.checkpoints.released_models import RELEASED_MODELS, download_model
from bert.io import download_cache, http
from bert.io.http import DownloadError
from tests.kit.web_server import content_of, download_server, zip_of

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
  http.fetch(server.url + "/x", tmp_path / "x.part")
  assert (tmp_path / "x.part").read_bytes() == MODEL_ZIP
  assert len(server.requests) == 2


def test_without_a_validator_nothing_is_resumed(get_model, server):
  server.etags = False
  server.cut_after = [300_000]
  assert content_of(get_model()) == MODEL_FILES
  assert [range_ for _, range_ in server.requests] == [None, None]


@pytest.mark.mutation("bert.io.http:_total_of_continued", "guard")
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
  monkeypatch.setattr(http, "TIMEOUT_SECONDS", 0.05)
  with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, never answers
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with pytest.raises(DownloadError, match="timed out"):
      download_model(MODEL, tmp_path, url)


@pytest.mark.mutation("bert.io.http:_check_room", "guard")
def test_too_large_is_refused_by_the_declared_length(get_model, server, tmp_path, monkeypatch):
  monkeypatch.setattr(http, "MAX_DOWNLOAD_BYTES", 500_000)
  with pytest.raises(DownloadError, match="limit of 500,000"):
    get_model()
  part = tmp_path / "cache" / "models" / (ARCHIVE + ".part")
  assert part.stat().st_size == 0


@pytest.mark.mutation("bert.io.http:_copy_body", "guard")
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


@pytest.mark.mutation("bert.io.http:_check_url", "guard")
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
  monkeypatch.setattr(http, "_open", lambda *_: pytest.fail("a request went out"))
  with pytest.raises(DownloadError, match=r"Refused|not a URL"):
    download_model(MODEL, tmp_path, url)


def test_redirect_to_plain_http_is_refused(get_model, server):
  server.redirects["/" + ARCHIVE] = "http://example.com/x.zip"
  with pytest.raises(DownloadError, match=r"Refused to fetch http://example\.com"):
    get_model()
  server.redirects["/" + ARCHIVE] = "file:///etc/passwd"
  with pytest.raises(DownloadError):
    get_model()


@pytest.mark.mutation("bert.io.http:_SafeRedirects.redirect_request", "guard")
def test_redirect_from_https_to_this_machine_is_refused():
  request = http.urllib.request.Request("https://example.com/x.zip")
  with pytest.raises(DownloadError, match="unencrypted"):
    http._SafeRedirects().redirect_request(request, None, 302, "", {}, "http://127.0.0.1/x.zip")


def test_redirect_within_this_machine_is_followed(get_model, server):
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
# Progress.


def test_progress_is_lines_in_a_log_and_a_bar_on_a_terminal(get_model, capsys, monkeypatch):
  get_model()
  lines = [line for line in capsys.readouterr().err.splitlines() if " of 1.0 MiB" in line]
  assert lines[-1].startswith(f"{MODEL}.zip: 1.0 of 1.0")
  assert 1 <= len(lines) <= 10
  monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
  with http._progress("x.zip", 0, 100) as advance:
    advance(100)
  assert "100%" in capsys.readouterr().err
