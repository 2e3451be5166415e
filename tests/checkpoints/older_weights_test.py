r"""All classes of all families in every form of files: the same bits as in PyTorch's safetensors.

With transformers itself (two minutes): that of version 5 with PyTorch, in an interpreter of its
own, and the TensorFlow classes of version 4, in a folder; see tests/kit/peer_runs.py.

  BERT_PEER_PYTHON=/path/to/python BERT_TF_CLASSES=/path/to/packages \
    python -m pytest -m slow tests/checkpoints/older_weights_test.py
"""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, loading, transformers_folder
from bert.checkpoints.bundle_files import CheckpointError
from tests.checkpoints.transformers_families_test import ALL, convert_to_transformers, save_model
from tests.kit.older_weights import FILES_OF_FORMS, copy_folder, write_h5, write_torch
from tests.kit.peer_runs import run_peer, run_tensorflow_classes, save_inputs


def assert_same(folder, other) -> int:
  """Checks that two folders have the same tensors; returns how many."""
  one, two = (transformers_folder.open_weights(each) for each in (folder, other))
  assert one.contents == two.contents, other
  for name in one.contents:
    assert one.read(name).tobytes() == two.read(name).tobytes(), (other, name)
  names = [transformers_folder.read_architecture(each.path) for each in (one, two)]
  assert names[0] == names[1]
  return len(one.contents)


@pytest.mark.parametrize("form", FILES_OF_FORMS)
@pytest.mark.parametrize("family", dict(ALL))
def test_a_family(tmp_path, family, form):
  (tmp_path / "model").mkdir()
  save_model(tmp_path / "model", family, "masked_words")
  convert_to_transformers(tmp_path / "model", tmp_path / "there", "masked_words")
  assert assert_same(tmp_path / "there", copy_folder(tmp_path / "there", tmp_path / "o", form)) > 20


@pytest.mark.parametrize("name", ["tf_model.h5", "pytorch_model.bin"])
def test_other_sizes_and_missing_weights(tmp_path, name):
  """As of any checkpoint: sizes are an error, and what is missing is named."""
  tensors = {"bert.pooler.dense.weight": np.zeros([8, 8], np.float32)}
  if name.endswith("h5"):
    write_h5(tmp_path / name, tensors, "tf_bert_model")
  else:
    write_torch(tmp_path / name, tensors)
  variables = {"bert/pooler/dense/kernel": tf.Variable(tf.ones([8, 8]))}
  variables["bert/pooler/dense/bias"] = tf.Variable(tf.ones([8]))
  report = loading.init_from_checkpoint(finding.find_checkpoint(tmp_path), variables)
  assert (report.loaded, report.missing) == tuple([name] for name in variables)
  variables = {"bert/pooler/dense/kernel": tf.Variable(tf.zeros([9, 9]))}
  with pytest.raises(CheckpointError, match="does not fit this model"):
    loading.init_from_checkpoint(finding.find_checkpoint(tmp_path), variables)


@pytest.mark.slow
def test_what_transformers_saved(tmp_path):
  save_inputs(tmp_path)
  for program in ("make", "make_families"):
    run_peer(program, tmp_path)
  for name in ("float16", "bfloat16", "relu", "tanh", "sharded"):  # classes that are there already
    shutil.rmtree(tmp_path / name)
  run_peer("save_older", tmp_path)
  run_tensorflow_classes(tmp_path)
  models = sorted(path.parent for path in tmp_path.glob("*/model.safetensors"))
  assert len(models) == 8 + len(ALL)
  count = 0
  for form in ("zip", "pickles", "sharded", "h5", "h5_sharded", "tf", "tf_sharded"):
    count += sum(assert_same(each, tmp_path / form / each.name) for each in models)
  print(f"{len(models)} models, {count} tensors")
