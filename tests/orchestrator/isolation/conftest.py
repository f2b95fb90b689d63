"""Makes the planted differences importable, and runs happen in this process where a test asks for it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from in_process import InProcess


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """The runs of `traindx.isolation` happen here."""
    made = InProcess(tmp_path / "runs")

    @contextlib.contextmanager
    def instead(workspace: Path) -> Iterator[InProcess]:
        yield made

    monkeypatch.setattr("traindx.isolation.search.place_for", instead)
    monkeypatch.setattr("traindx.isolation.equal.place_for", instead)
    return made
