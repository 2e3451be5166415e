"""Every task and every family as ONNX, on onnxruntime and on OpenVINO.

Alone: python -m pytest -m ci tests/exporting/onnx/all_models_test.py (a minute; TensorFlow)
"""

import itertools

import pytest

from bert.exporting import token_graph
from bert.model.answer_heads import AnswerHead
from bert.model.span_head import SpanHead
from bert.tasks import kinds
from tests.kit import own_tasks
from tests.kit.onnx_models import FACTS, FAMILIES, check, check_openvino, config_of, fill

TASKS = [kind.name for kind in kinds.registered().values()]
BEAMS = {
  name: SpanHead(AnswerHead(name, num_starts=3, num_ends=2)) for name in ("electra", "albert")
}
OWN = {"stars": {"head": {}}, "token_scores": {"head": {}}}


@pytest.mark.ci
# Each task once, each family at least once.
@pytest.mark.parametrize(
  ("task", "family"), zip([*TASKS, *BEAMS], itertools.cycle(FAMILIES), strict=False)
)
def test_task_of_a_family(family, task, tmp_path):
  head = BEAMS.get(task) or kinds.find(task).head_class().of_run(FACTS, {"pad_to_longest": True})
  graph = fill(token_graph.of_task(config_of(family), head))
  check(graph, atol=1e-4)
  check_openvino(graph, tmp_path, atol=1e-4)


@pytest.mark.ci
@pytest.mark.parametrize("family", FAMILIES)
def test_encoder_of_a_family(family, tmp_path):
  graph = fill(token_graph.of_encoder(config_of(family)))
  check(graph, atol=1e-4)
  check_openvino(graph, tmp_path, atol=1e-4)


@pytest.mark.ci
@pytest.mark.parametrize("name", OWN)
def test_task_of_a_user(name, tmp_path):
  with own_tasks.loaded(name):
    head = kinds.find(name).head_class().of_run(OWN[name], {})
    graph = fill(token_graph.of_task(config_of("albert"), head))
    check(graph, atol=1e-4)
    check_openvino(graph, tmp_path, atol=1e-4)
