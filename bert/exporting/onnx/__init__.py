"""Models as ONNX: written operation by operation, and quantized."""
