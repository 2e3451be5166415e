"""Other vocabularies for every family of models; BERT's: tests/convert_checkpoint_test.py."""

import numpy as np
import pytest

from bert.checkpoints import resizing
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from tests.kit import byte_pairs, teachers, tiny_bert
from tests.kit.conversions import error_of

OLD = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c"]
NEW = [*OLD[:5], "c", "ab", "a"]


@pytest.mark.parametrize("family", ["electra", "albert", "roberta", "distilbert"])
def test_embeddings_and_bias_of_every_family(family):
  config = BertConfig.from_dict({"model_type": family, **tiny_bert.config(len(OLD))})
  bias = variable_shapes.word_head_names(config)[-1]
  shapes = {**variable_shapes.encoder_shapes(config), bias: (len(OLD),)}
  rng = np.random.RandomState(1)
  tensors = {name: rng.randn(*shape).astype(np.float32) for name, shape in shapes.items()}
  found = resizing.resize_vocabulary(
    tensors, OLD, NEW, 0.02, seed=1, split={"ab": ["a", "##b"]}.__getitem__
  )
  tables = {name for name in tensors if len(found[name]) and found[name] is not tensors[name]}
  assert tables == {f"{config.family.scope}/embeddings/word_embeddings", bias}
  for name in tables:
    old, new = tensors[name], found[name]
    np.testing.assert_array_equal(new[[0, 1, 2, 3, 4, 5, 7]], old[[0, 1, 2, 3, 4, 7, 5]])
    np.testing.assert_allclose(new[6], (old[5] + old[6]) / 2, rtol=1e-6)


@pytest.mark.parametrize("name", ["vocab_file", "old_vocab_file"])
def test_byte_pairs_are_refused(tmp_path, name):
  model = teachers.write(tmp_path / "model", OLD, {}, {})
  files = {"old_vocab_file": model / "vocab.txt", "vocab_file": model / "vocab.txt"}
  files |= {name: byte_pairs.write(tmp_path), "output_dir": tmp_path / "out"}
  found = error_of("resize_vocab", init_checkpoint=model, **files)
  assert f"--{name}={tmp_path}/vocab.json: resize_vocab reads vocabularies of a token per" in found
