"""The offline investigator in whole sessions: from a broken run to a verified fix, and to honest ends."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from traindx.model import Decision, Diagnosis
from traindx.session import decide, read_result, resume_session_sync, run_debug_session_sync
from traindx.session_result import SessionResult

EXAMPLES = Path(__file__).parents[2] / "examples"
VERIFY = f"{sys.executable} train.py"


def approve(diagnosis: Diagnosis) -> Decision:
    return Decision(verdict="approve", diagnosis_digest=diagnosis.digest(), option="A")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "work"))


@pytest.mark.slow
def test_a_broken_run_ends_fixed_and_verified(workspace: Path) -> None:
    code = (workspace / "train.py").read_text()
    result = run_debug_session_sync("loss is nan", workspace, verify=VERIFY, approve=approve, allow_run=True)
    assert result.status == "fixed"
    assert (workspace / "train.py").read_text() != code
    verification = result.attempts[-1].verification
    assert verification is not None
    before = {row.name: (row.before, row.after) for row in verification.table}
    assert before["loss"][0] == "nan"
    assert float(before["loss"][1]) < 1.0
    assert {"root_cause_analysis.md", "retrospective.md"} <= set(result.documents)


@pytest.mark.slow
def test_without_an_approval_the_session_waits_on_disk_and_changes_nothing(workspace: Path) -> None:
    files = {p.name: p.read_bytes() for p in workspace.iterdir() if p.is_file()}
    waiting = run_debug_session_sync("loss is nan", workspace, verify=VERIFY, allow_run=True)
    assert waiting.status == "awaiting_approval"
    assert {p.name: p.read_bytes() for p in workspace.iterdir() if p.is_file()} == files
    assert waiting.diagnosis is not None
    decide(waiting.folder, approve(waiting.diagnosis))
    assert read_result(waiting.folder).decision is not None
    assert resume_session_sync(waiting.folder).status == "fixed"


def test_a_healthy_run_ends_healthy(tmp_path: Path) -> None:
    work = shutil.copytree(EXAMPLES / "healthy", tmp_path / "work")
    assert run_debug_session_sync("", work, approve=approve).status == "healthy"


def test_a_log_without_code_asks_for_the_code(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "numpy-lr" / "log.txt", tmp_path / "log.txt")
    result = run_debug_session_sync("loss is nan", tmp_path, approve=approve)
    assert result.status == "needs_more_data"
    assert result.needs is not None
    assert result.needs.next_checks or result.needs.artifacts


@pytest.mark.usefixtures("sure_figures")
def test_a_sure_cause_without_code_asks_for_the_code_and_tells_the_cause(tmp_path: Path) -> None:
    lines = [f"step {i} loss {2.3 * 10.0 ** i:.4e} grad_norm {3.0 * 30.0 ** i:.4e} lr 5.0" for i in range(12)]
    (tmp_path / "log.txt").write_text("\n".join([*lines, *(f"step {i} loss nan lr 5.0" for i in range(12, 20))]))
    result = run_debug_session_sync("it diverges", tmp_path, approve=approve)
    assert result.status == "needs_more_data"
    assert result.needs is not None
    assert "learning rate" in result.needs.reason
    assert any("training script" in a for a in result.needs.artifacts)


def failing(workspace: Path) -> SessionResult:
    return run_debug_session_sync("loss is nan", workspace, approve=approve, allow_run=True,
                                  verify=f"{sys.executable} train.py --steps 50 > /dev/null; exit 1")


@pytest.mark.slow
def test_a_fix_that_does_not_help_is_taken_back_and_not_proposed_again(workspace: Path) -> None:
    code = (workspace / "train.py").read_text()
    result = failing(workspace)
    assert result.status != "fixed"
    assert (workspace / "train.py").read_text() == code
    assert [a.reverted for a in result.attempts] == [True] * len(result.attempts)
    modes = [a.approach.failure_mode for a in result.attempts]
    assert len(modes) == len(set(modes)) >= 1


@pytest.mark.slow
def test_a_rejected_diagnosis_is_not_proposed_again(workspace: Path) -> None:
    waiting = run_debug_session_sync("loss is nan", workspace)
    assert waiting.diagnosis is not None
    no = Decision(verdict="reject", diagnosis_digest=waiting.diagnosis.digest(), comment="EPS is right")
    decide(waiting.folder, no)
    after = resume_session_sync(waiting.folder)
    assert after.diagnosis is None or after.diagnosis.failure_mode != waiting.diagnosis.failure_mode
    assert after.status in ("needs_more_data", "awaiting_approval")


@pytest.mark.slow
def test_what_a_solved_session_taught_is_kept_by_a_command(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from traindx.group import traindx

    fixed = run_debug_session_sync("loss is nan", workspace, verify=VERIFY, approve=approve, allow_run=True,
                                   report=False)
    assert fixed.next_step == ("nothing is left to do; to keep what was learned for the next session here: "
                               f"traindx resume {fixed.session} --workspace {workspace} --remember")
    monkeypatch.chdir(workspace)
    runner = CliRunner()
    assert runner.invoke(traindx, ["resume", fixed.session, "--remember"]).exit_code == 0
    notes = (workspace / ".agents" / "knowledge" / "fix_patterns.md").read_text()
    assert "loss.log-of-zero" in notes
    assert runner.invoke(traindx, ["resume", fixed.session, "--remember"]).exit_code == 0
    assert (workspace / ".agents" / "knowledge" / "fix_patterns.md").read_text() == notes, "once is enough"
