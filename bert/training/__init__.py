"""The Estimator, its loop, distribution, the input pipeline, batching."""
