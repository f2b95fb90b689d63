"""What several tests of the auditor share."""

from __future__ import annotations

import pytest

from traindx_tools.code_audit import parallel


@pytest.fixture
def forking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are forked however small the sources are."""
    monkeypatch.setattr(parallel, "WORTH_SHARING", 0)
