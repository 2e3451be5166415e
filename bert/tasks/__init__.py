"""GLUE, SQuAD, NER, SWAG, own tables: examples, features, scores."""
