"""Checks that this machine suits a run: versions, types, memory, disk.

The checks of `doctor.py` that look at the machine; see `findings.py`. `memory_needed` holds the
arithmetic, which its docstring explains.
"""

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert.checks.findings import Finding, RunUnderCheck, error, note, ok, warning
from bert.io import atomic_files, installation
from bert.model.configuration import BertConfig
from bert.training import hardware

# Their own requirements are checked, too: upgrades of NumPy, protobuf, ... clash with these.
_LIBRARIES = ("tensorflow", "tensorflow-text", "tf-keras", "tensorflow-hub")

# These three are released together and fail to load with another minor version.
_SAME_MINOR = ("tensorflow", "tensorflow-text", "tf-keras")


# ---------------------------------------------------------------------------------------------
# Versions.


def check_versions(subject: RunUnderCheck) -> Iterator[Finding]:
  """Compares installed versions with the requirements of this project and of its libraries."""
  del subject
  clashes = list(_clashes(*installation.requirements()))
  yield from clashes
  if not clashes:
    versions = {name: _version(name) for name in _SAME_MINOR}
    shown = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    yield ok(f"Python {platform.python_version()}, {shown}: versions fit each other.")
    if not versions["tensorflow-text"]:  # Windows, where it is no requirement
      yield note("tensorflow-text is not installed: exports that read text cannot be made or used.")


def check_namesakes(subject: RunUnderCheck) -> Iterator[Finding]:
  """Names other installed distributions that bring an import package `bert`."""
  del subject
  for name in installation.namesakes():
    yield error(
      f"{name} also installs a package `bert`: `import bert` may find that one.",
      remedy=f"pip uninstall {name}, or use an environment without it.",
    )


def _clashes(supported: str, requirements: Sequence[str]) -> Iterator[Finding]:
  from packaging.specifiers import SpecifierSet

  python = platform.python_version()
  if python not in SpecifierSet(supported, prereleases=True):
    yield error(f"This is Python {python}, but {supported} is required.", sys.executable)
  wanted_by = [("this project", requirements)]
  wanted_by += [(name, installation.requirements_of(name)) for name in _LIBRARIES]
  seen = set()
  for who, wanted in wanted_by:
    for requirement in wanted:
      for finding in _unmet(requirement, who):
        if finding.what not in seen:
          seen.add(finding.what)
          yield finding
  versions = {name: _version(name) for name in _SAME_MINOR}
  minors = {version.rsplit(".", 1)[0] for version in filter(None, versions.values())}
  if len(minors) > 1:
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    yield error(f"{shown} belong to different releases.", remedy="Install equal minor versions.")


def _unmet(text: str, who: str) -> Iterator[Finding]:
  """Findings about a requirement such as `setuptools<82`."""
  from packaging.requirements import Requirement

  requirement = Requirement(text)
  if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
    return
  version = _version(requirement.name)
  remedy = f"pip install '{requirement.name}{requirement.specifier}'"
  if version is None:
    yield error(f"{requirement.name} is not installed, which {who} needs.", remedy=remedy)
  elif not requirement.specifier.contains(version, prereleases=True):
    what = f"{requirement.name} {version} is installed, but {who} needs {requirement.specifier}."
    yield error(what, remedy=remedy)


def _version(name: str) -> str | None:
  try:
    return importlib.metadata.version(name)
  except importlib.metadata.PackageNotFoundError:
    return None


# ---------------------------------------------------------------------------------------------
# Types of matrix products, and devices.


def check_devices(subject: RunUnderCheck) -> Iterator[Finding]:
  """Yields the devices, and whether they are fast in `--dtype`."""
  gpus = hardware.gpu_capabilities()
  if unseen := hardware.unseen_gpus():
    yield warning(
      f"This machine has {unseen} GPU(s) that TensorFlow does not see: it would train on the rest.",
      remedy=hardware.HOW_TO_SEE_GPUS,
    )
  yield from _dtype(subject.dtype, *hardware.preferred_dtype(hardware.cpu_flags(), gpus))
  yield ok(f"{len(gpus)} GPU(s), {installation.num_cores()} CPU core(s).")


def _dtype(dtype: str, preferred: str, reason: str) -> Iterator[Finding]:
  """Compares `--dtype` with the types that the machine computes fast."""
  if dtype == "bfloat16" and preferred != "bfloat16":
    yield warning(
      f"--dtype=bfloat16 is emulated here, slower than float32: {reason}.",
      remedy="Give --dtype=auto or --dtype=float32.",
    )
  elif dtype == "float16" and "GPU" not in reason:
    yield warning(
      "--dtype=float16 is for GPUs: CPUs convert every number.", remedy="Give --dtype=auto."
    )
  elif dtype == "float32" and preferred == "bfloat16":
    yield note(
      f"This machine is faster in bfloat16: {reason}.",
      remedy="Try --dtype=auto: scores rarely change.",
    )
  else:
    yield ok(f"--dtype={dtype} fits: {reason}.")


# ---------------------------------------------------------------------------------------------
# Memory.


class MemoryNeed(NamedTuple):
  """Memory of a training step, in bytes; see `memory_needed`."""

  weights: int
  gradients: int
  slots: int
  activations: int
  logits: int
  program: int

  @property
  def total(self) -> int:
    """All of it."""
    return sum(self)


