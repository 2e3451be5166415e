"""Several devices and workers. Alone: python -m pytest tests/training/distribution_test.py

One job of two processes on this machine trains, is stopped, and loses a worker; a second one goes
on where it ended. What they left is compared with one process by the tests below.
"""

import json
import re
import signal
import types

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, reading
from bert.scripts import command_line
from bert.training import distribution
from tests.kit import toy_training, two_workers
from tests.kit.event_files import scalars_in
from tests.kit.script_runs import assert_same_tensors, assert_same_values
from tests.kit.two_workers import STEPS
from tools import several_devices
from tools.several_devices import last_values

# ---------------------------------------------------------------------------------------------
# Two processes.


@pytest.fixture(scope="module")
def job(tmp_path_factory):
  """What two workers left in a folder, before and after the restart."""
  folder = tmp_path_factory.mktemp("job")
  two_workers.write_records(folder)
  for name in two_workers.SCRIPTS:
    several_devices.write_data(name, folder)
  ends = several_devices.run_job("tests.kit.two_workers", ["all", folder], folder)
  killed_at = max((s for s, _ in finding.list_checkpoints(str(folder / "killed"))), default=None)
  restarted = several_devices.run_job("tests.kit.two_workers", ["resume", folder], folder)
  logs = "\n".join(log for _, log in ends + restarted)
  assert (folder / "all-1.json").exists(), logs[-5000:]
  seen = [json.loads((folder / f"all-{i}.json").read_text()) for i in range(2)]
  return types.SimpleNamespace(
    folder=folder, ends=ends, restarted=restarted, killed_at=killed_at, seen=seen
  )


@pytest.fixture(scope="module")
def alone(tmp_path_factory, job):
  """The same training in one process on one device."""
  model = toy_training.make(tmp_path_factory.mktemp("alone"), save_summary_steps=1)
  return model.train(two_workers.input_fn(job.folder, is_training=True), STEPS)


@pytest.fixture(scope="module")
def scripts_alone(tmp_path_factory, job):
  """The folder with what the scripts leave that run in one process on one device."""
  folder = tmp_path_factory.mktemp("scripts")
  for name in two_workers.SCRIPTS:
    several_devices.run_on_one_device(name, folder, reads_from=job.folder)
  return folder


@pytest.mark.ci
def test_two_workers_train_as_one(job, alone):
  losses = [
    [values["loss"] for _, values in sorted(scalars_in(folder).items())]
    for folder in (job.folder / "straight", alone.config.model_dir)
  ]
  assert len(losses[0]) == STEPS
  np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
  two, one = last_values(job.folder / "straight"), last_values(alone.config.model_dir)
  assert two.keys() == one.keys()
  for name in one:
    np.testing.assert_allclose(two[name], one[name], rtol=1e-5, atol=1e-6, err_msg=name)
  state = reading.read_state(finding.latest(str(job.folder / "straight")))
  assert state["run"]["examples"] == 4 * STEPS


@pytest.mark.ci
def test_two_workers_evaluate_and_predict_as_one(job, alone):
  results = alone.evaluate(two_workers.input_fn(job.folder, is_training=False))
  predictions = list(alone.predict(two_workers.input_fn(job.folder, is_training=False)))
  for seen in job.seen:  # Each worker has all of it.
    for name, value in seen["results"].items():
      assert value == pytest.approx(results[name], rel=1e-5)
    np.testing.assert_allclose(seen["scores"], [p["score"] for p in predictions], rtol=1e-5)
    assert seen["lengths"] == [np.count_nonzero(p["ids"]) for p in predictions]


@pytest.mark.ci
def test_a_signal_to_one_worker_stops_all_after_the_same_step(job):
  for seen in job.seen:
    assert seen["stopped with"] == 143
    assert seen["stopped at"] == "3"
  assert_same_values(last_values(job.folder / "straight"), last_values(job.folder / "stopped"))


@pytest.mark.ci
def test_a_killed_worker_ends_the_others_with_a_clear_message(job):
  (chief_code, chief_log), (killed_code, _) = job.ends
  assert killed_code == -signal.SIGKILL
  assert chief_code == distribution.EXIT_CODE_WORKER_LOST == 75, chief_log[-3000:]
  errors = [line for line in chief_log.splitlines() if line.startswith("ERROR: ")]
  assert len(errors) == 1
  assert "Another worker of this job ended" in errors[0]
  assert "start all workers again with the same command" in errors[0]
  assert "Traceback" not in chief_log
  assert job.killed_at == 4


@pytest.mark.ci
def test_a_restart_of_all_resumes_exactly(job):
  assert [code for code, _ in job.restarted] == [0, 0], job.restarted[0][1][-3000:]
  straight, resumed = (finding.latest(str(job.folder / x)) for x in ("straight", "killed"))
  assert resumed.endswith(f"-{STEPS}")
  assert_same_tensors(straight, resumed)
  assert reading.read_state(straight) == reading.read_state(resumed)


