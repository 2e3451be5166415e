"""Clients that speak no HTTP, or half of it: bytes at random, requests that are cut, or go on.

  raw_bytes.attack(("127.0.0.1", 8080), seed=1, count=100)

Each connection is bounded in bytes and time, and goes to this machine alone.
"""

import contextlib
import random
import socket
import struct

REQUESTS = (
  b'POST /embed HTTP/1.1\r\nhost: x\r\ncontent-length: 15\r\n\r\n{"inputs": "a"}',
  b"POST /predict HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
  b'f\r\n{"inputs": "a"}\r\n0\r\n\r\n',
  b"GET /info HTTP/1.1\r\nhost: x\r\n\r\n",
  b"HEAD /health HTTP/1.0\r\n\r\n",
  b"OPTIONS / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}",
  b"GET /page/page.js?a=%ff%00 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
  b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
  b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
  b"POST /v1/models/a%2Fb:predict HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999999999999999\r\n"
  b"transfer-encoding: gzip, chunked\r\n\r\n",
  b"CONNECT localhost:22 HTTP/1.1\r\nhost: x\r\n\r\n",
  b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
)
_ODD = (b"\r", b"\n", b"\r\n\r\n", b"\x00", b"\xff", b" ", b":", b"\t", b"0", b"-1", b"%", b"//")
_WAIT_S = 0.05  # for an answer; most have one at once, and others never


def attack(address: tuple[str, int], seed: int, count: int) -> list[int]:
  """Opens N connections, one after another; returns the statuses of the first answers."""
  draw = random.Random(seed)
  statuses = []
  for _ in range(count):
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=20) as connection:
      connection.sendall(_bytes(draw))
      answer = _goodbye(connection, draw.randrange(4))
      if answer.startswith(b"HTTP/1.1 "):
        statuses.append(int(answer[9:12]))
  return statuses


def _bytes(draw: random.Random) -> bytes:
  """Makes what one client sends."""
  if draw.random() < 0.2:
    return draw.randbytes(draw.randrange(1, 3000))
  found = b"".join(draw.choices(REQUESTS, k=draw.choice((1, 1, 2, 5))))
  for _ in range(draw.choice((0, 1, 1, 3, 10))):
    place = draw.randrange(len(found) + 1)
    change = draw.choice((*_ODD, draw.randbytes(1), found[:place]))
    found = found[:place] + change + found[place + draw.randrange(3) :]
  return found[: draw.randrange(len(found) + 1)] if draw.random() < 0.3 else found


def _goodbye(connection: socket.socket, how: int) -> bytes:
  """Ends a connection in one of four ways; returns what was read before."""
  if how == 0:  # at once, with a reset
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return b""
  if how == 1:  # at once
    return b""
  if how == 2:  # half: nothing more will be sent
    connection.shutdown(socket.SHUT_WR)
  connection.settimeout(_WAIT_S)
  return connection.recv(65536)
