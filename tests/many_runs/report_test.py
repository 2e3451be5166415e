"""The report of many runs: what it says of examples is what the models of the runs answer.

Alone: python -m pytest tests/many_runs/report_test.py -m ci (half a minute)
"""

import pytest

from bert.reports import many
from bert.scripts import run_subject, sweep_pages
from bert.scripts.run_subject import Chosen
from tests.reports.pages import check_alone, data_of

pytestmark = pytest.mark.ci


@pytest.fixture
def read(monkeypatch):
  """The runs that the page of a folder was made of."""
  found = []
  render = many.render
  monkeypatch.setattr(many, "render", lambda runs: found.append(runs) or render(runs))

  def read_(folder) -> many.ManyRuns:
    sweep_pages.page_of(str(folder), str(folder / "report.html"), Chosen())
    return found[-1]

  return read_


def check_answers(runs, out):
  """Each run's saved outputs show what its model answers."""
  assert not runs.missing
  for seed, cases in zip(runs.answers.seeds, runs.answers.cases, strict=True):
    chosen = Chosen(is_explained=False)
    expected = run_subject.subject_of(str(out / f"seed_{seed}"), chosen).examples
    assert len(cases) == len(expected.cases) > 0
    for one, other in zip(cases, expected.cases, strict=True):
      assert (one.passages, one.gold) == (other.passages, other.gold)
      assert one.loss == pytest.approx(other.loss, rel=1e-3, abs=1e-4)
      if one.confidence is not None:
        assert one.confidence == pytest.approx(other.confidence, rel=1e-3)
      assert (one.predicted, one.is_right) == (other.predicted, other.is_right)


def test_of_classes(classifier, mrpc, read):
  out = mrpc["output_dir"]
  classifier.run_well(**mrpc, seeds="3,4", average_weights=False, report=True)
  assert [each.get("noreport") for each in classifier.started] == ["true"] * 3
  assert not list(out.glob("*/report.html"))
  page = (out / "report.html").read_text(encoding="utf-8")
  check_alone(page)
  found = data_of(page)["examples"]
  assert sum(count for _, count in found["counts"]) == found["count"] == found["total"]
  check_answers(read(out), out)
  # Other data are noticed by the ensemble's score.
  dev = mrpc["data_dir"] / "dev.tsv"
  head, *lines = dev.read_text().splitlines()
  dev.write_text("\n".join([head, *(f"0{line[1:]}" for line in lines)]) + "\n")
  assert "the data are not those" in read(out).missing[0]
  dev.write_text("\n".join([head, *lines[1:]]) + "\n")
  assert "the data are not those" in read(out).missing[0]
  dev.unlink()
  assert read(out).missing[0].startswith("There are no examples: ")


@pytest.mark.parametrize("name", ["ner", "swag"])
def test_of_words_and_choices(runs_of, read, request, name):
  flags = request.getfixturevalue(name) | {"do_predict": False}
  runs_of(f"run_{name}").run_well(**flags, seeds="3,4", average_weights=False)
  assert not (flags["output_dir"] / "report.html").exists(), "a test asks for it"
  check_answers(read(flags["output_dir"]), flags["output_dir"])


def test_of_questions_whose_outputs_are_not_saved(runs_of, squad, read):
  runs_of("run_squad").run_well(**squad, seeds="3,4", average_weights=False)
  runs = read(squad["output_dir"])
  assert runs.answers is None
  assert "have saved no outputs" in runs.missing[0]
