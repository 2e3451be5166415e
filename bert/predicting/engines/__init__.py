"""What computes scores of tokens: TensorFlow and others; `registry.py` finds them by name."""

import os

# From version 1.32 on onnxruntime reports to its maker how it is used, unless this says no.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
