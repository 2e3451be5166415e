"""From documents to instances to records: masks, workers, Beam."""
