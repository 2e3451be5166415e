"""What a wheel adds to the package `bert`: the modules at the root and the samples.

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
    root = pathlib.Path(self.root)
    # Data only: what is included by force is not held against .gitignore.
    samples = [path for path in (root / "samples").rglob("*.*") if ".py" not in path.suffix]
    for path in sorted([*root.glob("*.py"), *samples]):
      build_data["force_include"][str(path)] = f"bert/{path.relative_to(root).as_posix()}"
