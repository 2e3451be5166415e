"""Models behind a port: queues, batches, processes that compute, and the routes in front."""
