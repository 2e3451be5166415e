"""A port, and uvicorn behind it, until a signal; requests in flight are then still answered.

with open_port("127.0.0.1", 8080) as port:
  serve(app, port, drain_s=30)
"""

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn

from bert.serving import connections

_BACKLOG = 2048
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def open_port(host: str, port: int) -> socket.socket:
  """Takes a port before anything is loaded; nobody is listening on it yet.

  Args:
    host: an address of this machine, or a name of one.
    port: 0 for any that is free.

  Raises:
    OSError: the port is in use or not allowed, or there is no such address; one line.
  """
  try:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
  except (socket.gaierror, UnicodeError) as error:
    why = getattr(error, "strerror", None) or error
    raise OSError(f"--host={host} is no address of this machine: {why}.") from None
  for place, (family, _, _, _, address) in enumerate(found, start=1):
    try:
      return _bound(family, address)
    except OSError as error:
      if error.errno not in _NOT_HERE or place == len(found):
        raise OSError(f"--host={host} --port={port}: {_why(error)}") from None
  raise AssertionError("getaddrinfo gives an address, or an error")


def _bound(family: int, address: Any) -> socket.socket:
  taken = socket.socket(family, socket.SOCK_STREAM)
  try:
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(address)
  except OSError:
    taken.close()
    raise
  return taken


# A name may stand for several addresses, of which a machine without IPv6 has not all.
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def _why(error: OSError) -> str:
  if error.errno == errno.EADDRINUSE:
    return "the port is in use. Choose another with --port, or stop the program that has it."
  if error.errno in _NOT_HERE:
    return "this is no address of this machine."
  if error.errno == errno.EACCES:
    return "this port is not for everybody: choose one above 1023."
  return f"{error.strerror}."


class Server(uvicorn.Server):
  """uvicorn, which ends after a signal as after any other work: with exit code 0."""

  @contextlib.contextmanager
  def capture_signals(self) -> Iterator[None]:
    """Handles signals in the block; uvicorn's own would raise them once more afterwards."""
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
      yield
      return
    earlier = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
    try:
      yield
    finally:
      for each, handler in earlier.items():
        signal.signal(each, handler)

  def stop(self) -> None:
    """Ends as after a signal."""
    self.should_exit = True


def make(app: Any, drain_s: float) -> Server:
  """Makes the server of an application; `drain_s`: how long it waits for requests in flight."""
  config = uvicorn.Config(
    app,
    http=connections.protocol_class(),
    ws="none",
    lifespan="on",
    log_config=None,
    log_level="warning",
    access_log=False,
    server_header=False,
    backlog=_BACKLOG,
    timeout_keep_alive=60,
    timeout_graceful_shutdown=max(1, round(drain_s)),
  )
  return Server(config)


def run(server: Server, port: socket.socket) -> None:
  """Serves until a signal, or until `Server.stop`.

  Raises:
    OSError: another program began to listen at the port meanwhile.
  """
  try:
    port.listen(_BACKLOG)
  except OSError as error:
    raise OSError(f"--port={port.getsockname()[1]}: {_why(error)}") from None
  allow_many_connections()
  config = server.config
  factory = config.get_loop_factory()
  if factory is None:
    asyncio.run(server.serve(sockets=[port]))
    return
  loop = factory()
  try:
    asyncio.set_event_loop(loop)
    loop.run_until_complete(server.serve(sockets=[port]))
  finally:
    asyncio.set_event_loop(None)
    loop.close()


def allow_many_connections() -> None:
  """Raises the limit of open files, often 1,024, to what is allowed: each connection is one."""
  try:
    import resource
  except ImportError:  # Windows, which has no such limit
    return
  _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
  with contextlib.suppress(ValueError, OSError):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