@pytest.mark.ci
def test_workers_talk(job):
  for seen in job.seen:
    assert seen["any"] == [False, True, True]
    assert seen["bytes"] == [5, 10]
    assert seen["rows"] == [["a", []], ["aa", [0]], ["aa", [0]]]
    assert seen["written"] == len("once")
    assert "differ in index: 0 on worker 0, 1 on worker 1" in seen["differ"]
  assert (job.folder / "written-by-0").read_text() == "once"
  assert (job.folder / "written-by-1").read_text() == ""


@pytest.mark.ci
@pytest.mark.parametrize("name", two_workers.SCRIPTS)
def test_a_script_of_two_workers_trains_as_one(job, scripts_alone, name):
  assert [seen[name] for seen in job.seen] == [None, None]
  several_devices.assert_same_training(job.folder / name, scripts_alone / name)


@pytest.mark.ci
@pytest.mark.parametrize("name", two_workers.SCRIPTS)
def test_a_script_of_two_workers_writes_the_files_of_one(job, scripts_alone, name):
  several_devices.assert_same_files(job.folder / name, scripts_alone / name)


# ---------------------------------------------------------------------------------------------
# One process.


def test_one_process_is_the_chief_and_waits_for_nobody():
  assert distribution.is_chief()
  assert distribution.worker_count() == 1
  assert distribution.on_chief(max, 1, 2) == 2
  assert [distribution.any_worker(flag) for flag in (False, True)] == [False, True]
  assert distribution.gather_bytes(b"x") == [b"x"]
  distribution.check_equal({"a": 1})
  row = {"a": np.array([b"x"], object)}
  assert distribution.gather([row]) == [row]


def test_a_script_that_lost_a_worker_exits_with_its_code(capsys):
  def lose_a_worker(argv):
    raise distribution.WorkerLostError("Another worker of this job ended.")

  with pytest.raises(SystemExit) as left:
    command_line.run(lose_a_worker, lambda: None, ["a_script.py"], doc="")
  assert left.value.code == 75
  assert capsys.readouterr().err.startswith("ERROR: Another worker of this job ended.\n")


def test_workers_with_other_flags_are_refused(monkeypatch):
  told = []

  def gathered(data):  # of two workers, the first with other data
    told.append(data)
    return [json.dumps({"seed": 1, "batch size": 32}).encode(), data]

  monkeypatch.setattr(distribution, "gather_bytes", gathered)
  distribution.check_equal({"seed": 1, "batch size": 32})
  with pytest.raises(ValueError, match="differ in batch size: 32 on worker 0, 16 on worker 1"):
    distribution.check_equal({"seed": 1, "batch size": 16})
  assert len(told) == 2


def test_a_dead_peer_has_an_error_of_its_own(monkeypatch):
  cluster = distribution.Cluster(("a:1", "b:1"), index=1)
  monkeypatch.setattr(distribution, "_job", distribution._Job(cluster, strategy=object()))
  said = r"worker 1 of 2 cannot continue alone.*start all workers again"
  for error in (
    tf.errors.UnavailableError(None, None, "Connection reset by peer"),
    RuntimeError("Collective ops is aborted by: the coordination service"),
  ):
    with pytest.raises(distribution.WorkerLostError, match=said) as caught:
      with distribution.clear_errors():
        raise error
    assert caught.value.exit_code == 75
  with pytest.raises(tf.errors.InvalidArgumentError), distribution.clear_errors():
    raise tf.errors.InvalidArgumentError(None, None, "of the model")


@pytest.mark.parametrize(
  ("text", "problem"),
  [
    (None, "it is not set"),
    ("{", "Expecting property name"),
    ("[]", "list indices"),
    ('{"cluster": {"worker": ["a:1"]}}', "'task' is missing"),
    ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}', "'index' is missing"),
    (
      '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
      "the cluster has no worker 1",
    ),
    (
      '{"cluster": {"worker": ["a:1"]}, "task": {"type": "chief", "index": 0}}',
      "the cluster has no chief 0",
    ),
    (
      '{"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}}',
      "jobs are chief and worker, not ps",
    ),
  ],
)
def test_a_wrong_tf_config_is_explained(text, problem):
  environment = {} if text is None else {"TF_CONFIG": text}
  with pytest.raises(ValueError, match=r'TF_CONFIG.*"cluster": {"worker"') as caught:
    distribution.cluster_from_environment(environment)
  assert problem in str(caught.value)


def test_unknown_and_single_strategies(monkeypatch, caplog):
  with pytest.raises(ValueError, match=r"'horovod'.* one_device, mirrored, multi_worker, tpu"):
    distribution.create_strategy("horovod")
  monkeypatch.setenv("TF_CONFIG", "{}")
  assert distribution.create_strategy() is None
  assert "TF_CONFIG is set, but the distribution strategy is one_device" in caplog.text


