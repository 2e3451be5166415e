"""The model card shows the run's own text; without one a synthetic item of the task."""

import pytest

from bert.exporting import model_card
from bert.exporting.model_folder import Described
from bert.model.configuration import BertConfig
from bert.tasks import kinds

OWN = {"text_a": 'It\'s "late" à Paris.'}


@pytest.mark.parametrize(
  ("name", "settings", "items"),
  [
    ("sentences", {"example": OWN}, repr(OWN)),
    ("sentences", {}, "'text_b': 'No aircraft could land.'"),
    ("squad", {}, "'question': 'Who was its first programmer?'"),
    ("swag", {}, "'choices': ["),
    ("", {}, "predictor(['It rains.'])"),
  ],
)
def test_usage(tmp_path, name, settings, items):
  facts = dict(kinds.find(name).facts) if name else {}
  if name == "sentences":
    facts = {"problem_type": "classification", "labels": ["0", "1"]}
  model = Described(BertConfig(100), "vocab.txt", True, 128, facts, settings)
  (tmp_path / "onnx").mkdir()
  (tmp_path / "onnx" / "model.onnx").touch()
  model_card.write(str(tmp_path), model, "bert")
  card = (tmp_path / "README.md").read_text(encoding="utf-8")
  code = card.split("```python\n")[1].split("```")[0]
  compile(code, "card", "exec")
  assert items in code
  if settings:
    assert f".encode({OWN['text_a']!r})" in card
    assert 'await run("It\'s \\"late\\" à Paris.")' in card
