"""Makes the generators of data sets importable."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data import examination

sys.path.insert(0, str(Path(__file__).parent / "support"))


@pytest.fixture
def seen_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType, Path], list[Finding]]:
    """What one observation alone says of a folder: the others take time."""

    def seen(rule: ModuleType, folder: Path) -> list[Finding]:
        monkeypatch.setattr(examination, "rules_in", lambda _: [rule])
        report = examination.examine([folder])
        assert not report.notes
        return list(report.findings)

    return seen
