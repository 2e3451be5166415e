"""What computes scores of tokens: TensorFlow, onnxruntime, LiteRT; `registry.py` finds them."""
