"""Students cut from larger models."""

import numpy as np
import pytest

from bert.checkpoints import numpy_writer
from bert.distillation import students
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from tests.kit import tiny_bert

OTHERS = {"output_weights": (2, 16), "output_bias": (2,), "cls/predictions/output_bias": (11,)}


def model(folder, **changes):
  """A checkpoint whose tensors all differ, with a head, slots and a step."""
  config = BertConfig.from_dict(tiny_bert.config(11, num_hidden_layers=4, **changes))
  shapes = {**variable_shapes.encoder_shapes(config), **OTHERS}
  shapes |= {"output_bias/adam_m": (2,), "output_bias/adam_v": (2,)}
  rng = np.random.default_rng(0)
  tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
  tensors["global_step"] = np.array(7, np.int64)
  numpy_writer.write(folder / "model.ckpt-7", tensors)
  return str(folder / "model.ckpt-7"), config, tensors


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_chosen_layers_and_all_the_rest(tmp_path, family):
  prefix, config, tensors = model(tmp_path, model_type=family)
  smaller, found = students.cut(prefix, config, [0, 3])
  assert smaller.num_hidden_layers == 2
  assert config.num_hidden_layers == 4
  assert set(found) == {*variable_shapes.encoder_shapes(smaller), *OTHERS}
  for name, value in found.items():
    source = name.replace("/layer_1/", "/layer_3/")
    np.testing.assert_array_equal(value, tensors[source], err_msg=name)


def test_layers_that_share_their_weights(tmp_path):
  prefix, config, tensors = model(tmp_path, model_type="albert", embedding_size=8)
  smaller, found = students.cut(prefix, config, [0, 2])
  assert smaller.num_hidden_layers == 2
  assert set(found) == {*variable_shapes.encoder_shapes(smaller), *OTHERS}
  for name, value in found.items():
    np.testing.assert_array_equal(value, tensors[name], err_msg=name)


@pytest.mark.parametrize(
  ("layers", "message"),
  [
    ([0, 4], r"the model has no layer 4: its 4 layers are 0 to 3"),
    ([-1], r"the model has no layer -1"),
    ([2, 1], r"layers 2,1: give each once, in ascending order"),
    ([1, 1], r"layers 1,1: give each once"),
  ],
)
def test_layers_that_do_not_exist(layers, message):
  with pytest.raises(ValueError, match=message):
    students.check_layers(layers, BertConfig.from_dict(tiny_bert.config(11, num_hidden_layers=4)))


def test_distilberts_layers():
  """Those of `../shared/golden/distilbert`: of 12 layers these six."""
  assert students.spread_layers(12, 6) == [0, 2, 4, 7, 9, 11]
  for count in range(1, 13):
    layers = students.spread_layers(12, count)
    assert len(layers) == count
    students.check_layers(layers, BertConfig.from_dict(tiny_bert.config(11, num_hidden_layers=12)))
