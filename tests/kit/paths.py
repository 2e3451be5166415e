"""Where things lie: the project, its samples, and what may lie beside a checkout."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
SAMPLE_TEXT = SAMPLES / "sample_text.txt"
SAMPLE_VOCAB = SAMPLES / "vocab.txt"
SHARED = ROOT.parent / "shared"
