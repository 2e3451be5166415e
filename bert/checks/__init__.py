"""Checks that `doctor.py` and every run make before training."""
