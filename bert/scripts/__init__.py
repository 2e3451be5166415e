"""Flags, shared settings and result files of the scripts."""
