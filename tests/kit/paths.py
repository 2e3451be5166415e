"""Where things lie: the project, its samples, and what may lie beside a checkout."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
SHARED = ROOT.parent / "shared"
