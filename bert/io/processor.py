"""The processor of this machine: its name, and what it can do."""

import platform
import re

# Sums of products of 8 bits in 32, on x86; without them sums of two are cut off at 16 bits.
_EXACT_INT8 = ("avx512_vnni", "avx_vnni", "amx_int8")


_CPUINFO = "/proc/cpuinfo"


def cpu_name(path: str = _CPUINFO) -> str:
  """Returns the name of the first CPU, or else what the system calls it."""
  return _value("model name", path) or platform.processor() or platform.machine()


def cpu_flags(path: str = _CPUINFO) -> frozenset[str]:
  """Reads the flags of the first CPU, as Linux names them; empty if unknown."""
  return frozenset(_value("flags|Features", path).split())


def _value(names: str, path: str) -> str:
  """Reads the first value of some names in Linux's list of CPUs; "" where it is not there."""
  try:
    with open(path, encoding="utf-8", errors="replace") as reader:
      match = re.search(rf"^(?:{names})[ \t]*:(.*)$", reader.read(), re.MULTILINE)
  except OSError:
    return ""
  return match[1].strip() if match else ""


def cuts_off_int8(flags: frozenset[str]) -> bool:
  """Returns whether products of 8 bits overflow on a CPU with these flags; not if unknown.

  Example:
    >>> cuts_off_int8(frozenset({"avx2"})), cuts_off_int8(frozenset({"avx2", "avx_vnni"}))
    (True, False)
    >>> cuts_off_int8(frozenset({"asimd"})), cuts_off_int8(frozenset())
    (False, False)
  """
  is_x86 = "sse2" in flags or "avx2" in flags
  return is_x86 and flags.isdisjoint(_EXACT_INT8)
