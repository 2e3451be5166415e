"""The original's modules as TensorFlow 1 graphs, for scripts that import them from `bert`."""
