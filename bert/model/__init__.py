"""What `modeling.py` is made of: configuration, variables, kernels, heads."""
