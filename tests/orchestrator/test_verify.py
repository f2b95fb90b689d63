"""Verification: limits that hold, and a zero exit code that is not believed by itself."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted import EVIDENCE, diagnosis

from traindx import supervise
from traindx.model import Evidence, Verification, Verify
from traindx.verify import (
    NewRun,
    Outcome,
    clean_environment,
    failing_step,
    judge,
    prints_nonfinite,
    read_outcome,
    runs_needed,
    specification,
    steps_needed,
    supervised,
    verify_from,
)
from traindx_tools.errors import BadUsage
from traindx_tools.finding import Bearing, Finding, Location, Severity


def finding(rule: str = "L101", severity: Severity = Severity.CRITICAL, step: float = 40.0) -> Finding:
    return Finding(rule=rule, title="Non-finite", severity=severity, bearing=Bearing.SIGN,
                   statement=f"loss is nan from step {step:g}", where=Location(step=step), source="log.txt")


SEEN = Evidence(id="E1", statement="loss is nan", value="nan", place="log.txt:9", strength="ran", bearing="cause",
                rule="L101",
                finding=finding().to_json())
FAULT = diagnosis(evidence=(SEEN,))


async def execute(folder: Path, command: str, **limits: object) -> Outcome:
    folder.mkdir(exist_ok=True)
    verify = Verify(command=command, **limits)
    return await supervised(folder, specification(verify, folder), clean_environment(os.environ))


async def test_exit_code_and_output_are_kept(tmp_path: Path):
    outcome = await execute(tmp_path / "v", "echo out; echo err >&2; exit 3")
    assert (outcome.exit_code, outcome.timed_out, outcome.cancelled) == (3, False, False)
    assert (tmp_path / "v/output.log").read_text() == "out\nerr\n"


async def test_a_command_is_run_once_and_its_result_found_again(tmp_path: Path):
    for _ in range(2):
        outcome = await execute(tmp_path / "v", f"echo ran >> {tmp_path}/count")
        assert outcome.exit_code == 0
    assert (tmp_path / "count").read_text() == "ran\n"


async def test_two_supervisors_of_one_folder_run_it_once(tmp_path: Path):
    command = f"echo ran >> {tmp_path}/count; while ! test -e {tmp_path}/go; do :; done"
    both = [asyncio.create_task(execute(tmp_path / "v", command)) for _ in range(2)]
    while not (tmp_path / "count").exists():
        await asyncio.sleep(0.01)
    (tmp_path / "go").touch()
    assert [o.exit_code for o in await asyncio.gather(*both)] == [0, 0]
    assert (tmp_path / "count").read_text() == "ran\n"


async def test_a_time_limit_ends_the_command_and_its_children(tmp_path: Path):
    pids = tmp_path / "pids"
    script = (f"import os, signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
              f"p = subprocess.Popen(['sleep', '1000'], start_new_session=True); "
              f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{p.pid}}'); signal.pause()")
    command = f"exec {sys.executable} -c \"{script}\""
    (tmp_path / "v").mkdir()
    spec = {**specification(Verify(command=command, timeout=1.0), tmp_path), "grace": 0.3}
    outcome = await supervised(tmp_path / "v", spec, clean_environment(os.environ))
    assert (outcome.timed_out, outcome.exit_code) == (True, None)
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


async def test_a_child_left_behind_is_ended_with_the_command(tmp_path: Path):
    outcome = await execute(tmp_path / "v", f"setsid sleep 1000 & echo $! > {tmp_path}/pid; exit 0")
    assert outcome.exit_code == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
async def test_a_memory_limit_ends_the_command(tmp_path: Path):
    hog = f"exec {sys.executable} -c \"x = bytearray(400 * 2**20); import signal; signal.pause()\""
    outcome = await execute(tmp_path / "v", hog, memory_mib=200)
    assert outcome.out_of_memory


async def test_a_command_that_cannot_start_says_so(tmp_path: Path):
    (tmp_path / "v").mkdir()
    spec = specification(Verify(command=("/no/such/program",)), tmp_path)
    outcome = await supervised(tmp_path / "v", spec, {})
    assert outcome.exit_code == 127
    assert "cannot start" in (tmp_path / "v/output.log").read_text()


def test_output_is_bounded_and_keeps_its_beginning_and_its_end(tmp_path: Path):
    output = supervise.Output(tmp_path / "o", 800)
    output.write(b"begin " + b"x" * 5000)
    for _ in range(100):
        output.write(b"y" * 90)
    output.write(b" the end")
    output.close()
    text = (tmp_path / "o").read_bytes()
    assert text.startswith(b"begin ")
    assert text.endswith(b" the end")
    assert b"bytes of output were not kept" in text
    assert len(text) < 1000


def test_a_supervisor_that_was_told_to_stop_kills_and_reports(tmp_path: Path):
    spec = specification(Verify(command=f"echo $$ > {tmp_path}/pid; exec sleep 1000"), tmp_path)
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    process = subprocess.Popen([sys.executable, "-I", supervise.__file__, str(tmp_path)])
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n")):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert read_outcome(tmp_path).cancelled
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_stop_that_comes_while_the_command_starts_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(supervise._Stop, "told", False)
    start = subprocess.Popen

    def told_meanwhile(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        child: subprocess.Popen[bytes] = start(*arguments, **options)  # type: ignore[call-overload]
        supervise._cancel(signal.SIGTERM, None)
        return child

    monkeypatch.setattr(subprocess, "Popen", told_meanwhile)
    before = signal.getsignal(signal.SIGTERM)
    try:
        result = supervise.run(specification(Verify(command="exec sleep 1000"), tmp_path), tmp_path)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert result["cancelled"]
    assert result["seconds"] < 60


@pytest.mark.parametrize("given", [
    "", "  ", {"command": "x", "timeout": 0}, {"command": "x", "timeout": -5}, {"command": "x", "timeout": math.nan},
    {"command": "x", "timeout": math.inf}, {"command": "x", "steps": -1}, {"command": 5}, {"commands": "x"}])
def test_a_verification_that_makes_no_sense_is_refused(given: Any):
    with pytest.raises(BadUsage):
        verify_from(given)


def test_a_run_whose_supervisor_died_counts_as_lost(tmp_path: Path):
    (tmp_path / "spec.json").write_text("{}")
    (tmp_path / "started").touch()
    supervise.main(tmp_path)
    assert read_outcome(tmp_path).cancelled


def test_secrets_are_taken_out_of_the_environment():
    given = {"PATH": "/bin", "WANDB_API_KEY": "x", "HF_TOKEN": "x", "AWS_SECRET_ACCESS_KEY": "x", "DB_PASSWORD": "x",
             "TOKENIZERS_PARALLELISM": "false", "PWD": "/w", "KEYBOARD": "us", "DATABASE_URL": "postgres://u:p@h/d",
             "CUDA_VISIBLE_DEVICES": "0", "SSH_AUTH_SOCK": "/s", "hf_token": "x", "MONKEY": "1"}
    assert set(clean_environment(given)) == {"PATH", "TOKENIZERS_PARALLELISM", "PWD", "KEYBOARD",
                                             "CUDA_VISIBLE_DEVICES",
                                             "MONKEY"}
    assert "HF_TOKEN" in clean_environment(given, ("HF_TOKEN",))


@pytest.mark.parametrize(("text", "seen"), [
    ("step 3 loss nan", True), ("{'loss': nan, 'x': 1}", True), ("train_loss=inf", True),
    ("grad_norm: -Infinity", True),
    ('{"loss": "nan"}', True), ("val loss = NaN\n", True), ("step 3 loss 0.5", False), ("loss info: fine", False),
    ("no nan here", False), ("loss nanometer", False),
])
def test_output_that_shows_a_non_finite_loss(tmp_path: Path, text: str, seen: bool):
    (tmp_path / "o").write_text(text)
    assert prints_nonfinite(tmp_path / "o") is seen


def test_it_is_seen_across_the_blocks_in_which_a_large_file_is_read(tmp_path: Path):
    (tmp_path / "o").write_bytes(b"x" * (2**20 - 6) + b" loss: nan" + b" y" * 100)
    assert prints_nonfinite(tmp_path / "o")


@pytest.mark.parametrize(("failed_at", "needed"), [(None, 100), (400, 500), (5, 50), (0, 10), (12, 112)])
def test_how_far_a_new_run_must_get(failed_at: float | None, needed: float):
    assert steps_needed(failed_at, Verify()) == needed
    assert steps_needed(failed_at, Verify(steps=7)) == 7


def test_the_failing_step_is_the_earliest_in_the_evidence():
    late = SEEN.model_copy(update={"id": "E2", "finding": finding(step=90.0).to_json()})
    assert failing_step(diagnosis(evidence=(late, SEEN), cites=("E1", "E2"))) == 40
    assert failing_step(diagnosis()) is None


def test_what_holds_from_the_start_fails_at_no_step():
    """A parameter in no optimizer was watched for 150 steps: a run of 150 steps can show that it is held now."""
    watched = SEEN.model_copy(update={"rule": "T301", "finding": finding("T301", step=150.0).to_json()})
    assert failing_step(diagnosis(evidence=(watched,))) is None
    both = (watched.model_copy(update={"id": "E2"}), SEEN)
    assert failing_step(diagnosis(evidence=both, cites=("E1", "E2"))) == 40


def outcome(folder: Path, code: int | None = 0, text: str = "fine\n", **ended: bool) -> Outcome:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "output.log").write_text(text)
    how = {"timed_out": False, "out_of_memory": False, "cancelled": False, **ended}
    return Outcome(folder, code, seconds=1.0, **how)


GOOD_RUN = NewRun(last_step=200, metrics={"loss": 0.1})
OLD_RUN = NewRun((finding(),), 60, 200, {"loss": float("nan"), "grad_norm": 310.0})


def verdict(tmp_path: Path, *outcomes: Outcome, after: NewRun = GOOD_RUN, verify: Verify | None = None):
    return judge(FAULT, verify or Verify(command="x"), outcomes, OLD_RUN, [after] * max(len(outcomes), 1), tmp_path)


def passes(result: Verification) -> bool:
    """Nothing speaks against the fix; what was shown is said by `results.settled`."""
    return result.result == "passed_effect_not_shown"


def test_a_good_run_passes(tmp_path: Path):
    result = verdict(tmp_path, outcome(tmp_path / "v"))
    assert passes(result)
    assert result.output == "v/output.log"


@pytest.mark.parametrize(("ended", "message"), [
    ({"code": 1}, "exit code 1"), ({"code": None, "timed_out": True}, "did not end within"),
    ({"code": None, "out_of_memory": True}, "more memory than allowed"),
    ({"text": "step 199 loss nan\n"}, "exit code 0, but its output shows a loss"),
])
def test_a_bad_end_fails_and_says_why(tmp_path: Path, ended: dict[str, object], message: str):
    result = verdict(tmp_path, outcome(tmp_path / "v", **ended))
    assert result.failed
    assert any(message in r for r in result.reasons), result.reasons


@pytest.mark.parametrize(("after", "message"), [
    (NewRun((finding(),), 200, None, {"loss": 0.1}), "the old finding is back: L101"),
    (NewRun((finding("L508"),), 200, None, {"loss": 0.1}), "a new critical finding: L508"),
    (NewRun((), 139, 400, {"loss": 0.1}), "reached only step 139; 140 are needed"),
])
def test_a_new_run_is_judged_by_its_findings_and_how_far_it_got(tmp_path: Path, after: NewRun, message: str):
    result = verdict(tmp_path, outcome(tmp_path / "v"), after=after)
    assert result.failed
    assert any(message in r for r in result.reasons), result.reasons


def test_what_is_worse_than_before_and_how_far_it_got_are_counted(tmp_path: Path):
    before = NewRun((finding(),), 60, 200,
                    {"validation loss": 1.0, "accuracy": 0.9, "step_time": 0.1, "grad_norm": 1.0})
    worse = NewRun((finding("L203", Severity.HIGH),), 200, None,
                   {"validation loss": 1.2, "accuracy": 0.9, "step_time": 0.102, "grad_norm": 9.0})
    found = judge(FAULT, Verify(command="x"), [outcome(tmp_path / "v")], before, [worse], tmp_path)
    assert [r.split(" ")[0] for r in found.regressions] == ["new:", "validation"]
    assert found.steps_without_recurrence == 160
    better = NewRun((), 200, None, {"validation loss": 0.8, "accuracy": 0.95, "step_time": 0.1})
    assert judge(FAULT, Verify(command="x"), [outcome(tmp_path / "w")], before, [better], tmp_path).regressions == ()
    back = NewRun((finding(),), 200, None, {})
    assert verdict(tmp_path, outcome(tmp_path / "x"), after=back).steps_without_recurrence is None
    lost = NewRun((), 200, None, {"accuracy": float("nan")})
    assert judge(FAULT, Verify(command="x"), [outcome(tmp_path / "y")], before, [lost], tmp_path).regressions


@pytest.mark.parametrize("after", [
    NewRun((finding(severity=Severity.LOW),), 200, None, {"loss": 0.1}),
    NewRun((finding("L203", Severity.HIGH),), 200, None, {"loss": 0.1}),
    NewRun((), 60, 60, {"loss": 0.1}),
    NewRun((), None, None, {"loss": 0.1}),
    NewRun(),
])
def test_what_does_not_speak_against_the_fix_lets_it_pass(tmp_path: Path, after: NewRun):
    assert verdict(tmp_path, outcome(tmp_path / "v"), after=after).result == "passed_effect_not_shown"


def test_a_run_without_steps_is_verified_by_what_its_metrics_did_and_says_so(tmp_path: Path):
    good = verdict(tmp_path, outcome(tmp_path / "v"), after=NewRun((), None, None, {"loss": 0.1}))
    assert good.reasons == ("the command passed, loss went from nan to 0.1; it counts no steps",)
    flat = verdict(tmp_path, outcome(tmp_path / "v"), after=NewRun((), None, None, {"grad_norm": 310.0}))
    assert "no metric that improved" in flat.reasons[0]
    assert verdict(tmp_path, outcome(tmp_path / "v")).reasons == ("the command passed",)


def test_asked_for_steps_that_cannot_be_counted_do_not_pass(tmp_path: Path):
    result = verdict(tmp_path, outcome(tmp_path / "v"), after=NewRun(), verify=Verify(command="x", steps=50))
    assert result.failed


def test_an_intermittent_symptom_is_checked_several_times_and_a_disagreement_is_said(tmp_path: Path):
    assert runs_needed(Verify(command="x"), "sometimes") == 3
    assert runs_needed(Verify(command="x", runs=5), "sometimes") == 5
    assert runs_needed(Verify(command="x"), "always") == 1
    result = verdict(tmp_path, outcome(tmp_path / "1"), outcome(tmp_path / "2", code=1))
    assert result.failed
    assert "run 2: the command ended with exit code 1" in result.reasons
    assert "the runs disagree: the fault still comes and goes" in result.notes


def test_a_new_run_without_a_command_is_judged_by_its_artifacts(tmp_path: Path):
    result = verdict(tmp_path, verify=Verify(new_run=("metrics.csv",)))
    assert passes(result)
    assert result.command is None


def test_evidence_without_a_rule_is_no_old_kind(tmp_path: Path):
    result = judge(diagnosis(evidence=(EVIDENCE,)), Verify(command="x"), [outcome(tmp_path / "v")], NewRun(),
                   [GOOD_RUN],
                   tmp_path)
    assert passes(result)
