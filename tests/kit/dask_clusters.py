"""A Dask cluster of two processes on this machine, whose workers a test may kill."""

import contextlib
import pathlib
from collections.abc import Iterator

import pytest

from tests.kit import dying_worker


@contextlib.contextmanager
def two_workers(folder: pathlib.Path) -> Iterator[str]:
  """Starts a scheduler and two workers; yields Beam's arguments for them.

  `folder/died` and `folder/written` are for `dying_worker`, whose steps run in the workers.
  """
  distributed = pytest.importorskip("distributed")
  with pytest.MonkeyPatch.context() as patch:  # workers inherit the environment
    patch.setenv(dying_worker.DIED, str(folder / "died"))
    patch.setenv(dying_worker.WRITTEN, str(folder / "written"))
    with distributed.LocalCluster(
      n_workers=2,
      threads_per_worker=1,
      processes=True,
      dashboard_address=None,
      local_directory=str(folder / "dask"),
    ) as cluster:
      yield (
        "--runner=apache_beam.runners.dask.dask_runner.DaskRunner "
        f"--dask_client_address={cluster.scheduler_address}"
      )
