"""What all tests have in common: how hypothesis runs, and where the real tables are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the first example pays for numba's compilation. On a build server the examples are the
# same in every run, so that a red build is red again on the next try.
settings.register_profile("sfumato", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("sfumato"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "sfumato")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real tables, or the test is skipped."""
    named = os.environ.get("SFUMATO_DATA")
    if not named:
        pytest.skip("needs real tables: set SFUMATO_DATA to their folder")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail("SFUMATO_DATA is set, but there is no such folder")
    return folder
