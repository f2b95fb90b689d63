"""Sessions from a caller's side: waiting, resuming, cancelling, failing, verifying, recording."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest
from scripted import FIXED, TRAIN, Scripted, approve, diagnosis, examined, fix, hypotheses, replace_line

from traindx import durable
from traindx.durable import StateNotWritable
from traindx.investigators.base import Gathered, Hypotheses, Investigator
from traindx.model import Artifacts, Budget, Decision, Healthy, Instruction, NeedsData, Verify
from traindx.session import (
    NotWaiting,
    confirm_fix,
    decide,
    give_data,
    list_sessions,
    read_result,
    record_knowledge,
    resume_session,
    resume_session_sync,
    run_debug_session,
    run_debug_session_sync,
)
from traindx.session_folder import NoSuchSession, SessionBusy, SessionFolder
from traindx.strikes import LedgerDamaged
from traindx_tools.errors import BadUsage

GOOD = "grep -q 'learning_rate = 0.1' train.py"


def start(workspace: Path, *conclusions: object, **options: object):
    investigator = options.pop("investigator", None) or Scripted(list(conclusions) or [diagnosis()])
    return run_debug_session_sync("the loss explodes", workspace, investigator=investigator,
                                  **{"verify": GOOD, "allow_run": True, "examine": examined, "report": False,
                                     **options})


def go_on(result, *conclusions: object, **options: object):
    return resume_session_sync(result.folder, investigator=Scripted(list(conclusions) or [diagnosis()]),
                               **{"examine": examined, "report": False, **options})


def test_from_symptom_to_verified_fix(workspace: Path):
    result = start(workspace, approve=approve())
    assert (result.status, result.next_step) == (
        "fixed", "nothing is left to do; to keep what was learned for the next session here: "
                 f"traindx resume {result.session} --workspace {workspace} --remember")
    assert (workspace / "train.py").read_text() == FIXED
    assert set(result.documents) >= {"diagnosis.md", "diagnosis.json", "root_cause_analysis.md", "retrospective.json"}
    assert (workspace / "scratch/debug/.gitignore").read_text() == "*\n"


def test_the_report_shows_the_run_and_the_diagnosis(workspace: Path):
    (workspace / "log.txt").write_text("".join(f"step {n} loss {10.0 * 19 ** n:.4g}\n" for n in range(40)))
    result = start(workspace, report=True, artifacts=["log.txt"])
    page = Path(result.documents["report.html"]).read_text()
    assert "far above the stable limit" in page
    assert "data:image/png;base64" in page
    assert (Path(result.folder) / "plots/loss.png").stat().st_size > 1000


def test_a_picture_that_fails_keeps_no_diagnosis_from_a_person(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("traindx.session_report._page", fail)
    assert start(workspace, report=True).status == "awaiting_approval"


async def test_an_async_callback_and_an_async_caller(workspace: Path):
    async def ask(d):
        await asyncio.sleep(0)
        return approve()(d)

    result = await run_debug_session("x", workspace, verify=GOOD, approve=ask, investigator=Scripted([diagnosis()]),
                                     allow_run=True, examine=examined, report=False)
    assert result.status == "fixed"
    with pytest.raises(BadUsage, match="await run_debug_session"):
        run_debug_session_sync("x", workspace)


def test_without_a_callback_it_waits_on_disk_and_is_approved_from_elsewhere(workspace: Path):
    waiting = start(workspace)
    assert waiting.status == "awaiting_approval"
    assert waiting.digest is not None
    assert len(waiting.questions) == 3
    approved = decide(waiting.session, Decision(verdict="approve", diagnosis_digest=waiting.digest, option="A"),
                      workspace=workspace)
    assert approved.phase == "fix"
    assert (workspace / "train.py").read_text() == TRAIN
    assert go_on(waiting).status == "fixed"


def test_a_person_may_say_not_now(workspace: Path):
    assert start(workspace, approve=lambda d: None).status == "awaiting_approval"


def test_it_can_be_decided_elsewhere_while_the_callback_waits(workspace: Path):
    def slow(d):
        decide(list_sessions(workspace)[0].folder, Decision(verdict="approve", diagnosis_digest=d.digest(), option="A",
                                                            by="somebody else"))
        return Decision(verdict="reject", diagnosis_digest=d.digest())

    result = start(workspace, approve=slow)
    assert result.status == "fixed"
    assert result.decision is not None
    assert result.decision.by == "somebody else"


def test_a_revision_brings_the_users_words_to_the_investigator(workspace: Path):
    told = []

    def after_revision(case):
        told.append(case.feedback)
        return diagnosis(confidence=0.9) if case.feedback else diagnosis()

    answers = iter([Decision(verdict="revise", diagnosis_digest=diagnosis().digest(),
                             comment="I changed the data too")])
    result = start(workspace, after_revision, approve=lambda d: next(answers, None) or approve()(d))
    assert result.status == "fixed"
    assert told[-1] == ("at the gate: I changed the data too",)


def test_the_same_diagnosis_after_a_revision_is_not_asked_for_ever(workspace: Path):
    result = start(workspace, approve=lambda d: Decision(verdict="revise", diagnosis_digest=d.digest()))
    assert result.status == "awaiting_approval"


def test_a_rejection_halts_and_can_be_resumed_for_another_cause(workspace: Path):
    rejected = start(workspace, approve=lambda d: Decision(verdict="reject", diagnosis_digest=d.digest(), comment="no"))
    assert (rejected.status, (workspace / "train.py").read_text()) == ("rejected", TRAIN)
    again = go_on(rejected, diagnosis(confidence=0.9), approve=approve())
    assert again.status == "fixed"


@pytest.mark.parametrize("step", ["characterize", "hypothesize", "gather", "diagnose"])
def test_an_investigator_that_fails_leaves_a_clear_state(workspace: Path, step: str):
    def fail(case):
        raise ZeroDivisionError("by zero")

    result = start(workspace, investigator=Scripted([diagnosis()], during={step: fail}))
    assert result.status == "interrupted"
    assert result.reason == f"the investigator 'scripted' failed in {step}: ZeroDivisionError: by zero"
    assert go_on(result, approve=approve()).status == "fixed"


@pytest.mark.parametrize("nonsense", [None, "a cause", {"root_cause": "x"}])
def test_an_investigator_that_returns_nonsense_is_named(workspace: Path, nonsense: object):
    result = start(workspace, lambda case: nonsense)
    assert result.status == "interrupted"
    assert f"concluded with a {type(nonsense).__name__}, which is no diagnosis" in result.reason


def test_an_investigator_that_changes_old_evidence_is_named(workspace: Path):
    class Forgetful(Scripted):
        async def gather(self, case):
            changed = case.evidence[0].model_copy(update={"value": "other"})
            return Gathered((changed,), hypotheses())

    result = start(workspace, investigator=Forgetful([diagnosis()]))
    assert result.status == "interrupted"
    assert "needs a new id" in result.reason


def test_a_callback_that_raises_leaves_the_gate_waiting(workspace: Path):
    def fail(d):
        raise KeyError("no terminal")

    result = start(workspace, approve=fail)
    assert (result.status, result.phase) == ("interrupted", "gate")
    assert "KeyError" in result.reason
    assert go_on(result, approve=approve()).status == "fixed"


@pytest.mark.parametrize("step", ["hypothesize", "diagnose"])
async def test_cancelling_while_it_looks_is_recorded_and_resumable(workspace: Path, step: str):
    entered = asyncio.Event()

    class Slow(Scripted):
        async def hypothesize(self, case):
            return await self._wait("hypothesize") or await super().hypothesize(case)

        async def diagnose(self, case):
            return await self._wait("diagnose") or await super().diagnose(case)

        async def _wait(self, here):
            if here == step:
                entered.set()
                await asyncio.Event().wait()

    task = asyncio.create_task(run_debug_session("x", workspace, verify=GOOD, allow_run=True, examine=examined,
                                                 report=False,
                                                 investigator=Slow([diagnosis()])))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    result = list_sessions(workspace)[0]
    assert (result.status, result.reason, result.phase) == ("interrupted", "cancelled", step)
    result = await resume_session(result.folder, investigator=Scripted([diagnosis()]), approve=approve(),
                                  examine=examined, report=False)
    assert result.status == "fixed"


@pytest.mark.parametrize("answer", ["A", True, 1, {"verdict": "approve"}])
def test_a_callback_that_returns_no_decision_is_named_and_changes_nothing(workspace: Path, answer: object):
    result = start(workspace, approve=lambda d: answer)
    assert result.status == "interrupted"
    assert f"returned a {type(answer).__name__}; return a Decision" in result.reason
    assert (workspace / "train.py").read_text() == TRAIN


def test_what_a_verification_wrote_is_shown(workspace: Path):
    result = start(workspace, approve=approve(), verify=f"{GOOD} && touch checkpoint.pt")
    assert result.status == "fixed"
    assert result.notes == ("the verification wrote: checkpoint.pt",)


def test_a_damaged_ledger_stops_fixes_and_leaves_sessions_readable(workspace: Path):
    waiting = start(workspace)
    (workspace / "scratch/debug/strikes.jsonl").write_text("hello\n")
    assert list_sessions(workspace)[0].status == "awaiting_approval"
    with pytest.raises(LedgerDamaged, match="Remove that line"):
        decide(waiting.folder, Decision.approve(diagnosis()))


async def test_cancelling_a_verification_ends_the_command_and_runs_it_again_later(workspace: Path, tmp_path: Path):
    started = tmp_path / "started"
    command = f"echo $$ >> {started}; test -e {tmp_path}/go || exec sleep 1000; {GOOD}"
    verify = {"command": command, "writable": [str(tmp_path)]}
    task = asyncio.create_task(run_debug_session("x", workspace, verify=verify, allow_run=True, examine=examined,
                                                 report=False,
                                                 approve=approve(), investigator=Scripted([diagnosis()])))
    while not (started.exists() and started.read_text().endswith("\n")):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
    (tmp_path / "go").touch()
    result = await resume_session(list_sessions(workspace)[0].folder, investigator=Scripted([]), examine=examined,
                                  report=False)
    assert result.status == "fixed"
    assert started.read_text().count("\n") == 3, "the baseline, the baseline again, the fix"


def test_the_time_budget_ends_a_look_and_a_larger_one_goes_on(workspace: Path):
    class Hangs(Scripted):
        async def gather(self, case):
            await asyncio.Event().wait()

    result = start(workspace, investigator=Hangs([diagnosis()]), budget=Budget(seconds=0.2))
    assert result.status == "interrupted"
    assert "budget of 0.2 s for looking is spent" in result.reason
    assert f"traindx resume {result.session}" in result.next_step
    assert result.next_step.endswith("--budget 60"), "twice too little is too little"
    assert result.budget == Budget(seconds=0.2)
    assert go_on(result, approve=approve(), budget=Budget(seconds=100)).status == "fixed"


def test_the_budget_of_attempts(workspace: Path):
    wrong = diagnosis(fix(replace_line("learning_rate = 9")))
    result = start(workspace, wrong, diagnosis(confidence=0.9), approve=approve(), budget=Budget(attempts=1))
    assert result.status == "interrupted"
    assert "1 fixes were tried" in result.reason
    assert result.next_step.endswith("--attempts 2")
    assert go_on(result, diagnosis(confidence=0.9), approve=approve(), budget=Budget(attempts=2)).status == "fixed"


def test_the_quick_path_skips_gathering_and_still_asks(workspace: Path):
    script = Scripted([diagnosis()], quick=True, during={"gather": lambda case: pytest.fail("gathered")})
    assert start(workspace, investigator=script).status == "awaiting_approval"


def test_a_quick_path_that_takes_too_long_becomes_the_full_protocol(workspace: Path):
    now = [0.0]
    gathered = []
    script = Scripted([diagnosis()], quick=True, during={
        "hypothesize": lambda case: now.__setitem__(0, 16 * 60.0), "gather": lambda case: gathered.append(case)})
    result = start(workspace, investigator=script, clock=lambda: now[0], budget=Budget(seconds=7200))
    assert result.status == "awaiting_approval"
    assert len(gathered) == 1
    assert "more than 15 minutes" in gathered[0].feedback[0]


def test_healthy_and_needs_data_are_ends_that_say_why(workspace: Path):
    healthy = start(workspace, Healthy(reason="the loss falls as it should"))
    assert (healthy.status, healthy.reason) == ("healthy", "the loss falls as it should")
    assert healthy.to_diagnosis_result().status == "healthy"
    needs = start(workspace, NeedsData(reason="no log", artifacts=("training_logs",), next_checks=("traindx log .",)))
    assert needs.status == "needs_more_data"
    assert "traindx log ." in needs.next_step
    assert needs.to_diagnosis_result().next_checks == ("traindx log .",)


def test_data_that_was_asked_for_goes_on(workspace: Path):
    def with_log(case):
        return diagnosis() if "log.txt" in case.artifacts.paths else NeedsData(reason="no log")

    needs = start(workspace, with_log)
    (workspace / "log.txt").write_text("loss nan\n")
    give_data(needs.folder, ["log.txt"], comment="here it is")
    result = go_on(needs, with_log, approve=approve())
    assert result.status == "fixed"
    with pytest.raises(NotWaiting, match="does not wait for data"):
        give_data(needs.folder, ["log.txt"])


def test_a_change_by_hand_waits_and_is_taken_over(workspace: Path):
    told = fix(instructions=[Instruction(path="train.py", line=4, text="set learning_rate to 0.1")])
    waiting = start(workspace, diagnosis(told), approve=approve())
    assert waiting.status == "awaiting_edit"
    assert "train.py:4: set learning_rate to 0.1" in waiting.next_step
    assert go_on(waiting).status == "awaiting_edit"
    (workspace / "train.py").write_text(FIXED.replace("seed = 0", "seed = 1"))
    result = go_on(waiting)
    assert result.status == "fixed"
    assert result.notes == ("changed by hand beyond the approved lines: train.py:3",)


@pytest.mark.parametrize(("rows", "note"), [
    ([0, 1, 2, 4, 3], "lines moved by hand, also outside of the approved ones: train.py:4"),
    ([0, 1, 3, 2, 4], "lines moved by hand, also outside of the approved ones: train.py:3")])
def test_a_line_that_was_moved_is_no_other_change(workspace: Path, rows: list[int], note: str):
    told = fix(instructions=[Instruction(path="train.py", line=4, text="set it at another place")])
    waiting = start(workspace, diagnosis(told), approve=approve())
    old = TRAIN.splitlines()
    (workspace / "train.py").write_text("\n".join([*(old[i] for i in rows), *old[5:]]) + "\n")
    assert [n for n in go_on(waiting).notes if "by hand" in n] == [note]


def test_a_change_by_hand_that_fails_is_taken_back_and_kept_in_the_backups(workspace: Path):
    told = fix(instructions=[Instruction(path="train.py", line=4, text="set learning_rate to 0.1")])
    waiting = start(workspace, diagnosis(told), approve=approve())
    mine = TRAIN.replace("learning_rate = 10.0", "learning_rate = 5.0")
    (workspace / "train.py").write_text(mine)
    go_on(waiting, NeedsData(reason="more"))
    assert (workspace / "train.py").read_text() == TRAIN
    assert mine.encode() in [p.read_bytes() for p in (Path(waiting.folder) / "backup").iterdir()]


def test_a_change_by_hand_in_another_file_halts(workspace: Path):
    told = fix(instructions=[Instruction(path="train.py", line=4, text="set learning_rate to 0.1")])
    waiting = start(workspace, diagnosis(told), approve=approve())
    (workspace / "train.py").write_text(FIXED)
    (workspace / "other.py").write_text("value = 5\n")
    halted = go_on(waiting)
    assert (halted.status, halted.changed) == ("halted", ("other.py",))
    assert go_on(halted, accept_changes=True).status == "fixed"


def test_without_consent_nothing_is_run(workspace: Path):
    result = start(workspace, approve=approve(), allow_run=False, verify="touch was_run")
    assert result.status == "awaiting_verification"
    assert "allow_run=True" in result.next_step
    assert not (workspace / "was_run").exists()
    after = go_on(result, allow_run=True)
    assert (workspace / "was_run").exists()
    assert after.status == "effect_not_shown", "a command that shows nothing is no proof"
    assert (workspace / "was_run").exists()


def test_a_fix_without_a_verification_waits_for_one(workspace: Path):
    result = start(workspace, approve=approve(), verify=None)
    assert result.status == "awaiting_verification"
    assert go_on(result).status == "awaiting_verification"
    assert go_on(result, verify=GOOD, allow_run=True).status == "fixed"


def test_new_terms_outlive_the_turn_in_which_they_were_given(workspace: Path):
    result = start(workspace, approve=approve(), verify=None, allow_run=False)
    go_on(result, verify=GOOD)
    assert go_on(result, allow_run=True).status == "fixed"


def test_artifacts_of_a_new_run_are_waited_for(workspace: Path):
    (workspace / "metrics.csv").write_text("step,loss\n1,nan\n")
    os.utime(workspace / "metrics.csv", (1, 1))
    result = start(workspace, approve=approve(), verify=Verify(new_run=("metrics.csv",)))
    assert result.status == "awaiting_verification"
    (workspace / "metrics.csv").write_text("step,loss\n1,0.5\n")
    after = go_on(result)
    assert after.status == "effect_not_shown", "nothing was read of either run"
    assert after.attempts[0].verification.notes[-1].startswith("baseline: the run that was diagnosed")


def test_a_person_can_confirm_the_fix(workspace: Path):
    result = start(workspace, approve=approve(), verify=None)
    confirm_fix(result.folder, passed=True, comment="ran overnight", by="ada")
    done = go_on(result)
    assert done.status == "fixed"
    assert "ada: ran overnight" in done.reason
    with pytest.raises(NotWaiting, match="no fix to confirm"):
        confirm_fix(result.folder, passed=True, comment="again")


def test_what_was_learned_is_written_only_with_consent_and_once(workspace: Path):
    (workspace / ".agents/knowledge").mkdir(parents=True)
    (workspace / ".agents/knowledge/constraints.md").write_text("1. Use float32.\n2. One GPU.\n")
    result = start(workspace, approve=approve())
    assert not (workspace / "MEMORY.md").exists()
    assert {a.path for a in result.offer} == {".agents/knowledge/fix_patterns.md", ".agents/knowledge/constraints.md",
                                              "MEMORY.md"}
    with pytest.raises(BadUsage, match="consent"):
        record_knowledge(result.folder, consent=False)
    assert len(record_knowledge(result.folder, consent=True)) == 3
    assert record_knowledge(result.folder, consent=True) == ()
    constraints = (workspace / ".agents/knowledge/constraints.md").read_text()
    assert constraints.startswith("1. Use float32.\n2. One GPU.\n")
    assert "\n3. train.py: avoid `lr.too-high`." in constraints
    script = Scripted([Healthy(reason="fine")])
    start(workspace, investigator=script)
    assert "3. train.py" in script.seen[0].knowledge.constraints
    assert result.session in script.seen[0].knowledge.memory


def test_nothing_is_recorded_of_a_session_that_was_not_solved(workspace: Path):
    with pytest.raises(NotWaiting, match="no fix was verified"):
        record_knowledge(start(workspace).folder, consent=True)


def test_a_full_disk_is_said_and_the_session_goes_on_from_where_it_was(workspace: Path,
                                                                       monkeypatch: pytest.MonkeyPatch):
    waiting = start(workspace)
    decide(waiting.folder, approve()(diagnosis()))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(durable, "write_durably", full)
    with pytest.raises(StateNotWritable, match=r"No space left.*resume the session"):
        go_on(waiting)
    assert (workspace / "train.py").read_text() == TRAIN
    monkeypatch.undo()
    assert go_on(waiting).status == "fixed"


def test_a_session_that_is_driven_elsewhere_is_busy(workspace: Path):
    folder = SessionFolder(Path(start(workspace).folder))
    with (folder.locked(), pytest.raises(SessionBusy, match="driven by another process"),
          folder.locked(wait=0.05)):
        pytest.fail("held twice")


def test_sessions_are_found_by_id_and_its_beginning(workspace: Path):
    result = start(workspace)
    assert read_result(result.session[:-2], workspace=workspace).session == result.session
    for name in ("nothing", "", "../x"):
        with pytest.raises(NoSuchSession):
            read_result(name, workspace=workspace)


def test_a_folder_that_was_cut_off_before_its_first_record_is_passed_over(workspace: Path):
    result = start(workspace)
    broken = workspace / "scratch/debug/20200101-000000-abcdef"
    broken.mkdir()
    (broken / "journal.jsonl").write_bytes(b'{"n": 1, "at"')
    assert [s.session for s in list_sessions(workspace)] == [result.session]


@pytest.mark.parametrize(("options", "message"), [
    ({"verify": ""}, "command is empty"), ({"verify": ["", " "]}, "command is empty"),
])
def test_bad_arguments_are_said(workspace: Path, options: dict[str, object], message: str):
    with pytest.raises(BadUsage, match=message):
        start(workspace, **options)


def test_a_workspace_that_is_no_folder_is_said(tmp_path: Path):
    with pytest.raises(BadUsage, match="is no folder"):
        start(tmp_path / "nowhere")


def test_the_result_speaks_the_context_packages_format(workspace: Path):
    shown = start(workspace).to_diagnosis_result().to_json()
    assert set(shown) == {"status", "root_causes", "hypotheses", "findings", "quick_fixes", "next_checks",
                          "analysis_artifacts"}
    assert set(shown["root_causes"][0]) == {"issue", "severity", "evidence", "fix", "confidence", "failure_mode",
                                            "location", "mechanism", "will_change", "will_not_fix"}
    assert set(shown["hypotheses"][0]) == {"issue", "mechanism", "location", "confidence", "confirm", "rule_out", "for",
                                           "against"}


def test_artifacts_are_taken_as_a_list_or_by_role(workspace: Path):
    script = Scripted([Healthy(reason="x")])
    (workspace / "log.txt").write_text("step 1 loss 2.3\n")
    start(workspace, investigator=script, artifacts=[Path("log.txt")])
    start(workspace, investigator=script, artifacts={"training_logs": "log.txt", "config": {"lr": 1}})
    assert script.seen[0].artifacts == Artifacts(paths=("log.txt",))
    assert script.seen[-1].artifacts == Artifacts(training_logs=("log.txt",), config=('{"lr": 1}',))


def test_the_scripted_investigator_is_an_investigator():
    assert isinstance(Scripted([]), Investigator)
    assert isinstance(Hypotheses(()), Hypotheses)
