"""Archives that are damaged or hostile.

Alone: python -m pytest tests/io/archives_test.py (seconds, no TensorFlow)
"""

import gzip
import random
import tarfile
import zipfile

import pytest

from bert.io import archives
from bert.io.http import DownloadError
from tests.kit.web_server import tar_member, tar_of, zip_of


def _unix_zip_member(name, mode):
  info = zipfile.ZipInfo(name)
  info.create_system, info.external_attr = 3, mode << 16
  return info


OUTSIDE = ["../out", "a/../../out", "/out", "C:/out", "..\\out", "\\\\host\\out", "a:stream"]


@pytest.mark.mutation("bert.io.archives:_tar_members.members", "guard")
@pytest.mark.parametrize(
  ("archive", "message"),
  [
    *[(zip_of([(name, b"x")]), "outside the folder") for name in OUTSIDE],
    *[(tar_of([(name, b"x")]), "outside the folder") for name in OUTSIDE],
    (zip_of([(_unix_zip_member("link", 0o120777), b"/etc")]), "link or a device"),
    (zip_of([(_unix_zip_member("pipe", 0o010666), b"")]), "link or a device"),
    (tar_of([(tar_member("link", tarfile.SYMTYPE, "/etc"), b"")]), "link or a device"),
    (tar_of([("a", b""), (tar_member("b", tarfile.LNKTYPE, "a"), b"")]), "link or a device"),
    (tar_of([(tar_member("null", tarfile.CHRTYPE), b"")]), "link or a device"),
    (tar_of([("a", b"1"), ("a", b"2")]), "two members"),
    (tar_of([("a", b"1"), ("A", b"2")]), "two members"),
  ],
)
def test_hostile_archive_writes_nothing_outside(archive, message, tmp_path):
  (tmp_path / "archive").write_bytes(archive)
  folder = tmp_path / "inner" / "folder"
  folder.mkdir(parents=True)
  with pytest.raises(DownloadError, match=message):
    archives.unpack(tmp_path / "archive", folder)
  outside = [path for path in tmp_path.rglob("*") if folder not in path.parents]
  assert sorted(path.name for path in outside) == ["archive", "folder", "inner"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_zip_with_two_members_of_one_name(tmp_path):
  (tmp_path / "archive").write_bytes(zip_of([("a", b"1"), ("a", b"2")]))
  with pytest.raises(DownloadError, match="two members"):
    archives.unpack(tmp_path / "archive", tmp_path)


BOMBS = [zip_of([("zeros", bytes(1 << 20))]), tar_of([("zeros", bytes(1 << 20))])]
SWARMS = [zip_of([(str(i), b"") for i in range(20)]), tar_of([(str(i), b"") for i in range(20)])]


@pytest.mark.mutation("bert.io.archives:_write_members", "guard")
@pytest.mark.parametrize("bomb", [*BOMBS, *SWARMS])
def test_archive_that_swells_is_refused(bomb, tmp_path, monkeypatch):
  monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 100_000)
  monkeypatch.setattr(archives, "MAX_UNPACKED_FILES", 10)
  (tmp_path / "archive").write_bytes(bomb)
  (tmp_path / "out").mkdir()
  with pytest.raises(DownloadError, match=r"more than 100,000 bytes or 10 files"):
    archives.unpack(tmp_path / "archive", tmp_path / "out")
  assert sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) == 0


def test_tar_followed_by_endless_zeros_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 100_000)
  tar = gzip.decompress(tar_of([("a", b"x")]))
  (tmp_path / "archive").write_bytes(gzip.compress(tar + bytes(1 << 20)))
  with pytest.raises(DownloadError, match="more than 100,000 bytes"):
    archives.unpack(tmp_path / "archive", tmp_path)


def test_zip_that_lies_about_sizes_is_damaged(tmp_path):
  lying = bytearray(zip_of([("zeros", bytes(5000))]))
  entry = lying.index(b"PK\x01\x02")
  lying[entry + 24 : entry + 28] = (10).to_bytes(4, "little")  # the uncompressed size
  (tmp_path / "archive").write_bytes(lying)
  with pytest.raises(DownloadError, match="damaged"):
    archives.unpack(tmp_path / "archive", tmp_path)
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
      archives.unpack(tmp_path / "archive", folder)


@pytest.mark.parametrize("data", [b"", b"<html>Not found</html>"])
def test_file_that_is_no_archive(data, tmp_path):
  (tmp_path / "archive").write_bytes(data)
  with pytest.raises(DownloadError, match="damaged or not an archive"):
    archives.unpack(tmp_path / "archive", tmp_path)
