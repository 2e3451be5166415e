"""The parts of `modeling.py`: configuration, variables, kernels, layers, heads."""
