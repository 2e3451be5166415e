"""Word tables, sentences, corpora, vocabularies; no TensorFlow."""
