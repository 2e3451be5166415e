"""Real models behind the queue, in processes of their own: the answers are those of `Predictor`.

Alone: python -m pytest tests/serving/real_models_test.py (a minute)
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from bert.io import installation
from bert.predicting.predictor import Predictor
from tests.kit import own_tasks

pytestmark = pytest.mark.ci


_FRONT = """
import asyncio, sys
from bert.serving.served_models import ServedModels, ServingOptions
from bert.tasks import kinds

async def main():
  models = ServedModels({"stars": sys.argv[2]}, ServingOptions(reload=False))
  await models.start()
  found = await models.find().compute("answers", sys.argv[3:])
  print([round(each["stars"], 4) for each in found.results])
  await models.stop()
  print("tensorflow" in sys.modules)

if __name__ == "__main__":
  kinds.load_plugins(sys.argv[1])
  asyncio.run(main())
"""


@pytest.mark.slow
def test_a_task_of_ones_own_is_loaded_by_all_processes(tmp_path):
  with own_tasks.loaded("stars"):
    flags = own_tasks.write(tmp_path, "stars") | {"num_train_epochs": 1.0}
    own_tasks.script("stars").run_well(**flags, output_dir=tmp_path / "out", do_train=True)
    expected = Predictor.load(str(tmp_path / "out"))(own_tasks.ITEMS["stars"])
  script = tmp_path / "front.py"
  script.write_text(_FRONT)
  arguments = [str(own_tasks.FILES["stars"]), str(tmp_path / "out"), *own_tasks.ITEMS["stars"]]
  run = subprocess.run(
    [sys.executable, str(script), *arguments],
    stdout=subprocess.PIPE,
    env=installation.importable_environment(),
    text=True,
    timeout=200,
    check=True,
  )
  found, has_tensorflow = run.stdout.splitlines()
  np.testing.assert_allclose(json.loads(found), [each["stars"] for each in expected], atol=2e-4)
  assert has_tensorflow == "False"  # the front computes nothing
