"""A run, a checkpoint or an export loaded: strings in, answers out."""
