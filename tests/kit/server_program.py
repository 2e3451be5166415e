"""The server as a program, for tests that ask it from outside.

program = Program(tmp_path, "--model=/tmp/export")
program.ask("POST", "/embed", {"inputs": "A text."})
assert program.stop() == 0
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.kit.paths import ROOT


class Program:
  """serve.py in a process of its own.

  Attributes:
    port: of HTTP.
    address: of HTTP, without a slash at its end.
    out, log: files of what it prints and logs.
    process: for signals.
  """

  def __init__(self, folder, *flags: str):
    self.log = folder / "log.txt"
    self.out = folder / "out.txt"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(self.log, "w") as log, open(self.out, "w") as out:
      self.process = subprocess.Popen(
        [sys.executable, str(ROOT / "serve.py"), "--port=0", *flags],
        cwd=folder,
        env=environment,
        stdout=out,
        stderr=log,
      )
    said = self._wait(r"Serving at http://127\.0\.0\.1:(\d+)/")
    self.port = int(said[1])
    self.address = f"http://127.0.0.1:{self.port}"

  def _wait(self, pattern: str):
    deadline = time.monotonic() + 120
    while not (found := re.search(pattern, self.out.read_text())):
      if self.process.poll() is not None or time.monotonic() > deadline:
        pytest.fail(self.log.read_text())
      time.sleep(0.05)
    return found

  def ask(self, method: str, path: str, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, headers)
    response = connection.getresponse()
    found = response.read()
    connection.close()
    assert response.status == 200, found
    return json.loads(found) if "json" in response.headers["content-type"] else found

  def stop(self) -> int:
    self.process.send_signal(signal.SIGTERM)
    return self.process.wait(60)

  def kill(self) -> None:
    """Ends it at once, if it has not ended."""
    if self.process.poll() is None:
      self.process.kill()
      self.process.wait(60)
