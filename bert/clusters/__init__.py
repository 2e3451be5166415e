"""Work on many machines: pipelines of Apache Beam, and the files that their workers write."""
