"""Weights on disk: TensorFlow bundles, safetensors, transformers folders, released models."""
