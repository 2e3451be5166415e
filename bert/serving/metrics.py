"""Counts and times for Prometheus, for each model.

Names that begin with `te_` are those of text-embeddings-inference, whose counters have no `_total`.

Each server has a registry of its own, so that two in one process do not add up.
"""

import re
from typing import Any

import prometheus_client
from prometheus_client import platform_collector, process_collector

from bert.serving.events import Events

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_ROWS = tuple(1 << power for power in range(13))
_TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
# Reasons of failures, by status, where it is neither a mistake in the request nor of the server.
_REASONS = {413: "batch_size", 424: "inference", 429: "overloaded", 499: "dropped"}
_TOTAL = re.compile(rb"^((?:# (?:HELP|TYPE) )?te_\w+)_total\b", re.MULTILINE)
CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST


class Metrics(Events):
  """What has been counted; the models call the methods of `Events`."""

  def __init__(self):
    self._registry = registry = prometheus_client.CollectorRegistry()
    process_collector.ProcessCollector(registry=registry)
    platform_collector.PlatformCollector(registry=registry)

    def counter(name, text, labels=("model",)):
      return prometheus_client.Counter(name, text, labels, registry=registry)

    def gauge(name, text):
      return prometheus_client.Gauge(name, text, ["model"], registry=registry)

    def histogram(name, text, buckets, labels=("model",)):
      return prometheus_client.Histogram(name, text, labels, buckets=buckets, registry=registry)

    by_route = ("path", "status")
    self._requests = counter("te_request_count", "Requests by route and status.", by_route)
    self._durations = histogram(
      "te_request_duration", "Seconds from headers to answer.", _SECONDS, ("path",)
    )
    self._failures = counter("te_request_failure", "Requests that failed, by reason.", ("err",))
    self._success = counter("te_request_success", "Requests of which all items were computed.")
    self._items = {
      ability: (
        counter(f"te_{name}_count", f"Items {of}."),
        counter(f"te_{name}_success", f"Items {of} that were computed."),
      )
      for ability, name, of in (
        ("vectors", "embed", "for vectors"),
        ("answers", "predict", "for answers"),
      )
    }
    self._queue_times = histogram("te_request_queue_duration", "Seconds in the queue.", _SECONDS)
    self._tokenization_times = histogram(
      "te_request_tokenization_duration", "Seconds from texts to tokens.", _SECONDS
    )
    self._inference_times = histogram(
      "te_request_inference_duration", "Seconds in the model.", _SECONDS
    )
    self._lengths = histogram("te_request_input_length", "Tokens of an item.", _TOKENS)
    self._items["token_vectors"] = self._items["vectors"]
    self._batch_rows = histogram("te_batch_next_size", "Sequences of a batch.", _ROWS)
    self._batch_tokens = histogram("te_batch_next_tokens", "Tokens of a batch.", _TOKENS)
    self._batch_times = histogram("bert_batch_duration", "Seconds of a batch.", _SECONDS)
    self._queue_size = gauge("te_queue_size", "Requests that wait.")
    self._queue_tokens = gauge("bert_queue_tokens", "Tokens that wait.")
    self._restarts = counter("bert_worker_restarts", "Processes that were lost and started again.")
    self._reloads = counter("bert_reloads", "Changed folders that were read.", ("model", "ok"))

  def text(self) -> bytes:
    """Writes all in the text form of Prometheus."""
    return _TOTAL.sub(rb"\1", prometheus_client.generate_latest(self._registry))

  def request(self, path: str, status: int, seconds: float) -> None:
    """Counts a request that has ended; `path` is that of its route."""
    self._requests.labels(path, str(status)).inc()
    self._durations.labels(path).observe(seconds)
    if status >= 400:
      self._failures.labels(
        _REASONS.get(status, "validation" if status < 500 else "unhealthy")
      ).inc()

  def asked(self, model: str, ability: str, items: int) -> None:
    """Counts the items of a request before they are computed."""
    if ability in self._items:
      self._items[ability][0].labels(model).inc(items)

  def computed(self, model: str, ability: str, computed: Any) -> None:
    """Counts what was computed for a request, a `Computed`."""
    self._success.labels(model).inc()
    if ability in self._items:
      self._items[ability][1].labels(model).inc(len(computed.results))
    self._queue_times.labels(model).observe(computed.queue_s)
    self._tokenization_times.labels(model).observe(computed.tokenization_s)
    self._inference_times.labels(model).observe(computed.inference_s)
    lengths = self._lengths.labels(model)
    for tokens in computed.tokens:
      lengths.observe(tokens)

  def batch(self, model, rows, tokens, seconds):
    """See `Events`."""
    self._batch_rows.labels(model).observe(rows)
    self._batch_tokens.labels(model).observe(tokens)
    self._batch_times.labels(model).observe(seconds)

  def queue(self, model, requests, tokens):
    """See `Events`."""
    self._queue_size.labels(model).set(requests)
    self._queue_tokens.labels(model).set(tokens)

  def worker_restarted(self, model):
    """See `Events`."""
    self._restarts.labels(model).inc()

  def reloaded(self, model, ok):
    """See `Events`."""
    self._reloads.labels(model, str(ok).lower()).inc()
