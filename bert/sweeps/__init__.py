"""Sweeps: many runs of a script, each a process, resumed, collected and reported together."""
