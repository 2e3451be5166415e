"""What a wheel adds to the package `bert`: the modules at the root and the samples (pyproject.toml).

hatchling's static `force-include` takes no pattern, and it copies files into an editable install,
where they would grow stale. This hook lists nothing and leaves editable installs alone.
"""

import pathlib
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelLayout(BuildHookInterface):
  """Puts `modeling.py` where `bert/modeling.py` is expected, and so on."""

  def initialize(self, version: str, build_data: dict[str, Any]) -> None:
    """See base class; `version` is `standard` or `editable`."""
    if version == "editable":
      return
    inside = build_data["force_include"]
    for path in sorted(pathlib.Path(self.root).glob("*.py")):
      inside[str(path)] = f"bert/{path.name}"
    inside[str(pathlib.Path(self.root) / "samples")] = "bert/samples"
