"""What is there, but not quite as TensorFlow 1.15 had it: a sentence for each name.

`bert-tf1 --check` says it of a name, of all below it, and of other names of the same class or
function. What no script can tell, such as rounding, has no place here.
"""

_NO_TPU = "There is no TPU: "
_ONE_REPLICA = (
  "One replica on one device, so a step takes the script's batch size once; the other devices that "
  "a script asks for are named in a warning."
)
_ORDER = (
  "The rate of a step is read before the step is counted; in 1.15 it was a race, and a step could "
  "take the next one's rate."
)
# Functions that load a compiled file.
LIBRARY_LOADERS = ("tf.load_file_system_library", "tf.load_library", "tf.load_op_library")
NEEDS_BUILDING = "One that was built for 1.15 does not load: build it from its source for this one."

DIFFERENCES: dict[str, str] = {
  "keras": "tf.keras, the last Keras 2 in its 1.x mode, where the script had Keras 2.4 or older.",
  "tf.contrib.cluster_resolver.TPUClusterResolver": (
    _NO_TPU + "making one is refused. Scripts make one only where a flag says so, mostly --use_tpu."
  ),
  "tf.contrib.distribute.CollectiveAllReduceStrategy": _ONE_REPLICA,
  "tf.contrib.distribute.MirroredStrategy": _ONE_REPLICA,
  "tf.contrib.distribute.ParameterServerStrategy": _ONE_REPLICA,
  "tf.contrib.tpu.RunConfig": _NO_TPU + "cluster, master and tpu_config are taken and not used.",
  "tf.contrib.tpu.TPUConfig": _NO_TPU + "its fields are taken and not used.",
  "tf.contrib.tpu.TPUEstimator": _NO_TPU + "use_tpu=True is refused. " + _ORDER,
  "tf.estimator.Estimator": _ORDER,
  "tf.estimator.inputs": (
    "By tf.data and not by a queue: the same batches, in an order that a seed repeats, and no "
    "summary of the queue."
  ),
  "tf.estimator.train_and_evaluate": (
    "One process trains and evaluates in turn; a cluster in TF_CONFIG is refused."
  ),
  "tf.distribute.MirroredStrategy": (
    "An Estimator takes it with one replica; where there are several GPUs, name one: "
    'devices=["/gpu:0"].'
  ),
  "tf.keras": "The last Keras 2 in its 1.x mode, where 1.15 had Keras 2.2.4.",
  "tf.set_random_seed": (
    "A run with this seed repeats, but draws other numbers than 1.15 for operations without a seed "
    "of their own: theirs come from counting random operations, and no longer all operations."
  ),
  **dict.fromkeys(LIBRARY_LOADERS, NEEDS_BUILDING),
}
