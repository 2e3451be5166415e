"""The other side of `common.Worker`: requests come as JSON lines, and so do answers.

Needs the standard library alone, as it runs in every system's own interpreter.
"""

import json
import os
import sys
import time


def serve(actions) -> None:
  """Answers requests until there are no more.

  Args:
    actions: name -> function of a request's arguments that returns something JSON-able.
  """
  # Libraries print: what they print goes to the errors, and answers keep the stream for themselves.
  answers = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)
  for line in sys.stdin:
    request = json.loads(line)
    answer = actions[request.pop("action")](**request)
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def milliseconds(call, seconds: float) -> float:
  """Median time of a call, which is repeated for about `seconds`, at least three times."""
  times = []
  end = time.perf_counter() + seconds
  while len(times) < 3 or time.perf_counter() < end:
    begin = time.perf_counter()
    call()
    times.append(time.perf_counter() - begin)
  return 1e3 * sorted(times)[len(times) // 2]
