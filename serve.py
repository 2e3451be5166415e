"""Serves models over HTTP, in the forms that clients already speak, with a page to try them.

  python serve.py --model=/tmp/mrpc_output
  python serve.py --model=mrpc=/tmp/mrpc_export --model=vectors=uncased_L-12_H-768_A-12 --workers=2
  curl -s localhost:8080/predict -d '{"inputs": ["It rains.", "It is wet."]}'

--model is the folder of a run, a checkpoint, an export for other engines, or the name of a released
model; without it the small demonstration of `make mrpc` is served. The routes
are those of OpenAI (/v1/embeddings), text-embeddings-inference (/embed /predict /rerank) and
TensorFlow Serving (/v1/models/NAME:predict), and our own; /docs lists them. The page is at /.

Only programs of this machine can ask, unless --host says otherwise; then --api_key_file should name
keys. SIGTERM and Ctrl-C end the server once it has answered what it has.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import ipaddress
import json
import os
import re
import shlex
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags, logging

from bert.io import installation
from bert.predicting.engines import registry
from bert.scripts import command_line, flag_groups, path_flags, shared_flags
from bert.scripts.settings import Rule, above_zero
from bert.serving import key_file

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Models"):
    flags.DEFINE_multi_string(
      "model",
      [],
      "A model: its folder, the prefix of a checkpoint, or the name of a released model; or "
      "NAME=FOLDER. Its own engine or precision may follow: NAME=FOLDER,int8. May be given several "
      "times. [the small demonstration of `make mrpc`]",
    )
    flags.DEFINE_enum(
      "task",
      "auto",
      ["auto", "answers", "vectors", "masked_words", "attention"],
      "What all models do: one thing alone, or all that each can.",
    )
    path_flags.define("vocab_file", None, "The vocabulary of all models. [that of each]")
    flags.DEFINE_integer(
      "max_seq_length",
      None,
      "Maximum sequence length in word pieces, [CLS] and [SEP] included; longer texts are cut. "
      "[that of each model]",
    )
    shared_flags.define_engine_flags()
    shared_flags.define_prediction_dtype_flag()
    flags.DEFINE_bool(
      "reload", True, "Whether a model is loaded again when its files change, as by a run."
    )
  with flag_groups.flag_group("Server"):
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen at; 0.0.0.0 is every one.")
    flags.DEFINE_integer("port", 8080, "Port to listen at; 0 is any that is free.")
    flags.DEFINE_integer("workers", 1, "Processes that compute, for each model.")
    path_flags.define(
      "api_key_file",
      None,
      "File of keys, one on each line, read again when it changes; without it nobody needs one.",
    )
    flags.DEFINE_list(
      "allowed_host",
      [],
      "Names by which requests may address the server, beside localhost; * for any. [on a loopback "
      "--host none, else any]",
    )
    flags.DEFINE_list(
      "cors_origin", [], "Other sites whose pages may ask, such as https://example.com; * for all."
    )
    flags.DEFINE_enum("log_format", "text", ["text", "json"], "Form of the log's lines.")
    flags.DEFINE_float("drain_s", 30.0, "At the end: seconds for requests in flight.")
  with flag_groups.flag_group("Limits"):
    flags.DEFINE_integer("max_batch_tokens", 2048, "Tokens of a batch, padding included.")
    flags.DEFINE_integer("max_concurrent_requests", 512, "Requests in flight; others get a 429.")
    flags.DEFINE_float("max_wait_s", 10.0, "A request that would wait longer, or has, gets a 429.")
    flags.DEFINE_integer("max_inputs", 2048, "Texts of a request.")
    flags.DEFINE_integer("max_body_bytes", 2_000_000, "Bytes of a request's body.")
    flags.DEFINE_float("timeout_s", 60.0, "Seconds for an answer; later ones are a 503.")


def main(_) -> None:
  """Serves until a signal."""
  check_flags()
  keys = key_file.KeyFile(FLAGS.api_key_file) if FLAGS.api_key_file else ()
  given = named_models(FLAGS.model)
  with installation.extra("serve", "serve.py"):
    from bert.serving import http_server, request_log
  request_log.use_format(FLAGS.log_format)
  with http_server.open_port(FLAGS.host, FLAGS.port) as port:
    warn_of_strangers(port.getsockname()[0], bool(keys))
    serve(given or demonstration(), keys, port)


def check_flags() -> None:
  """Raises a UsageError for a number that cannot be."""
  names = ("workers", "max_inputs", "max_body_bytes", "max_concurrent_requests", "max_batch_tokens")
  command_line.check_at_least(1, *names)
  port = Rule(lambda value: 0 <= value < 1 << 16, "from 0 to 65535")
  command_line.check_values(port, "port")
  command_line.check_values(above_zero(), "max_wait_s", "timeout_s", "drain_s")
  command_line.check_at_least(3, "max_seq_length")


class GivenModel(NamedTuple):
  """A value of --model."""

  name: str
  folder: str
  options: dict[str, str]  # `engine` and `precision`, those that it names


def given_model(given: str) -> GivenModel:
  """Returns the parts of FOLDER, NAME=FOLDER, and either with an engine or a precision behind it.

  Raises:
    UsageError: there is no folder, or what is behind it is neither.

  Example:
    >>> given_model("mrpc=/tmp/export,onnxruntime,int8").options
    {'precision': 'int8', 'engine': 'onnxruntime'}
  """
  name, place = re.fullmatch(r"(?:([\w.-]+)=)?(.*)", given, re.DOTALL).groups()
  options: dict[str, str] = {}
  while not os.path.exists(place):  # whose name may have commas
    rest, comma, word = place.rpartition(",")
    kind = next((kind for kind, words in _OPTIONS.items() if word in words), None)
    if not comma or (kind is None and not os.path.exists(rest)):
      break
    if kind is None or kind in options:
      known = ", ".join((*_OPTIONS["engine"], *_OPTIONS["precision"]))
      what = "a second one" if kind else f"not one of {known}"
      raise command_line.UsageError(f"--model={given}: {word!r} is {what}.")
    options[kind], place = word, rest
  if not place:
    raise command_line.UsageError(f"--model={given} names no folder.")
  name = name or os.path.basename(os.path.normpath(place))
  return GivenModel(name, os.path.expanduser(place), options)


_OPTIONS = {"engine": registry.NAMES, "precision": registry.PRECISIONS}


def named_models(models: Sequence[str]) -> dict[str, GivenModel]:
  """Returns each model by its name: what is given, or the last part of the path.

  Raises:
    UsageError: a path is missing, or two models have one name.

  Example:
    >>> found = named_models(["mrpc=/tmp/run", "/tmp/squad_output/"])
    >>> {name: each.folder for name, each in found.items()}
    {'mrpc': '/tmp/run', 'squad_output': '/tmp/squad_output/'}
  """
  found: dict[str, GivenModel] = {}
  for each in map(given_model, models):
    if each.name in found:
      raise command_line.UsageError(
        f"Two models are called {each.name}. Give them names: --model=NAME={each.folder}"
      )
    found[each.name] = each
  return found


def warn_of_strangers(address: str, has_keys: bool) -> None:
  """Warns where other machines can ask, and need no key."""
  if not has_keys and not is_loopback(address):
    logging.warning(
      "Whoever reaches %s can use this server: name keys with --api_key_file.", address
    )


def is_loopback(address: str) -> bool:
  """Tells whether only programs of this machine reach an address."""
  return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def allowed_hosts(address: str, names: Sequence[str]) -> tuple[str, ...] | None:
  """Returns the names by which requests may address the server; None for any.

  A page of any site could have its own name lead to a loopback address (DNS rebinding), and would
  then ask the server as if it came from there.

  Example:
    >>> allowed_hosts("127.0.0.1", []), allowed_hosts("0.0.0.0", []), allowed_hosts("::1", ["*"])
    ((), None, None)
  """
  if "*" in names or not (names or is_loopback(address)):
    return None
  return tuple(name.lower() for name in names)


def demonstration() -> dict[str, GivenModel]:
  """Returns the small demonstration by its name; it is made where it is missing."""
  from bert.scripts import demonstration as example

  folder = example.made_folder("No --model was given, so it is made first")
  print(f"No --model was given: serving the small demonstration in {folder}.", flush=True)
  return named_models([folder])


def serve(given: Mapping[str, GivenModel], keys: Iterable[str], port: socket.socket) -> None:
  """Serves models behind a port, until a signal.

  Raises:
    ValueError, OSError: a model cannot be loaded.
  """
  from bert.serving import app, http_server, metrics, request_log, served_models, service

  counts = metrics.Metrics()
  names = ("task", "engine", "precision", "max_seq_length", "vocab_file", "dtype")
  options = served_models.ServingOptions(
    **_values("workers", "max_batch_tokens", "max_concurrent_requests", "max_wait_s", "reload"),
    max_characters=4 * FLAGS.max_body_bytes,
  )
  models = served_models.ServedModels(
    {name: each.folder for name, each in given.items()},
    options,
    counts,
    options_by_name={name: each.options for name, each in given.items()},
    **_values(*names),
  )
  log = request_log.RequestLog(FLAGS.log_format)
  limits = service.Settings(
    api_keys=keys,
    allowed_hosts=allowed_hosts(port.getsockname()[0], FLAGS.allowed_host),
    cors_origins=tuple(FLAGS.cors_origin),
    **_values("max_inputs", "max_body_bytes", "timeout_s"),
    **_values("max_batch_tokens", "max_concurrent_requests"),
  )
  failures: list[BaseException] = []

  def started(error: BaseException | None) -> None:
    if error is None:
      print(what_to_try(models, port, bool(keys)), flush=True)
    else:
      failures.append(error)
      server.stop()

  made = app.create(models, limits, counts, log, started)
  server = http_server.make(made, FLAGS.drain_s)
  http_server.run(server, port)
  if failures:
    raise failures[0]


def _values(*names: str) -> dict[str, Any]:
  return {name: FLAGS[name].value for name in names}


def what_to_try(models: Any, port: socket.socket, has_keys: bool = False) -> str:
  """Says what is served, where the page is, and a first request."""
  address = address_of(*port.getsockname()[:2])
  lines = [f"Serving at {address}/ (a page to try it; {address}/docs lists the routes):"]
  for name in models.names:
    abilities = ", ".join(each.replace("_", " ") for each in models.find(name).servable.abilities)
    servable = models.find(name).servable
    lines.append(f"  {name} ({servable.engine}, {servable.precision}): {abilities}")
  first = models.find(models.names[0])
  route, body = example_request(first, len(models.names) > 1)
  key = "-H 'Authorization: Bearer KEY' " if has_keys else ""
  lines.append(f"  curl -s {address}{route} {key}-d {shlex.quote(json.dumps(body))}")
  return "\n".join(lines)


def address_of(host: str, port: int) -> str:
  """Returns the address for a browser on this machine.

  Example:
    >>> address_of("127.0.0.1", 8080), address_of("::1", 8080), address_of("0.0.0.0", 80)
    ('http://127.0.0.1:8080', 'http://[::1]:8080', 'http://localhost:80')
  """
  if ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
    host = "localhost"
  return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def example_request(model: Any, is_named: bool) -> tuple[str, dict[str, Any]]:
  """Returns a route and a body for it that the model answers."""
  named = {"model": model.name} if is_named else {}
  answers = model.servable.abilities.get("answers")
  if answers is None:
    return "/v1/embeddings", {"input": "No aircraft could land.", **named}
  decoder = answers.processor.decoder
  example = decoder.example if decoder else dict.fromkeys(answers.processor.inputs, "A text.")
  return "/answer", {"items": [example], **named}


if __name__ == "__main__":
  command_line.run(main, define_flags)
