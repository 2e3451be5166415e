"""What belongs to weights: found beside every kind of them, and checked to fit.

Alone: python -m pytest tests/checkpoints/model_files_test.py (a second, no TensorFlow)
"""

import pytest

from bert.checkpoints import model_files
from bert.checkpoints.model_files import ModelFiles


def make(folder, *names):
  for name in names:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
  return folder


@pytest.mark.parametrize(
  ("weights", "config", "vocabulary"),
  [
    ("bert_model.ckpt", "bert_config.json", "vocab.txt"),  # a released model, a run
    ("", "bert_config.json", "vocab.txt"),
    ("model.ckpt-best", "albert_config.json", "vocab_chinese.txt"),  # of ALBERT
    ("model.safetensors", "config.json", "vocab.txt"),  # of transformers
    ("", "assets.extra/bert_config.json", "assets/vocab.txt"),  # an exported encoder
    ("variables/variables", "assets.extra/bert_config.json", "assets/vocab.txt"),
    ("", "assets.extra/bert_config.json", "assets/medical.txt"),
    ("", "encoder/assets.extra/bert_config.json", "encoder/assets/vocab.txt"),  # an export
    ("", "export/encoder/assets.extra/bert_config.json", "export/encoder/assets/vocab.txt"),
    ("model.ckpt-3", None, "export/task/assets/vocab.txt"),  # a run that made an export
  ],
)
def test_files_are_found(tmp_path, weights, config, vocabulary):
  make(tmp_path, *filter(None, (config, vocabulary)))
  expected = [name and str(tmp_path / name) for name in (config, vocabulary)]
  assert model_files.find(tmp_path / weights) == ModelFiles(*expected)


def test_the_nearest_is_taken_and_of_one_folder_the_originals(tmp_path):
  make(tmp_path, "config.json", "encoder/assets.extra/bert_config.json", "encoder/assets/vocab.txt")
  assert model_files.find(tmp_path).config == str(tmp_path / "config.json")
  make(tmp_path, "bert_config.json", "vocab.txt")
  assert model_files.find(tmp_path) == ModelFiles(
    str(tmp_path / "bert_config.json"), str(tmp_path / "vocab.txt")
  )


def test_the_best_weights_of_a_run_have_its_files(tmp_path):
  make(tmp_path, "bert_config.json", "vocab.txt", "best/model.ckpt-3.index")
  for weights in ("best", "best/model.ckpt-3"):
    assert model_files.find(tmp_path / weights) == model_files.find(tmp_path)
  make(tmp_path, "other/model.ckpt-3.index")
  assert model_files.find(tmp_path / "other") == ModelFiles(None, None)


def test_not_every_text_is_a_vocabulary(tmp_path):
  make(tmp_path, "eval_results.txt")
  assert model_files.find(tmp_path) == ModelFiles(None, None)
  with pytest.raises(ValueError, match=r"no vocab\.txt or spiece\.model"):
    model_files.need_vocabulary(tmp_path)
  make(tmp_path, "tokenizer.json")
  with pytest.raises(ValueError, match=r"tokenizer\.json has a model of the type None"):
    model_files.need_vocabulary(tmp_path / "model.safetensors")
  with pytest.raises(ValueError, match=r"has no bert_config\.json or config\.json"):
    model_files.need_config(tmp_path / "model.ckpt-1")


def test_names_may_hold_characters_of_patterns(tmp_path):
  folder = make(tmp_path / "a[1]*", "assets/vocab.txt")
  assert model_files.find(folder).vocabulary == str(folder / "assets" / "vocab.txt")


def test_a_vocabulary_has_an_embedding_for_each_token():
  model_files.check_vocabulary_size({"a": 0, "b": 1}, "vocab.txt", 2, "bert_config.json")
  with pytest.raises(ValueError, match=r"vocab\.txt numbers its tokens up to 1, but x\.json"):
    model_files.check_vocabulary_size({"a": 0, "b": 1}, "vocab.txt", 1, "x.json")
  # Empty last lines need no embedding; an empty line before a token moves its id.
  model_files.check_vocabulary_size({"a": 0, "b": 1, "": 3}, "vocab.txt", 2, "bert_config.json")
  with pytest.raises(ValueError, match="tokens up to 2"):
    model_files.check_vocabulary_size({"a": 0, "": 1, "b": 2}, "vocab.txt", 2, "x.json")
  model_files.check_vocabulary_size({"<unk>": 1, "▁a": 2}, "s.model", 9, "x.json", "albert")
  model_files.check_vocabulary_size({"[UNK]": 1, "a": 2}, "vocab.txt", 3, "x.json", "albert")


@pytest.mark.parametrize(
  ("vocab", "family", "message"),
  [
    ({"<unk>": 1, "▁a": 2}, "bert", r"f is a sentencepiece model of 3 pieces, but x\.json is of "
     r"BERT with vocab_size 9.*--vocab_file=vocab\.txt"),
    ({"[UNK]": 1, "a": 2}, "albert", r"f is a WordPiece vocabulary of 3 tokens, but x\.json is of "
     r"ALBERT with vocab_size 9.*--spm_model_file=30k-clean\.model"),
  ]
)  # fmt: skip
def test_a_vocabulary_of_the_other_kind_is_another_models(vocab, family, message):
  with pytest.raises(ValueError, match=message):
    model_files.check_vocabulary_size(vocab, "f", 9, "x.json", family)


PIECES = b"\n\x0e\n\x05<pad>\x15\0\0\0\0\x18\x03"  # the first piece of a sentencepiece model


@pytest.mark.parametrize("name", ["spiece.model", "30k-clean.model", "assets/my.model"])
def test_a_sentencepiece_model_is_a_vocabulary(tmp_path, name):
  (tmp_path / "assets").mkdir()
  (tmp_path / "vectors.model").write_bytes(b"any other program's")
  (tmp_path / "30k-clean.vocab").write_text("<pad>\t0")
  (tmp_path / name).write_bytes(PIECES)
  assert model_files.find(tmp_path / "model.ckpt-best").vocabulary == str(tmp_path / name)
