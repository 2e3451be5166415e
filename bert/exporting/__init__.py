"""SavedModels: the Hub encoder, preprocessing, task models."""
