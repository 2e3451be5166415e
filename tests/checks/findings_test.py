"""Tests of bert/checks/findings.py."""

from bert.checks import findings as examination
from bert.checks.findings import RunUnderCheck


def test_a_check_that_fails_spoils_no_other():
  def check_nothing(subject):
    raise RuntimeError("This is a bug.")
    yield subject

  def check_all(subject):
    yield examination.ok("All is well.")

  findings = list(examination.examine([check_nothing, check_all], RunUnderCheck()))
  assert [finding.level for finding in findings] == ["error", "ok"]
  assert "check_nothing ended in RuntimeError: This is a bug." in findings[0].what
