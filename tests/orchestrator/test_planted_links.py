"""Links that a command left below scratch/debug: whoever of us writes there, no file of the project changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from traindx.commands import diagnose
from traindx.durable import StateNotWritable
from traindx.experiments import _made as experiments_folder
from traindx.gate_hook import deciding
from traindx.gate_hook.state import Approval, Option, Strike
from traindx.isolation.kept import NAME, Kept
from traindx.mcp_paths import Reach
from traindx.mcp_tools import call
from traindx.model import Approach
from traindx.session_folder import new_folder
from traindx.strikes import Ledger
from traindx.strikes import Strike as Counted
from traindx_tools.errors import TraindxError
from traindx_tools.experiments.isolating.oracle import Trial
from traindx_tools.experiments.isolating.outcomes import Shown
from traindx_tools.experiments.journal import Journal
from traindx_tools.experiments.kept import Kept as KeptRuns
from traindx_tools.experiments.trace import Trace

LOG = "".join(f"step {i} loss {2.0 - i / 100:.3f}\n" for i in range(40))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path.resolve() / "work"
    (folder / "scratch" / "debug").mkdir(parents=True)
    (folder / "train.py").write_text("x = 1\n")
    (folder / "log.txt").write_text(LOG)
    monkeypatch.chdir(folder)
    return folder


def planted(work: Path, name: str, to: str = "train.py") -> Path:
    """A link below scratch/debug that leads to the project."""
    path = work / "scratch" / "debug" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(work / to)
    return path


def makes_experiments(work: Path) -> None:
    experiments_folder(work / "scratch" / "debug" / "experiments")


def keeps_outcomes(work: Path) -> None:
    Kept.of(work / "scratch" / "debug" / "isolate")


def writes_a_diagnosis(work: Path) -> None:
    from traindx.diagnose import diagnose as look

    diagnose._write(look([work / "log.txt"]), None, as_json=False)


def draws(work: Path) -> None:
    call("plot_run", {"paths": ["log.txt"], "name": "x"}, Reach.of(work), lambda said: None)


def opens_a_session(work: Path) -> None:
    new_folder(work, {})


def strikes(work: Path) -> None:
    option = Option("A", (("train.py", 1, 1),))
    one = Strike("s/1", "cause", option.places, "learned")
    deciding._into_ledger(str(work), one, Approval("d", "cause", option, "me", {}, {}))


@pytest.mark.parametrize("acts", [makes_experiments, keeps_outcomes, writes_a_diagnosis, draws, strikes])
def test_a_gitignore_that_leads_nowhere_makes_no_file(work: Path, acts: Callable[[Path], None]) -> None:
    planted(work, ".gitignore", "made_by_us")
    acts(work)
    assert not (work / "made_by_us").exists()


def test_the_hooks_ledger_follows_no_link(work: Path) -> None:
    planted(work, "strikes.jsonl")
    strikes(work)
    assert (work / "train.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("name", ["strikes.jsonl", "strikes.jsonl.lock"])
def test_the_ledger_of_the_sessions_follows_none(work: Path, name: str) -> None:
    (work / "empty.py").write_text("")
    planted(work, name, "empty.py")
    strike = Counted(key="1", approach=Approach(failure_mode="m", component="c"), summary="again", places=())
    with pytest.raises(StateNotWritable, match="leads to"):
        Ledger(work).count(strike)
    assert (work / "empty.py").read_text() == ""


def test_outcomes_of_a_search_follow_none(work: Path) -> None:
    planted(work, f"isolate/{NAME}")
    with pytest.raises(TraindxError, match="leads to"):
        Kept.of(work / "scratch" / "debug" / "isolate").add("k", Trial(Shown.UNRESOLVED, "", 1.0), [])
    assert (work / "train.py").read_text() == "x = 1\n"


def test_the_journal_of_experiments_follows_none(work: Path) -> None:
    planted(work, "experiments/journal.jsonl")
    with pytest.raises(OSError, match="leads to"):
        Journal(work / "scratch" / "debug" / "experiments").add("experiment", id="X001")
    assert (work / "train.py").read_text() == "x = 1\n"


def test_kept_runs_remove_nothing_through_a_link(work: Path, tmp_path: Path) -> None:
    (work / "src" / "key").mkdir(parents=True)
    (work / "src" / "key" / "model.py").write_text("x = 1\n")
    planted(work, "experiments/runs", "src")
    kept = KeptRuns(work / "scratch" / "debug" / "experiments" / "runs")
    with pytest.raises(OSError, match="leads to"):
        kept.put("key", Trace(tmp_path / "run", {}, ended=True))
    assert (work / "src" / "key" / "model.py").exists()


def test_a_scratch_that_leads_into_the_project_gets_no_diagnosis_and_no_session(
        work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "scratch" / "debug").rmdir()
    (work / "src").mkdir()
    (work / "scratch" / "debug").symlink_to("../src")
    writes_a_diagnosis(work)
    assert "no files were written" in capsys.readouterr().err
    with pytest.raises(StateNotWritable, match="leads to"):
        opens_a_session(work)
    with pytest.raises(TraindxError, match="leads to"):
        makes_experiments(work)
    assert list((work / "src").iterdir()) == []