def test_mirrored_takes_all_gpus(monkeypatch):
  gpus = [types.SimpleNamespace(name=f"/device:GPU:{i}") for i in range(4)]
  cpus = [types.SimpleNamespace(name="/device:CPU:0")]
  devices = {"GPU": gpus, "CPU": cpus}
  made, growing = [], []
  monkeypatch.setattr(tf.config, "list_logical_devices", devices.get)
  monkeypatch.setattr(tf.config, "list_physical_devices", devices.get)
  monkeypatch.setattr(
    tf.config.experimental, "set_memory_growth", lambda gpu, on: growing.append((gpu, on))
  )
  monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda names: made.append(names) or "all")
  monkeypatch.setattr(distribution, "_mirrored", {})
  for _ in range(2):  # The second run of a process keeps the strategy of the first.
    assert distribution.create_strategy("mirrored") == "all"
  assert made == [[gpu.name for gpu in gpus]]
  assert growing == [(gpu, True) for gpu in gpus] * 2
  devices["GPU"] = []
  distribution.create_strategy("mirrored")
  assert made[-1] == ["/device:CPU:0"]


@pytest.mark.parametrize(
  ("error", "name", "said"),
  [
    (ValueError("Please provide a TPU Name."), None, "no TPU was found here (Please provide"),
    (OSError("Name or service not known"), "pod", "The TPU pod cannot be used (Name or service"),
    (tf.errors.NotFoundError(None, None, "No kernel used by {{node x}}"), "a", "(No kernel). Name"),
  ],
)
def test_a_tpu_that_cannot_be_used_is_one_line(monkeypatch, error, name, said):
  def resolver(**_):
    raise error

  monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", resolver)
  with pytest.raises(ValueError, match=re.escape(said)) as raised:
    distribution.create_strategy("tpu", name)
  assert "--tpu_name, or leave out --use_tpu" in str(raised.value)
  assert "{{" not in str(raised.value)


def test_a_tpu_is_found_connected_and_initialised_in_this_order(monkeypatch):
  calls = []

  def record(name):
    return lambda *args, **kwargs: calls.append((name, args, kwargs)) or name

  resolvers, tpu = tf.distribute.cluster_resolver, tf.tpu.experimental
  monkeypatch.setattr(resolvers, "TPUClusterResolver", record("resolver"))
  monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", record("connect"))
  monkeypatch.setattr(tpu, "initialize_tpu_system", record("initialise"))
  monkeypatch.setattr(tf.distribute, "TPUStrategy", record("strategy"))
  assert distribution.create_strategy("tpu", "name", "zone", "project") == "strategy"
  assert calls == [
    ("resolver", (), {"tpu": "name", "zone": "zone", "project": "project"}),
    ("connect", ("resolver",), {}),
    ("initialise", ("resolver",), {}),
    ("strategy", ("resolver",), {}),
  ]


# ---------------------------------------------------------------------------------------------
# Data.


class HostsWithReplicas:
  """A strategy of several hosts, as far as `distribute_dataset` looks; keeps what each would read.

  It stands for a TPU of several hosts, or for workers with several GPUs.
  """

  def __init__(self, hosts, replicas):
    self.num_replicas_in_sync = hosts * replicas
    self.extended = types.SimpleNamespace(num_hosts=hosts)

  def distribute_datasets_from_function(self, dataset_fn):
    hosts = self.extended.num_hosts
    return [
      dataset_fn(
        tf.distribute.InputContext(
          num_input_pipelines=hosts,
          input_pipeline_id=host,
          num_replicas_in_sync=self.num_replicas_in_sync,
        )
      )
      for host in range(hosts)
    ]


@pytest.mark.parametrize(("hosts", "replicas"), [(2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("as_tuple", [False, True])
def test_hosts_read_parts_of_the_same_batches(hosts, replicas, as_tuple):
  numbers = tf.data.Dataset.range(30).batch(12)  # The last batch is a short one.
  dataset = numbers.map(lambda n: ({"n": n}, n * 2) if as_tuple else {"n": n})
  dealt = distribution.distribute_dataset(HostsWithReplicas(hosts, replicas), dataset)
  streams = [list(host.as_numpy_iterator()) for host in dealt]
  for step, batch in enumerate(numbers.as_numpy_iterator()):
    parts = [p for s in streams for p in s[step * replicas : (step + 1) * replicas]]
    assert all(len(stream) == 3 * replicas for stream in streams)
    if as_tuple:
      np.testing.assert_array_equal(np.concatenate([label for _, label in parts]), batch * 2)
      parts = [features for features, _ in parts]
    np.testing.assert_array_equal(np.concatenate([part["n"] for part in parts]), batch)
