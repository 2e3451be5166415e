"""Developers' tools, run as `python -m tools.NAME`: they compare checkouts, devices, libraries."""