def memory_needed(
  config: BertConfig, batch_size: int, seq_length: int, dtype: str = "float32", predictions: int = 0
) -> MemoryNeed:
  """Estimates the memory of training.

  With P parameters, L layers of width H with N heads and I inner units, B sequences of S tokens,
  and b bytes for a number of `dtype`:

    weights      4 P, and b P for copies in another type
    gradients    4 P
    slots        8 P: Adam's two moments
    activations  b L B S (8 H + 2 I + 2 N S): inputs of the products, of LayerNorm and of GELU,
                 and attention's probabilities before and after dropout, kept for the backward pass
    logits       8 B M V: scores of M masked words over V tokens, and their gradient; pre-training
                 only
    program      1.25 GiB: Python, TensorFlow and what it compiles

  Activations are counted as in Korthikanti et al. 2022, arXiv:2205.05198, section 4.1. On a CPU,
  peaks of 2 to 4 layers, 256 to 512 wide, at lengths 128 and 512, were up to 9% less than this.

  Args:
    config: the model.
    batch_size: B.
    seq_length: S.
    dtype: of the matrix products.
    predictions: M, masked words in a sequence; 0 for other tasks.

  Example:
    >>> base = BertConfig.from_name("uncased_L-12_H-768_A-12")
    >>> round(memory_needed(base, batch_size=32, seq_length=128).total / 2**30, 1)
    5.7
  """
  parameters, width = config.count_parameters(), config.hidden_size
  if predictions:
    parameters += width * width + 3 * width + config.vocab_size + 2 * width + 2
  size = 4 if dtype == "float32" else 2
  kept = 8 * width + 2 * config.intermediate_size + 2 * config.num_attention_heads * seq_length
  return MemoryNeed(
    weights=4 * parameters + (size * parameters if size != 4 else 0),
    gradients=4 * parameters,
    slots=8 * parameters,
    activations=size * config.num_hidden_layers * batch_size * seq_length * kept,
    logits=8 * batch_size * predictions * config.vocab_size,
    program=5 << 28,
  )


def check_memory(subject: RunUnderCheck) -> Iterator[Finding]:
  """Compares the memory that training needs with that of the machine or GPU."""
  config = subject.config
  if not config:
    return
  length = subject.max_seq_length or subject.longest or config.longest_sequence
  batch = subject.train_batch_size
  dtype = "float32" if subject.dtype == "auto" else subject.dtype
  need = memory_needed(config, batch, length, dtype, subject.max_predictions_per_seq or 0)
  parts = ", ".join(f"{name} {gigabytes(size)}" for name, size in need._asdict().items() if size)
  what = (
    f"Training at batch {batch} and length {length} needs about {gigabytes(need.total)} ({parts})"
  )
  there = hardware.gpu_memory() if hardware.gpu_capabilities() else []
  place = "GPU" if there else "machine"
  there = there or list(filter(None, [hardware.memory()]))
  if not there:
    yield note(f"{what}; this system does not report its memory.")
    return
  smallest = min(there, key=lambda memory: memory.available)
  has = f"the {place} has {gigabytes(smallest.available)} free of {gigabytes(smallest.total)}"
  always = need.total - need.activations - need.logits
  if always > smallest.total:
    yield error(f"{what}; {has}: its weights alone do not fit.", remedy="Use a smaller model.")
  elif need.total > smallest.available:
    remedy = "Lower --train_batch_size or --max_seq_length, or raise --gradient_accumulation_steps."
    yield warning(f"{what}; {has}.", remedy=remedy)
  else:
    yield ok(f"{what}; {has}.")


def gigabytes(size: float) -> str:
  """Returns a number of bytes as text in GiB or MiB.

  Example:
    >>> gigabytes(3 << 29), gigabytes(5 << 20)
    ('1.5 GiB', '5 MiB')
  """
  return f"{size / 2**30:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"


# ---------------------------------------------------------------------------------------------
# Disk.


def check_disk(subject: RunUnderCheck) -> Iterator[Finding]:
  """Checks that `--output_dir` can be written, and has room for the checkpoints of a run."""
  folder = subject.output_dir
  if not folder:
    return
  existing = os.path.abspath(folder)
  while not os.path.exists(existing):
    existing = os.path.dirname(existing)
  try:
    atomic_files.check_writable(existing)
  except OSError as failure:  # of a file, too
    what = f"Nothing can be written here ({failure.strerror})."
    yield error(what, existing, "Choose another --output_dir.")
    return
  free = shutil.disk_usage(existing).free
  if not subject.config:
    return
  one = 12 * subject.config.count_parameters()  # float32 weights and Adam's two moments
  # One more than is kept: a checkpoint is complete before the oldest goes.
  needed = one * (subject.keep_checkpoint_max + 1)
  what = (
    f"{subject.keep_checkpoint_max + 1} checkpoints of {gigabytes(one)} need {gigabytes(needed)}; "
    f"{gigabytes(free)} are free."
  )
  if free < one:
    yield error(what, folder, "Free some space: not one checkpoint fits.")
  elif free < needed:
    yield warning(what, folder, "Free some space, or lower --keep_checkpoint_max.")
  else:
    yield ok(what, folder)
