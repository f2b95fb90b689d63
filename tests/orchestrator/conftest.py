"""Makes the scripted investigator importable for the tests of the protocol."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Power cuts are not tested here (kills are, in processes of their own), and fsync is most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small training project with a fault at train.py:4."""
    from scripted import make_workspace

    return make_workspace(tmp_path / "project")
