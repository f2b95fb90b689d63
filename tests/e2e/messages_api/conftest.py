"""Conversations of the `anthropic` package with a scripted Messages API: no network, no CLI, a fake key."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from traindx.settings import Settings

SUPPORT = Path(__file__).parents[1] / "claude" / "support"
sys.path.insert(0, str(SUPPORT))
sys.path.insert(0, str(Path(__file__).parents[2] / "orchestrator" / "support"))

EXAMPLES = Path(__file__).parents[3] / "examples"
INSTALLED = importlib.util.find_spec("anthropic") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of this folder needs the package."""
    here = Path(__file__).parent
    for item in () if INSTALLED else items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="anthropic is not installed: pip install 'traindx[api]'"))


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no proxy and no setting of whoever runs the tests reaches the client."""
    kept = {"PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "OMP_NUM_THREADS"}
    for name in list(os.environ):
        if name not in kept and not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A copy of a run that really failed: a log of zero in numpy."""
    return Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "work"))


@pytest.fixture
def settings() -> Callable[..., Settings]:
    """Settings for a session against the API at this address."""

    def made(url: str, **changes: object) -> Settings:
        environment = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "fake-key"}
        values = {"backend": "api", "model": "claude-test-model", "retries": 0, "seconds_each": 60.0,
                  "environment": environment, **changes}
        return Settings(**values)  # type: ignore[arg-type]

    return made
