"""An old Keras is refused at import, by its version."""

import pytest

from bert.keras3 import keras_version
from tests.kit.paths import ROOT


@pytest.mark.parametrize("version", ["2.15.0", "3.3.3", "3.6.0", "3.9.2"])
def test_old_versions_are_refused(version):
  message = f"needs Keras 3.10 or later, but {version} is installed: pip install --upgrade keras"
  with pytest.raises(ImportError, match=message):
    keras_version.check(version)


def test_newer_versions_and_the_one_in_the_list_of_packages():
  for version in ("3.10.0", "3.15.1", "4.0.0rc1"):
    keras_version.check(version)
  oldest = ".".join(map(str, keras_version.OLDEST))
  assert f'"keras>={oldest}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
