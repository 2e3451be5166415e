"""What `import keras` gives a script: python -m pytest tf1/tests/library/keras2_test.py"""

import os
import sysconfig

import numpy as np
import pytest

from bert_tf1 import importing
from bert_tf1.errors import NotAvailableError
from bert_tf1.real import tf


@pytest.mark.parametrize(
  ("line", "expected"),
  [
    ("from keras.layers import Dense as x", "layers.Dense"),
    ("from keras.layers.core import Dropout as x", "layers.Dropout"),
    ("from keras.layers.embeddings import Embedding as x", "layers.Embedding"),
    ("from keras.layers.normalization import BatchNormalization as x", "layers.BatchNormalization"),
    ("from keras.layers.recurrent import LSTM as x", "layers.LSTM"),
    ("from keras.layers.merge import concatenate as x", "layers.concatenate"),
    ("from keras.engine import Layer as x", "layers.Layer"),
    ("from keras.engine.topology import Layer as x", "layers.Layer"),
    ("from keras.engine.base_layer import InputSpec as x", "layers.InputSpec"),
    ("from keras.engine.training import Model as x", "Model"),
    ("import keras\nx = keras.engine.topology.Input", "Input"),
    ("from keras.engine.saving import load_model as x", "models.load_model"),
    ("from keras.engine.topology import get_source_inputs as x", "utils.get_source_inputs"),
    ("from keras.models import Input as x", "Input"),
    ("from keras import backend as K, Model as x", "Model"),
    ("from keras.layers.noise import GaussianNoise as x", "layers.GaussianNoise"),
    ("from keras.applications.vgg16 import VGG16 as x", "applications.vgg16.VGG16"),
    ("from keras.objectives import mse as x", "losses.mse"),
    ("import keras.backend as K\nx = K.get_session", "backend.get_session"),
    ("from keras import backend as K\nx = K.tensorflow_backend.set_session", "backend.set_session"),
    ("import keras.backend.tensorflow_backend as K\nx = K.clear_session", "backend.clear_session"),
    ("from keras.backend.tensorflow_backend import set_session as x", "backend.set_session"),
    ("from keras.utils.np_utils import to_categorical as x", "utils.to_categorical"),
    ("from keras.utils import np_utils\nx = np_utils.normalize", "utils.normalize"),
    ("from keras.utils.data_utils import get_file as x", "utils.get_file"),
    ("from keras.utils.generic_utils import Progbar as x", "utils.Progbar"),
    (
      "from keras.preprocessing.sequence import pad_sequences as x",
      "preprocessing.sequence.pad_sequences",
    ),
    ("from keras.optimizers import *\nx = Adam", "optimizers.Adam"),
    ("from keras.layers import *\nx = Bidirectional", "layers.Bidirectional"),
    (
      "import importlib\nx = importlib.import_module('keras.callbacks').EarlyStopping",
      "callbacks.EarlyStopping",
    ),
  ],
)
def test_names_and_files_of_keras_2(cell, line, expected):
  value = tf.keras
  for part in expected.split("."):
    value = getattr(value, part)
  assert cell(line)["x"] is value


def test_names_that_are_inside_today(cell):
  names = cell(
    "import keras\nfrom keras import backend as K\nfrom keras.layers.merge import _Merge\n"
    "gpus = K.tensorflow_backend._get_available_gpus()\nversion = keras.__version__\n"
    "from keras.engine.network import Network\nfrom keras.utils.conv_utils import normalize_tuple\n"
  )
  assert names["gpus"] == []
  assert names["version"].startswith("2.")
  assert issubclass(tf.keras.layers.Add, names["_Merge"])
  assert issubclass(names["Network"], tf.keras.Model)
  assert names["normalize_tuple"](3, 2, "size") == (3, 3)


@pytest.mark.parametrize(
  ("line", "message"),
  [
    ("from keras.legacy import interfaces", r"keras\.legacy .* Leave its decorators out"),
    ("from keras.utils import multi_gpu_model", r"keras\.utils\.multi_gpu_model .* Take the model"),
    ("from keras.wrappers.scikit_learn import KerasClassifier", "scikeras"),
    ("from keras.layers.core import Dens", r"did you mean keras\.layers\.Dense\?"),
    ("import keras.layrs", r"did you mean keras\.layers\?"),
    ("import keras.engine.nowhere", r"keras\.engine has: .*, Layer, "),
  ],
)
def test_what_keras_2_has_not(cell, line, message):
  with pytest.raises(ImportError, match=message):
    cell(line)
  with pytest.raises(NotAvailableError, match="did you mean"):
    cell("import keras\nkeras.layers.Dens")


def test_a_script_of_keras_trains_in_its_session(cell):
  names = cell(
    "import numpy as np, tensorflow as tf\n"
    "from keras.backend.tensorflow_backend import get_session, set_session\n"
    "from keras.engine.topology import Layer\nfrom keras.models import Sequential\n"
    "from keras.layers.core import Dense\nfrom keras.optimizers import SGD\n"
    "class Double(Layer):\n"
    "  def build(self, input_shape):\n"
    "    self.two = self.add_weight(name='two', shape=(), initializer='ones')\n"
    "    super(Double, self).build(input_shape)\n"
    "  def call(self, x):\n    return 2.0 * self.two * x\n"
    "  def compute_output_shape(self, input_shape):\n    return input_shape\n"
    "with tf.Graph().as_default(), tf.Session() as session:\n"
    "  set_session(session)\n"
    "  same = get_session() is session\n"
    "  model = Sequential([Dense(1, kernel_initializer='ones', input_dim=2), Double()])\n"
    "  model.compile(optimizer=SGD(lr=0.1), loss='mse', metrics=['acc'])\n"
    "  x, y = np.array([[1.0, 2.0]]), np.array([[4.0]])\n"
    "  history = model.fit(x, y, epochs=1, verbose=0).history\n"
    "  weights = model.get_weights()\n"
    "import keras\nkeras.backend._SESSION.session = None\n"
  )
  assert names["same"]
  # y = 2 t (k x + b) = 6: the loss is (6 - 4)^2; dy = 4, dk = 2 dy x, db = 2 dy, dt = 6 dy.
  assert names["history"]["loss"] == [4.0]
  assert "acc" in names["history"]
  kernel, bias, two = names["weights"]
  np.testing.assert_allclose(kernel, [[0.2], [-0.6]], rtol=1e-6)
  np.testing.assert_allclose(bias, [-0.8], rtol=1e-6)
  np.testing.assert_allclose(two, -1.4, rtol=1e-6)


def test_who_gets_keras_2(cell, tmp_path, monkeypatch):
  installed = os.path.join(sysconfig.get_path("purelib"), "package", "__init__.py")
  for name, expected in (("keras_bert.layers", True), ("keras.src.api", False), ("bert.x", False)):
    importer = {"__name__": name, "__file__": installed}
    assert importing._takes_keras_2(importer) is expected
  own = {"__name__": "bert.modeling", "__file__": str(tmp_path / "bert" / "modeling.py")}
  assert importing._takes_keras_2(own)
  (tmp_path / "keras").mkdir()
  (tmp_path / "keras" / "__init__.py").write_text("")
  assert not importing._takes_keras_2({"__name__": "__main__"})
