"""What a session says to a person who has to do something: read-only files, data, edits, a reason that was given."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripted import Scripted, diagnosis

from traindx import at_terminal
from traindx.at_terminal import describe
from traindx.investigators.base import Case, Gathered
from traindx.model import Artifacts, Decision, Evidence, NeedsData
from traindx.session import NotWaiting, decide, resume_session_sync, run_debug_session_sync
from traindx.typed_next import next_commands
from traindx_tools.finding import Bearing, Finding, Location, Severity

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "numpy-lr"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("scratch", "__pycache__"))
    monkeypatch.chdir(folder)
    return folder


def test_a_read_only_script_is_diagnosed_and_the_fix_says_how_to_allow_it(work: Path) -> None:
    script = work / "train.py"
    before = script.read_bytes()
    script.chmod(0o444)
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.status == "awaiting_approval", waiting.reason
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.approve(waiting.diagnosis, "A"))
    stopped = resume_session_sync(waiting.folder, report=False)
    assert stopped.status == "interrupted"
    assert "train.py cannot be written" in stopped.reason
    assert "`chmod u+w train.py`" in stopped.reason
    assert script.read_bytes() == before
    script.chmod(0o644)
    assert resume_session_sync(waiting.folder, report=False).status == "awaiting_verification"
    assert script.read_bytes() != before


def test_a_reason_given_with_a_rejection_is_answered(work: Path) -> None:
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.diagnosis is not None
    said = "it is not the loss function, I changed the learning rate"
    decide(waiting.folder, Decision.reject(waiting.diagnosis, said))
    after = resume_session_sync(waiting.folder, report=False)
    text = after.reason + (after.diagnosis.root_cause if after.diagnosis else "")
    assert f'You said: "{said}": ' in text
    assert "noted" in text or "weighed" in text
    assert after.diagnosis is None or after.diagnosis.failure_mode != waiting.diagnosis.failure_mode


def test_after_a_rejection_each_question_says_which_cause_it_is_about(work: Path) -> None:
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.reject(waiting.diagnosis, "it is something else"))
    after = resume_session_sync(waiting.folder, report=False)
    assert after.needs is not None, after.reason
    left = [h.failure_mode for h in after.hypotheses if h.failure_mode != waiting.diagnosis.failure_mode]
    assert all(any(q.startswith("Is it this: ") and f" [{m}]? Check: " in q for m in left)
               for q in after.needs.questions)
    shown = "\n".join((*after.needs.questions, *next_commands(after)))
    assert "what do you see?" not in shown
    assert waiting.diagnosis.failure_mode not in shown
    assert not any(c.startswith("traindx debug") for c in next_commands(after))


@pytest.mark.slow
def test_without_a_terminal_the_whole_diagnosis_is_printed_and_sessions_below_are_named(
        work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from traindx.group import traindx

    shown = CliRunner().invoke(traindx, ["debug", ".", "--symptom", "loss is nan"]).stdout
    for part in ("Diagnosis (Gate 4)", "Root Cause", "What This Fix Will NOT Fix", "A: targeted", "- ", "+ "):
        assert part in shown
    monkeypatch.chdir(work.parent)
    below = CliRunner().invoke(traindx, ["sessions"])
    assert "no sessions in ., but elsewhere" in below.stderr
    assert any(row.endswith("  work") for row in below.stdout.splitlines())
    (work.parent / "empty").mkdir()
    assert "starts one" in CliRunner().invoke(traindx, ["sessions", "empty"]).stderr


def test_an_approval_by_mistake_is_taken_back_while_nothing_is_edited(work: Path) -> None:
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.approve(waiting.diagnosis, "B"))
    by_hand = resume_session_sync(waiting.folder, report=False)
    assert by_hand.status == "awaiting_edit"
    assert any(c.endswith("--option A") for c in next_commands(by_hand))
    assert not any(c.endswith("--option B") for c in next_commands(by_hand)), "that one is approved already"
    assert "option B is approved and waits for you" in by_hand.reason
    assert "save, then traindx resume" in by_hand.next_step
    decide(waiting.folder, Decision.approve(waiting.diagnosis, "A"))
    again = resume_session_sync(waiting.folder, report=False)
    assert again.status == "awaiting_approval"
    assert again.diagnosis is not None
    decide(waiting.folder, Decision.approve(again.diagnosis, "B"))
    resume_session_sync(waiting.folder, report=False)
    (work / "train.py").write_text((work / "train.py").read_text() + "# edited\n")
    with pytest.raises(NotWaiting, match="decided already"):
        decide(waiting.folder, Decision.approve(again.diagnosis, "A"))


def test_data_that_is_missing_is_named_in_words_and_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.txt").write_text("".join(f"step {i} loss 2.303 acc 0.1\n" for i in range(30)))
    result = run_debug_session_sync("it does not learn", tmp_path, report=False)
    assert result.status == "needs_more_data"
    shown = "\n".join(describe(result))
    assert not {"training_logs", "loss_curves", "model_code", "error_messages", "PATH", "CMD"}.intersection(
        shown.replace(";", " ").split())
    assert "the training script" in shown
    commands = next_commands(result)
    assert len(commands) > 1
    assert commands[-1] == f"traindx resume {result.session} --give FILE"
    assert all(shlex.split(c) for c in commands)


def test_a_path_that_was_announced_and_is_not_there_is_said_in_words(work: Path) -> None:
    shutil.rmtree(work / "scratch", ignore_errors=True)
    (work / "train.py").unlink()
    result = run_debug_session_sync("loss is nan", work, report=False,
                                    artifacts=Artifacts(training_logs=("log.txt",), config=("conf/a.yaml",)))
    assert result.needs is not None
    assert any(a == "the configuration of the run: there is no conf/a.yaml" for a in result.needs.artifacts)


def test_several_changes_by_hand_are_told_one_a_line(work: Path) -> None:
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.approve(waiting.diagnosis, "B"))
    result = resume_session_sync(waiting.folder, report=False)
    assert result.status == "awaiting_edit"
    rows = list(describe(result))
    assert "  next:" in rows
    assert any(r.startswith("    - train.py:") for r in rows)
    assert not any("Then resume" in r and "train.py" in r for r in rows)


def test_a_verification_is_offered_with_the_command_that_starts_the_training(work: Path) -> None:
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.approve(waiting.diagnosis, "A"))
    result = resume_session_sync(waiting.folder, report=False)
    assert next_commands(result)[0] == f"traindx resume {result.session} --verify 'python train.py'"
    agreed = result.model_copy(update={"has_verify": True})
    assert next_commands(agreed)[0] == f"traindx resume {result.session} --run"


def test_entries_that_are_empty_are_no_artifacts() -> None:
    given = Artifacts.model_validate({"training_logs": "", "loss_curves": None, "model_code": [" ", None],
                                      "error_messages": {}, "config": {"lr": 0.1}})
    assert given.everything == ('{"lr": 0.1}',)
    assert given.missing == ("training_logs", "loss_curves", "model_code", "error_messages")




def test_a_change_in_a_notebook_says_what_to_edit_and_what_to_type_then(tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    from traindx.model import Instruction
    from traindx.standing import _fix

    option = SimpleNamespace(option="A", instructions=(Instruction(path="a.ipynb", line=3, text="lower the rate"),))
    session = SimpleNamespace(id="20260101-000000-abcdef", decision=SimpleNamespace(option="A"),
                              diagnosis=SimpleNamespace(option=lambda _: option))
    status, _, steps = _fix(session)  # type: ignore[arg-type]
    assert status == "awaiting_edit"
    assert "lower the rate" in steps
    assert steps.splitlines()[-1].startswith("edit that cell of a.ipynb, save the notebook, then traindx resume 2026")


def test_an_experiment_that_decided_nothing_stands_in_what_is_shown_and_in_the_report(workspace: Path) -> None:
    found = Finding("X104", "Inconclusive", Severity.INFO, Bearing.SIGN,
                    "X001: float32 is inconclusive: too little time", Location(module="experiment X001"), "X001")

    class Tries(Scripted):
        async def gather(self, case: Case) -> Gathered:
            tried = Evidence(id="X104-1", rule="X104", statement=found.statement, value="inconclusive",
                             place="experiment X001", strength="ran", bearing="sign", finding=found.to_json())
            return Gathered((tried,), case.hypotheses)

    ended = run_debug_session_sync("x", workspace, investigator=Tries([NeedsData(reason="more is needed")]))
    assert [e.id for e in ended.experiments] == ["X104-1"]
    assert "  experiment: X001: float32 is inconclusive: too little time" in list(describe(ended))
    assert [f["rule"] for f in ended.to_diagnosis_result().findings] == ["X104"]
    assert "float32 is inconclusive" in Path(ended.documents["report.html"]).read_text()


@pytest.mark.parametrize("made", ["empty.log", "binary.log", ""])
def test_what_cannot_be_read_is_data_that_is_missing(made: str, tmp_path: Path) -> None:
    if made:
        (tmp_path / made).write_bytes(b"" if made == "empty.log" else bytes(range(256)) * 9)
    result = run_debug_session_sync("the loss is nan", tmp_path, artifacts=[made] if made else None, report=False)
    assert result.status == "needs_more_data", result.reason
    assert "Nothing could be judged" in result.reason
    assert f"traindx resume {result.session} --give FILE" in "\n".join(result.commands)


@pytest.mark.parametrize(("typed", "verdict", "comment"), [
    ("revise I believe the Data is wrong", "revise", "I believe the Data is wrong"), ("v: no", "revise", "no"),
    ("r it is not", "reject", "it is not"), ("a", "approve", "")])
def test_a_decision_and_its_words_can_be_typed_at_once(typed: str, verdict: str, comment: str, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(at_terminal, "prompted", lambda *_: typed)
    made = at_terminal.ask_approval(diagnosis(), str(tmp_path / "scratch/debug/20260101-000000-abcdef"))
    assert made is not None
    assert (made.verdict, made.comment) == (verdict, comment)
    assert f"--workspace {tmp_path.resolve()}" in capsys.readouterr().err, "it works from any folder"


def test_a_sentence_without_a_choice_is_said_to_lack_one(monkeypatch: pytest.MonkeyPatch,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    typed = iter(["I believe the Data is wrong", "l"])
    monkeypatch.setattr(at_terminal, "prompted", lambda *_: next(typed))
    assert at_terminal.ask_approval(diagnosis()) is None
    assert "as in: v I believe the Data is wrong" in capsys.readouterr().err
