"""What the processor of this machine can do."""

import re

# Sums of products of 8 bits in 32, on x86; without them sums of two are cut off at 16 bits.
_EXACT_INT8 = ("avx512_vnni", "avx_vnni", "amx_int8")


def cpu_flags(path: str = "/proc/cpuinfo") -> frozenset[str]:
  """Reads the flags of the first CPU, as Linux names them; empty if unknown."""
  try:
    with open(path, encoding="utf-8", errors="replace") as reader:
      match = re.search(r"^(?:flags|Features)\s*:(.*)$", reader.read(), re.MULTILINE)
  except OSError:
    return frozenset()
  return frozenset(match[1].split()) if match else frozenset()


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
