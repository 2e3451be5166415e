"""A plug-in of pytest: how each test ended, and how far off the values were, as one JSON line last.

  python -m pytest -p tools.check_report tests/modeling_test.py

`check_gpu.py` reads the line. Of each test it has what `np.testing.assert_allclose` saw:
the largest share of its tolerance that a difference took (1 is the limit), and that difference; and
what the test noted with `record_property`. TF32 is switched off in this process: the goldens are of
float32. Devices are those of this process.
"""

import json
import sys

import numpy as np

_tests: dict[str, dict] = {}
_running: list[str] = [""]  # the test that runs
_assert_allclose = np.testing.assert_allclose


def pytest_configure():
  """Notes the differences of all comparisons from now on."""
  np.testing.assert_allclose = noting_assert_allclose


def pytest_unconfigure():
  """Puts NumPy's function back."""
  np.testing.assert_allclose = _assert_allclose


def pytest_collection_finish():
  """Switches TF32 off, where a test module has imported TensorFlow."""
  tensorflow = sys.modules.get("tensorflow")
  if tensorflow:
    tensorflow.config.experimental.enable_tensor_float_32_execution(False)


def pytest_runtest_setup(item):
  """Notes which test the next comparisons belong to."""
  _running[0] = item.nodeid


def pytest_runtest_logreport(report):
  """Adds one phase of a test: its outcome is that of the first one that is not passed."""
  test = _test(report.nodeid)
  test["seconds"] += report.duration
  test["properties"] = dict(report.user_properties)
  if report.outcome != "passed" and test["outcome"] == "passed":
    test |= {"outcome": report.outcome, "why": _why(report)}


def pytest_terminal_summary(terminalreporter):
  """Writes the line."""
  facts = {"tests": _tests, "gpu_peak_bytes": gpu_peak_bytes()}
  terminalreporter.write_line(json.dumps(facts))


def noting_assert_allclose(actual, desired, rtol=1e-7, atol=0, *args, **kwargs):
  """NumPy's `assert_allclose`, which notes the difference first."""
  __tracebackhide__ = True
  note_difference(_test(_running[0]), actual, desired, rtol, atol)
  _assert_allclose(actual, desired, rtol, atol, *args, **kwargs)


def note_difference(test: dict, actual, desired, rtol: float, atol: float) -> None:
  """Keeps the largest share of the tolerance in a test's facts, and the difference that took it.

  Example:
    >>> test = {"share": 0.0, "difference": 0.0}
    >>> note_difference(test, [1.0, 2.5], [1.0, 2.0], rtol=0.25, atol=0.5)
    >>> test
    {'share': 0.5, 'difference': 0.5}
  """
  try:
    actual, desired = np.asarray(actual, np.float64), np.asarray(desired, np.float64)
    differences, allowed = np.abs(actual - desired), atol + rtol * np.abs(desired)
  except (TypeError, ValueError):
    return  # NumPy says what is wrong with them.
  with np.errstate(divide="ignore", invalid="ignore"):
    shares = np.where(differences == 0, 0.0, differences / allowed)
  if shares.size and np.nanmax(shares) > test["share"]:
    place = np.unravel_index(np.nanargmax(shares), shares.shape)
    test |= {"share": float(shares[place]), "difference": float(differences[place])}


def gpu_peak_bytes() -> int:
  """The most memory of any GPU that this process has had; 0 without one."""
  tensorflow = sys.modules.get("tensorflow")
  if not tensorflow:
    return 0
  devices = [device.name for device in tensorflow.config.list_logical_devices("GPU")]
  memory_info = tensorflow.config.experimental.get_memory_info
  return max((memory_info(name.removeprefix("/device:"))["peak"] for name in devices), default=0)


def _test(nodeid):
  empty = {"outcome": "passed", "why": "", "seconds": 0.0, "share": 0.0, "difference": 0.0}
  return _tests.setdefault(nodeid, {**empty, "properties": {}})


def _why(report):
  """The reason of a skip, or the last line that names the error of a failure."""
  if isinstance(report.longrepr, tuple):
    return report.longrepr[2].removeprefix("Skipped: ")
  crash = getattr(report.longrepr, "reprcrash", None)
  return " ".join((crash.message if crash else str(report.longrepr)).split())[:300]
