"""Sentencepiece models, read without the library, held against it.

Alone: python -m pytest tests/text/piece_file_test.py (a second)
"""

import pytest
import sentencepiece

from bert.text import piece_file
from tests.kit import piece_model


@pytest.fixture(scope="module")
def path(tmp_path_factory):
  return piece_model.write(tmp_path_factory.mktemp("model"))


def test_pieces_are_those_of_the_library(path):
  model = piece_file.read(path.read_bytes())
  library = sentencepiece.SentencePieceProcessor(model_file=str(path))
  ids = range(library.get_piece_size())
  assert [piece.text for piece in model.pieces] == list(map(library.id_to_piece, ids))
  assert [piece.score for piece in model.pieces] == list(map(library.get_score, ids))
  controls = [piece.kind == piece_file.CONTROL for piece in model.pieces]
  assert controls == list(map(library.is_control, ids))
  assert (model.unk_id, model.algorithm) == (library.unk_id(), piece_file.UNIGRAM)
  assert len(model.charsmap) > 100_000
  assert not model.byte_fallback


def test_a_damaged_file_is_refused(path):
  data = path.read_bytes()
  for bad in (data[:40], b"\x0b" + data, data[:-1] + b"\xff\xff"):
    with pytest.raises(ValueError, match="not a complete sentencepiece model"):
      piece_file.read(bad)
