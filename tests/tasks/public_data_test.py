"""Public data of tasks: archives unpacked into the layout that the processors read.

Alone: python -m pytest tests/tasks/public_data_test.py (seconds, no TensorFlow, no network)
"""

import pathlib
import tarfile

import pytest

from bert.io.http import DownloadError
from bert.tasks.public_data import download_task_data
from tests.kit.web_server import content_of, download_server, tar_member, tar_of, zip_of


@pytest.fixture
def server(monkeypatch):
  with download_server(monkeypatch) as state:
    yield state


def test_unknown_names_list_the_known_ones(tmp_path):
  with pytest.raises(DownloadError, match=r"'SQuAD 3'.*MRPC.*IMDB"):
    download_task_data("SQuAD 3", tmp_path)


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
  with pytest.raises(DownloadError, match=r"did not contain test_mismatched\.tsv"):
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
  folders = [(tar_member("aclImdb", tarfile.DIRTYPE), b"")]
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
