"""run_classifier.py with a model and data that it fetches, from a server on this machine."""

import functools
import http.server
import socket
import threading
import zipfile

import pytest

from bert import run_classifier
from bert.checkpoints import released_models
from bert.io import http as fetch
from tests.kit.script_runs import Script
from tests.kit.tiny_sentences import texts, write_rows

script = Script(run_classifier)
run, run_well, error_of = script.run, script.run_well, script.error_of

RELEASED = "uncased_L-2_H-128_A-2"


class Handler(http.server.SimpleHTTPRequestHandler):
  """Serves a folder and notes what is asked for."""

  asked: list[str]

  def do_GET(self):
    self.server.asked.append(self.path)
    super().do_GET()

  def log_message(self, *args):
    pass


@pytest.fixture
def mirror(tmp_path, monkeypatch):
  """A server of an empty folder; its `folder` and what was `asked` for. The cache is empty, too."""
  folder = tmp_path / "mirror"
  folder.mkdir()
  handler = functools.partial(Handler, directory=str(folder))
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    server.folder, server.asked = folder, []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    monkeypatch.setenv("BERT_DOWNLOAD_BASE_URL", url)
    monkeypatch.setenv("BERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "RETRY_SECONDS", 0)
    yield server
    server.shutdown()


def pack(path, files) -> None:
  path.parent.mkdir(parents=True)
  with zipfile.ZipFile(path, "w") as archive:
    for name, source in files.items():
      archive.write(source, name)


@pytest.fixture
def everything_downloaded(mirror, mrpc, tmp_path) -> dict:
  """The flags of a run for which the mirror has both the weights and the data of CoLA."""
  weights = {
    f"{RELEASED}/bert_model.ckpt{suffix}": mrpc.out / f"model.ckpt-20{suffix}"
    for suffix in (".index", ".data-00000-of-00001")
  }
  for flag, name in (("vocab_file", "vocab.txt"), ("bert_config_file", "bert_config.json")):
    weights[f"{RELEASED}/{name}"] = mrpc.flags[flag]
  pack(mirror.folder / "models" / released_models.RELEASED_MODELS[RELEASED], weights)
  rows = [("gj04", label, "", a) for label, a, _ in texts(4)]
  for split in ("train", "dev", "test"):
    write_rows(tmp_path / "CoLA", f"{split}.tsv", *rows)
  task = {f"CoLA/{path.name}": path for path in (tmp_path / "CoLA").iterdir()}
  pack(mirror.folder / "glue" / "CoLA.zip", task)
  return {
    "task_name": "cola",
    "data_dir": "download",
    "init_checkpoint": RELEASED,
    "output_dir": tmp_path / "out",
    "max_seq_length": 16,
  }


@pytest.mark.ci
def test_model_and_data_are_fetched_once(everything_downloaded, mirror, tmp_path):
  done = run_well(**everything_downloaded, do_eval=True)
  assert sorted(mirror.asked) == [
    "/glue/CoLA.zip",
    "/models/" + released_models.RELEASED_MODELS[RELEASED],
  ]
  assert "25 of 25 variables loaded" in done.err
  results = (tmp_path / "out" / "eval_results.txt").read_bytes()
  run_well(**everything_downloaded, do_eval=True)
  assert len(mirror.asked) == 2
  assert (tmp_path / "out" / "eval_results.txt").read_bytes() == results


def test_nothing_is_fetched_for_a_run_that_cannot_start(everything_downloaded, mirror):
  assert "At least one of `do_train`" in error_of(**everything_downloaded)
  message = error_of(**everything_downloaded, do_train=True, train_batch_size=0)
  assert "--train_batch_size=0" in message
  without_output = {k: v for k, v in everything_downloaded.items() if k != "output_dir"}
  assert "Flag --output_dir must have" in error_of(**without_output, do_eval=True)
  assert mirror.asked == []


def test_no_network_is_one_plain_message(everything_downloaded, mrpc, tmp_path, monkeypatch):
  with socket.socket() as closed:  # bound, and never listening: nothing answers there
    closed.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    monkeypatch.setenv("BERT_DOWNLOAD_BASE_URL", url)
    files = {name: mrpc.flags[name] for name in ("vocab_file", "bert_config_file")}
    for model in ({"init_checkpoint": RELEASED}, {"init_checkpoint": mrpc.out, **files}):
      values = {**everything_downloaded, **model}
      message = error_of(**values, do_eval=True)
      assert f"Cannot download {url}" in message
      assert f"save it as {tmp_path}/cache/" in message


def test_data_that_nobody_publishes(everything_downloaded):
  values = {**everything_downloaded, "task_name": "csv"}
  assert "No public data is known for task 'csv'" in error_of(**values, do_eval=True)
