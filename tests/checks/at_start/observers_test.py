"""Observers of a run's start: a module in the folder is one."""

from bert.checks import at_start


def test_each_module_in_the_folder_looks_on(tmp_path, monkeypatch, caplog):
  (tmp_path / "a_guest.py").write_text(
    "from absl import logging\n"
    "def model_is_read(values, config, vocab, checkpoint):\n"
    "  logging.warning('%s %s %s %s', values['seed'], config, vocab, checkpoint)\n"
  )
  monkeypatch.setattr(at_start, "__path__", [str(tmp_path)])
  at_start.model_is_read({"seed": 7}, "sizes", {"a": 0}, "weights")
  assert [record.getMessage() for record in caplog.records] == ["7 sizes {'a': 0} weights"]
