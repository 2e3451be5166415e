"""Pictures, drawn from values."""
