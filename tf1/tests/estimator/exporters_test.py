"""When an exporter exports, and what it keeps; messages as TensorFlow 1.15.5 wrote them."""

import itertools

import pytest

from bert_tf1.estimator import BestExporter, Exporter, FinalExporter, LatestExporter
from bert_tf1.real import tf


class FakeEstimator:
  """Exports empty folders, named by a clock of its own."""

  def __init__(self, folder):
    self.model_dir = str(folder)
    self.calls = []
    self._seconds = itertools.count(1_700_000_000)

  def export_saved_model(self, export_dir_base, serving_input_receiver_fn, **arguments):
    self.calls.append((serving_input_receiver_fn, arguments))
    path = f"{export_dir_base}/{next(self._seconds)}"
    tf.gfile.MakeDirs(path)
    return path.encode()


@pytest.fixture
def estimator(tmp_path):
  return FakeEstimator(tmp_path)


def run(exporter, estimator, loss=0.5, is_final=False):
  path = f"{estimator.model_dir}/export/{exporter.name}"
  return exporter.export(estimator, path, "model.ckpt-5", {"loss": loss}, is_final)


def kept(exporter, estimator) -> list[str]:
  return sorted(tf.gfile.ListDirectory(f"{estimator.model_dir}/export/{exporter.name}"))


def test_the_final_exporter_waits_for_the_end(estimator):
  exporter = FinalExporter("final", "receiver", {"a": "b"}, as_text=True)
  assert run(exporter, estimator) is None
  assert run(exporter, estimator, is_final=True).endswith(b"/export/final/1700000000")
  arguments = {"assets_extra": {"a": "b"}, "as_text": True, "checkpoint_path": "model.ckpt-5"}
  assert estimator.calls == [("receiver", arguments)]


def test_the_latest_exporter_keeps_the_newest(estimator):
  exporter = LatestExporter("latest", "receiver", exports_to_keep=2)
  path = f"{estimator.model_dir}/export/latest"
  for name in ("other", "12345", "temp-1700000000"):  # Not exports: never removed.
    tf.gfile.MakeDirs(f"{path}/{name}")
  for _ in range(4):
    run(exporter, estimator)
  assert kept(exporter, estimator) == [
    *("12345", "1700000002", "1700000003"),
    *("other", "temp-1700000000"),
  ]


def test_all_are_kept_if_so_asked(estimator):
  exporter = LatestExporter("latest", "receiver", exports_to_keep=None)
  for _ in range(7):
    run(exporter, estimator)
  assert len(kept(exporter, estimator)) == 7


def test_the_best_exporter_exports_what_is_better(estimator):
  exporter = BestExporter(serving_input_receiver_fn="receiver", exports_to_keep=1)
  assert exporter.name == "best_exporter"
  exported = [run(exporter, estimator, loss) is not None for loss in (0.5, 0.7, 0.4, 0.4, 0.3)]
  assert exported == [True, False, True, False, True]
  assert kept(exporter, estimator) == ["1700000002"]


def write_evaluations(folder, values: list[dict]) -> None:
  with tf.Graph().as_default(), tf.summary.FileWriter(folder) as writer:
    for step, value in enumerate(values):
      tags = [tf.Summary.Value(tag=tag, simple_value=x) for tag, x in value.items()]
      writer.add_summary(tf.Summary(value=tags), step)


def test_the_best_exporter_knows_the_evaluations_of_an_earlier_run(estimator):
  write_evaluations(f"{estimator.model_dir}/eval", [{"loss": 0.6}, {"loss": 0.25}, {"loss": 0.5}])
  exporter = BestExporter(serving_input_receiver_fn="receiver")
  assert run(exporter, estimator, 0.3) is None
  assert run(exporter, estimator, 0.125) is not None
  assert run(exporter, estimator, 0.2) is None
  anew = BestExporter(serving_input_receiver_fn="receiver", event_file_pattern=None)
  assert run(anew, estimator, 0.3) is not None


def test_better_is_what_the_caller_says(estimator):
  def more_accurate(best_eval_result, current_eval_result):
    return current_eval_result["accuracy"] > best_eval_result["accuracy"]

  values = [{"accuracy": 0.5, "loss": 1.0}, {"accuracy": 0.75, "loss": 3.0}]
  write_evaluations(f"{estimator.model_dir}/eval_dev", values)
  pattern = "eval_dev/*.tfevents.*"
  exporter = BestExporter("best", "receiver", pattern, more_accurate)
  for accuracy, exports in ((0.6, False), (0.9, True), (0.8, False)):
    result = {"accuracy": accuracy, "loss": 0.0}
    path = f"{estimator.model_dir}/export/best"
    assert (exporter.export(estimator, path, "c", result, False) is not None) == exports


# As 1.15.5 said it.
@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: BestExporter(compare_fn=None), "`compare_fn` must not be None."),
    (lambda: BestExporter(compare_fn=lambda a: 1), "must include best_eval_result argument."),
    (
      lambda: BestExporter(compare_fn=lambda best_eval_result: 1),
      "must include current_eval_result argument.",
    ),
    (
      lambda: BestExporter(compare_fn=lambda best_eval_result, current_eval_result, c: 1),
      r"has following not expected args: \['c'\]",
    ),
    (lambda: BestExporter(exports_to_keep=0), "must be a positive number. Got 0"),
    (lambda: LatestExporter("a", None, exports_to_keep=-1), "must be a positive number. Got -1"),
  ],
)
def test_wrong_arguments_are_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_results_without_a_loss_are_refused(estimator):
  exporter = BestExporter(serving_input_receiver_fn="receiver")
  run(exporter, estimator)
  with pytest.raises(ValueError, match=r"^current_eval_result cannot be empty or no loss is found"):
    exporter.export(estimator, estimator.model_dir, "c", {"accuracy": 1.0}, False)


def test_an_exporter_of_ones_own_has_no_name_until_it_gives_one():
  assert Exporter().name is None
