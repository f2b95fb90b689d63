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


@pytest.fixture
def sure_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures under which one sign settles a cause: for tests of what follows from a diagnosis."""
    from traindx_tools.catalog import catalog, precision

    bounds = {"cause": 0.99, "sign": 0.97, "companion": 0.3, "hint": 0.1}
    table = precision.Precision({}, {}, {r: precision.Measured(100, 90, b) for r, b in bounds.items()},
                                {"refutes": 3.0, "contradicts": 1.5, "unusual": 0.5})
    monkeypatch.setattr(catalog, "load_precision", lambda: table)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """No CI without bubblewrap may look as if its tests had passed."""
    from bubblewrap_here import not_run

    said = not_run(terminalreporter.stats.get("skipped", []))
    if said:
        terminalreporter.write_line(said, yellow=True)
