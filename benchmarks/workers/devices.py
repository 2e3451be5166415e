"""Prints what TensorFlow sees of this machine, as one JSON line: versions, and its GPUs."""

import json
import os
import platform

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from tensorflow.python.client import device_lib


def main():
  build = tf.sysconfig.get_build_info()
  facts = {"tensorflow": tf.__version__, "python": platform.python_version()}
  facts |= {key: build.get(f"{key}_version") for key in ("cuda", "cudnn")}
  print(json.dumps({**facts, "gpus": gpus()}))


def gpus() -> list[dict]:
  """Name, compute capability and bytes that can be had, of each GPU."""
  physical = tf.config.list_physical_devices("GPU")
  details = [tf.config.experimental.get_device_details(gpu) for gpu in physical]
  sizes = [d.memory_limit for d in device_lib.list_local_devices() if d.device_type == "GPU"]
  return [
    {
      "name": found.get("device_name", "an unknown GPU"),
      "capability": ".".join(map(str, found.get("compute_capability", ("?",)))),
      "bytes": size,
    }
    for found, size in zip(details, sizes, strict=True)
  ]


if __name__ == "__main__":
  main()
