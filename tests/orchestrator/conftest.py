"""Makes the scripted investigator importable for the tests of the protocol."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small training project with a fault at train.py:4."""
    from scripted import make_workspace

    return make_workspace(tmp_path / "project")
