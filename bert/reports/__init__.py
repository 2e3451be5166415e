"""Reports of runs: one file that people open."""
