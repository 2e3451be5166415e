"""A loss that is not finite stops every `run_*` script, and costs nothing but its last steps.

Alone: python -m pytest tests/system/divergence_test.py (the other scripts: -m slow)
"""

import numpy as np
import pytest

from bert.checkpoints import finding
from tests.kit.script_runs import Script, tensors
from tools import several_devices
from tools.several_devices import SCRIPTS

# One stands for all in continuous integration: all scripts share the loop.
_NAMES = [
  pytest.param(name, marks=pytest.mark.ci if name == "run_pretraining" else pytest.mark.slow)
  for name in SCRIPTS
]


@pytest.mark.parametrize("name", _NAMES)
def test_a_script_that_diverges_keeps_what_was_good(tmp_path, name):
  several_devices.write_data(name, tmp_path)
  flags = several_devices.flags_of(name, tmp_path)
  # So large a rate makes weights that are finite still, and a loss that is not.
  flags |= {"learning_rate": 1e35, "save_checkpoints_steps": 3}
  flags |= {"num_warmup_steps": 0} if name == "run_pretraining" else {"warmup_proportion": 0}
  message = Script(SCRIPTS[name]).error_of(**flags)
  assert message.startswith("ERROR: The loss of step 2 is nan. Nothing was saved after step 0")
  out = tmp_path / name
  assert f"Its batch is in {out}/diverged_batch-2.npz" in message
  with np.load(out / "diverged_batch-2.npz", allow_pickle=False) as batch:
    assert len(batch["input_ids"]) == flags["train_batch_size"]
  assert [step for step, _ in finding.list_checkpoints(str(out))] == [0]
  values = tensors(finding.latest(str(out)))
  assert all(np.isfinite(value).all() for value in values.values())
  # With a smaller rate the same command continues.
  flags |= {"learning_rate": 1e-4, "do_eval": False, "do_predict": False}
  if name == "run_pretraining":
    del flags["do_predict"]
  Script(SCRIPTS[name]).run_well(**flags)
