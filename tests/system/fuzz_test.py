"""Damaged input to every parser: used, or refused by a clear error of its own, never anything else.

Alone: python -m pytest tests/system/fuzz_test.py (15 seconds; the same inputs in every run)
For hours instead: see tools/atheris_fuzz.py; `-m slow` runs that for FUZZ_SECONDS (300) a
parser.
"""

import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import warnings

import pytest
from absl import logging
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bert import tokenization
from tests.kit.fuzz_targets import PIECES, SNIPPETS, TARGETS, refusals
from tests.kit.paths import ROOT

EXAMPLES = 60  # of each parser


VALUES = (
  None,
  True,
  -1,
  0,
  1.5,
  2**70,
  float("nan"),
  "",
  "a",
  [],
  {},
  [1],
  {"a": 1},
  [[]],
  {"": []},
)


def _places(value, place=()):
  """The keys that lead to each value within a JSON value."""
  yield place
  inner_values = {dict: dict.items, list: enumerate}.get(type(value), lambda other: ())
  for key, inner in inner_values(value):
    yield from _places(inner, (*place, key))


@st.composite
def with_another_value(draw, seed):
  """A seed that is JSON, behind a byte of options or without one: of another type somewhere."""
  start = seed.index(b"{")
  content = json.loads(seed[start:])
  *outer, last = draw(st.sampled_from([place for place in _places(content) if place]))
  inner = content
  for key in outer:
    inner = inner[key]
  inner[last] = draw(st.sampled_from(VALUES))
  return seed[:start] + json.dumps(content).encode()


def _is_json(seed):
  with contextlib.suppress(ValueError):
    return bool(json.loads(seed[max(seed.find(b"{"), 0) :]))
  return False


@st.composite
def damaged(draw, seeds):
  """Good input with up to four changes."""
  data = draw(st.sampled_from(seeds))
  if _is_json(data) and draw(st.booleans()):
    return draw(with_another_value(data))
  for _ in range(draw(st.integers(0, 4))):
    at = draw(st.integers(0, len(data)))
    until = draw(st.integers(at, min(len(data), at + 12)))
    new = draw(st.one_of(st.sampled_from(SNIPPETS), st.binary(max_size=4), st.just(b"")))
    kind = draw(st.integers(0, 9))
    # Mostly a few bytes are replaced; sometimes the end is lost, or comes twice.
    data = data[:at] + new + (b"" if kind == 0 else data[at:] * 2 if kind == 1 else data[until:])
  return data


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
  """Warnings about odd files are not what is looked for here."""
  for level in ("warning", "info"):
    monkeypatch.setattr(logging, level, lambda *args: None)
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    yield


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_used_or_refused_clearly(name, tmp_path):
  numbers = itertools.count()

  @settings(
    derandomize=True,
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
  )
  @given(st.one_of(damaged(TARGETS[name].seeds), st.binary(max_size=40)))
  def refuses_clearly(data):
    folder = tmp_path / str(next(numbers))
    folder.mkdir()
    TARGETS[name].run(data, folder)

  refuses_clearly()


@pytest.mark.parametrize("name", TARGETS)
def test_good_input_is_used(name, tmp_path):
  """A parser that refused everything would pass the test above."""
  used = 0
  for number, seed in enumerate(TARGETS[name].seeds):
    refusals.clear()
    (tmp_path / str(number)).mkdir()
    TARGETS[name].run(seed, tmp_path / str(number))
    used += not refusals
  assert used >= len(TARGETS[name].seeds) / 3


# ---------------------------------------------------------------------------------------------
# The tokenizer, whose fast way remembers words.

any_text = st.text(
  st.one_of(st.sampled_from("aAbun 1.,!éß中ς\u0301\u2028\ud800\0\t"), st.characters()), max_size=40
)
known_word = st.text(st.sampled_from("aAbB1é."), min_size=1, max_size=6)
mixed_text = st.lists(st.one_of(any_text, known_word), max_size=6).map(" ".join)


@settings(derandomize=True, max_examples=80, deadline=None, database=None)
@given(st.lists(mixed_text, min_size=1, max_size=4), st.integers(0, 1))
def test_the_tokenizer_with_its_table_and_without(vocab_file, texts, lower):
  """One tokenizer for several texts, so that words come back; each text beside a new tokenizer."""
  remembering = tokenization.FullTokenizer(vocab_file, do_lower_case=bool(lower))
  for text in [*texts, *reversed(texts)]:
    fresh = tokenization.FullTokenizer(vocab_file, do_lower_case=bool(lower))
    steps = fresh._tokenize_step_by_step(text)
    assert remembering.tokenize(text) == steps == fresh.tokenize(text)


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory) -> pathlib.Path:
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("\n".join(PIECES.split()) + "\n", encoding="utf-8")
  return path


@pytest.fixture(scope="module")
def recorded(golden_dir) -> list[dict]:
  """Texts and the original's tokens."""
  lines = (golden_dir / "tokenization.jsonl").read_text(encoding="utf-8").split("\n")
  return [json.loads(line) for line in lines if line]


@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_the_tokenizer_against_the_original_s_record(case, recorded, data_dir):
  """Texts joined at random have each text's recorded tokens, whatever was remembered before."""
  vocab_file = data_dir / "vocab" / "uncased_vocab.txt"
  warm = tokenization.FullTokenizer(vocab_file, do_lower_case=case == "uncased")

  @settings(derandomize=True, max_examples=100, deadline=None, database=None)
  @given(st.lists(st.sampled_from(recorded), max_size=8), st.sampled_from([" ", "\n", "\u3000\t"]))
  def has_recorded_tokens(records, blank):
    tokens = [token for record in records for token in record[case]]
    text = blank.join(record["text"] for record in records)
    assert warm.tokenize(text) == warm._tokenize_step_by_step(text) == tokens

  has_recorded_tokens()


# ---------------------------------------------------------------------------------------------
# For hours.


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_coverage_guided(name, tmp_path):
  """Runs atheris_fuzz.py with this Python, or the one that FUZZ_PYTHON names, if it has atheris."""
  python = os.environ.get("FUZZ_PYTHON", sys.executable)
  if subprocess.run([python, "-c", "import atheris"], capture_output=True).returncode:
    pytest.skip(f"{python} has no atheris: pip install atheris")
  seconds = os.environ.get("FUZZ_SECONDS", "300")
  script = ROOT / "tools" / "atheris_fuzz.py"
  done = subprocess.run(
    [python, script, name, f"-max_total_time={seconds}", "-print_final_stats=1"],
    cwd=tmp_path,  # where it leaves input that crashed
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-4000:]
  [count] = re.findall(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
  print(f"{name}: {count} executions in {seconds} s")
  assert int(count) > 0
