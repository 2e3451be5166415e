"""The names of transformers 4 for TensorFlow, on top of `bert.keras3`."""
