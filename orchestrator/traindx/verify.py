"""Did the fix work? A command is run under limits, the new run is read, and both are judged against the old run.

A zero exit code alone proves little: a run that prints NaN and ends is still broken, and a fault that comes and goes
passes once by luck. So the output is read with the same instruments as the failed run, it must reach past the step
where the old run failed, and an intermittent symptom is checked several times.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from traindx.bounded_output import judged_output
from traindx.durable import write_state
from traindx.effect import Level, level_of
from traindx.model import Diagnosis, Verification, Verify
from traindx.recurrence import cited_findings, is_cited, seen_again
from traindx.sandbox import Sandbox
from traindx.two_runs import Curve, curves_of
from traindx_tools.errors import BadUsage
from traindx_tools.finding import Finding, Severity
from traindx_tools.short import in_short

STEPS_BEYOND = 100
"""Steps without the fault beyond the step where it appeared (research-debug skill: 100+ steps ...)."""

TIMES_FAILING_STEP = 10
"""... or ten times the step where it appeared."""

RUNS_IF_INTERMITTENT = 3
OUTPUT_LIMIT = 64 * 2**20
"""Bytes of a command's output that are kept."""

MEMORY_SHARE = 0.9
"""Of the machine's memory that a verification may use where no limit is given."""

_SECRET = frozenset({"KEY", "KEYS", "APIKEY", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PWD",
                     "CREDENTIAL", "CREDENTIALS", "AUTH", "COOKIE", "PRIVATE", "DSN"})
_HARMLESS = frozenset({"PWD", "OLDPWD"})
_URL_WITH_PASSWORD = re.compile(r"://[^/@\s]+:[^/@\s]+@")
_NONFINITE = re.compile(
    rb"(?i)(?:loss|nll|perplexity|grad_?norm)[\"']?\s*[=:]?\s*[\"']?(?:nan|[-+]?inf(?:inity)?)(?!\w)")


@dataclass(frozen=True)
class NewRun:
    """What the instruments say of a run: findings, the last step, the last value of each metric."""

    findings: tuple[Finding, ...] = ()
    last_step: float | None = None
    planned_steps: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, Level] = field(default_factory=dict)
    """Where each metric stands at the end of the run, with its noise."""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    """Each metric over the run, thinned for a picture."""


Examine = Callable[[Sequence[Path]], NewRun]


@dataclass(frozen=True)
class Outcome:
    """How one run of the command ended. `folder` holds output.log."""

    folder: Path
    exit_code: int | None
    timed_out: bool
    out_of_memory: bool
    cancelled: bool
    seconds: float
    peak_bytes: int | None = None
    """The most memory that its processes held together; None where it was not looked at."""


def examine_with_instruments(paths: Sequence[Path]) -> NewRun:
    """Read a run and judge it by the log rules. An unreadable run has no metrics and no findings."""
    from traindx_tools.errors import UnreadableInput
    from traindx_tools.on_logs.each_run import read_last_run
    from traindx_tools.on_logs.judge import judge_run

    try:
        run = read_last_run([str(p) for p in paths])
    except UnreadableInput:
        return NewRun()
    counted = [float(s.step[-1]) for s in run.series if len(s) and s.unit == "step"]
    planned = run.planned_steps if run.planned_unit == "step" else None
    return NewRun(judge_run(run), max(counted, default=None), planned,
                  {str(s): float(s.values[-1]) for s in run.series if len(s)},
                  {str(s): level_of(s.values) for s in run.series if len(s)}, curves_of(run))


def clean_environment(environment: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """The variables without those that look like a secret: by a word of the name, or a URL with a password in it."""
    def secret(name: str, value: str) -> bool:
        words = set(re.split(r"[^A-Z]+", name.upper()))
        return (bool(words & _SECRET) and name not in _HARMLESS) or bool(_URL_WITH_PASSWORD.search(value))

    return {k: v for k, v in environment.items() if k in keep or not secret(k, v)}


def memory_limit(verify: Verify) -> int | None:
    """Bytes that the command and its children may hold, or None where the machine does not say how much it has."""
    if verify.memory_mib is not None:
        return verify.memory_mib * 2**20
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)
    except (ValueError, OSError):
        return None


def specification(verify: Verify, workspace: Path, sandbox: Sandbox | None = None,
                  writable: Sequence[Path] = ()) -> dict[str, Any]:
    """What the supervisor runs: a text through the shell, a list as it is; in the sandbox where one is given."""
    command = verify.command or ()
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    open_to = [*(workspace / w for w in verify.writable), *writable]
    return {
        "argv": words if sandbox is None else sandbox.around(words, workspace, open_to),
        "cwd": str(workspace.resolve()),
        "timeout": verify.timeout,
        "memory_bytes": memory_limit(verify),
        "output_limit": OUTPUT_LIMIT,
    }


def verify_from(given: Verify | Mapping[str, Any] | str | Sequence[str] | None) -> Verify | None:
    """A `Verify` from a command, a list of arguments or its fields.

    Raises BadUsage for an empty command, and for a limit that is no positive number.
    """
    if given is None or isinstance(given, Verify):
        return given
    if not isinstance(given, (str, Mapping, Sequence)):
        raise BadUsage(f"verify is {in_short(given)} ({type(given).__name__}), expected a command: "
                       'verify="python train.py"')
    fields = given if isinstance(given, Mapping) else {"command": given if isinstance(given, str) else tuple(given)}
    try:
        made = Verify.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"]) or "the fields"
        raise BadUsage(f"the verification makes no sense: {where}: {first['msg']}, got {first['input']!r}") from error
    if made.command is not None and not "".join(made.command).strip():
        raise BadUsage("the command is empty: give one that shows whether the run is healthy")
    return made


async def supervised(folder: Path, spec: Mapping[str, Any], environment: Mapping[str, str], *,
                     outlives: bool = True) -> Outcome:
    """Run a command once in this folder, or wait for (or read) the run that is already there.

    Cancelled, it ends the command and everything the command started. `outlives`: a run that somebody comes back for
    goes on where this process is killed; any other ends with it.
    """
    if not (folder / "spec.json").exists():
        told = spec if outlives else {**spec, "ends_with": os.getpid()}
        write_state(folder / "spec.json", json.dumps(told).encode())
    if not (folder / "result.json").exists():
        script = Path(__file__).with_name("supervise.py")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(script), str(folder), env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True)
        try:
            await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await process.wait()
            raise
    return read_outcome(folder)


async def ended(running: asyncio.Future[Outcome], folder: Path) -> Outcome:
    """How a run ended that may have been cancelled here; a cancellation of the caller, Ctrl-C, is not swallowed."""
    await asyncio.wait([running])
    return read_outcome(folder) if running.cancelled() else running.result()


def read_outcome(folder: Path) -> Outcome:
    """The result that a supervisor left; one that left none counts as cancelled."""
    try:
        data = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError):
        data = {"exit_code": None, "timed_out": False, "out_of_memory": False, "cancelled": True, "seconds": 0.0}
    return Outcome(folder, data["exit_code"], data["timed_out"], data["out_of_memory"], data["cancelled"],
                   data["seconds"], data.get("peak_bytes"))


def prints_nonfinite(path: Path) -> bool:
    """True where the output names a loss or gradient norm that is NaN or infinite; read in bounded blocks."""
    if not path.is_file():
        return False
    tail = b""
    with path.open("rb") as file:
        while block := file.read(2**20):
            if _NONFINITE.search(tail + block):
                return True
            tail = block[-200:]
    return False


def steps_needed(failing_step: float | None, verify: Verify) -> float:
    """How far the new run must get: 100 steps beyond where the old one failed, or ten times as far."""
    if verify.steps is not None:
        return float(verify.steps)
    if failing_step is None:
        return float(STEPS_BEYOND)
    return min(failing_step + STEPS_BEYOND, max(failing_step, 1.0) * TIMES_FAILING_STEP)


_FROM_THE_START = frozenset({"T301", "T302", "T303", "T304", "T306", "T307"})
"""Rules on what holds in every step: the step of their findings says how long they watched, not when it failed."""


def failing_step(diagnosis: Diagnosis) -> float | None:
    """The earliest step at which the cited evidence saw the fault come, or None."""
    steps: list[float] = []
    for e in diagnosis.evidence:
        if e.rule in _FROM_THE_START:
            continue
        where = (e.finding or {}).get("where")
        step = where.get("step") if isinstance(where, dict) and where.get("unit", "step") == "step" else None
        if isinstance(step, (int, float)):
            steps.append(float(step))
    return min(steps, default=None)


def runs_needed(verify: Verify, reproducible: str) -> int:
    """How often the command is run: an intermittent fault passes once by luck."""
    return verify.runs or (RUNS_IF_INTERMITTENT if reproducible == "sometimes" else 1)


def cited_rules(diagnosis: Diagnosis) -> frozenset[str]:
    """Rules of the cited evidence whose findings are of medium severity or above."""
    return frozenset(e.rule for e in diagnosis.evidence
                     if e.rule and (e.finding or {}).get("severity") not in ("info", "low"))


def grave(findings: Sequence[Finding]) -> list[Finding]:
    """Those of medium severity and above."""
    return [f for f in findings if f.severity.rank >= Severity.MEDIUM.rank]


def exit_reasons(outcome: Outcome, verify: Verify) -> list[str]:
    """What the way in which the command ended says against the fix."""
    if outcome.timed_out:
        return [f"the command did not end within {verify.timeout:g} s and was killed"]
    if outcome.out_of_memory:
        return ["the command used more memory than allowed and was killed"]
    if outcome.exit_code != 0:
        return [f"the command ended with exit code {outcome.exit_code}"]
    return []


def _run_reasons(diagnosis: Diagnosis, before: NewRun, after: NewRun) -> list[str]:
    old, known = cited_rules(diagnosis), {f.rule for f in before.findings}
    again = [f"the old finding is back: {f.rule} {f.statement}" for f in grave(after.findings)
             if f.rule in old and is_back(f, diagnosis, before, after)]
    other = [f"another critical finding came: {f.rule} {f.statement}" for f in after.findings
             if f.severity is Severity.CRITICAL and f.rule in old and not is_back(f, diagnosis, before, after)]
    new = [f"a new critical finding: {f.rule} {f.statement}" for f in after.findings
           if f.severity is Severity.CRITICAL and f.rule not in known | old]
    return again + other + new


def is_back(finding: Finding, diagnosis: Diagnosis, before: NewRun, after: NewRun) -> bool:
    """Whether a finding of a cited rule is the one that was cited, or one of the failed run about the same."""
    known = [f for f in (*cited_findings(diagnosis), *grave(before.findings)) if f.rule == finding.rule]
    return is_cited(finding, diagnosis) and (not known or seen_again(finding, known, before.levels, after.levels))


def _step_reasons(diagnosis: Diagnosis, after: NewRun, verify: Verify) -> tuple[list[str], list[str]]:
    """(reasons against, notes)"""
    if after.last_step is None:
        if verify.steps is not None:
            return [f"{verify.steps} steps were asked for, and the new run counts none"], []
        return [], ["the new run counts no steps: how far it got could not be checked"]
    needed = steps_needed(failing_step(diagnosis), verify)
    if after.last_step >= needed:
        return [], [f"the new run reached step {after.last_step:g}; {needed:g} were needed"]
    if verify.steps is None and after.planned_steps is not None and after.last_step >= after.planned_steps - 1:
        return [], [f"the new run ended as planned at step {after.last_step:g}; {needed:g} are usual"]
    return [f"the new run reached only step {after.last_step:g}; {needed:g} are needed to be past the old fault"], []


HIGHER_IS_BETTER = frozenset({"accuracy", "r2", "reward", "codebook_used", "codebook_perplexity"})
LOWER_IS_BETTER = frozenset({"loss", "mse", "nll", "perplexity", "memory", "skipped_steps", "nan_steps"})
WORSE = 0.05
"""Share by which a metric's last value must be worse to count as a regression: beyond the noise of two runs."""


def regressions(before: NewRun, after: NewRun) -> tuple[str, ...]:
    """What the new run shows that is worse than in the old one."""
    known = {f.rule for f in before.findings}
    new = [f"new: {f.rule} {f.statement}" for f in grave(after.findings) if f.rule not in known]
    moved = [f"{name}: {_number(old)} before, {_number(now)} after" for name, old in before.metrics.items()
             if (now := after.metrics.get(name)) is not None and _worse(name, old, now)]
    return (*new, *moved)


def _worse(name: str, old: float, now: float) -> bool:
    base = name.split(" ")[-1]  # the group stands before the name: "validation loss"
    if not (math.isfinite(old) and math.isfinite(now)):
        return math.isfinite(old) and base in HIGHER_IS_BETTER | LOWER_IS_BETTER
    margin = WORSE * max(abs(old), 1e-12)
    return (base in LOWER_IS_BETTER and now > old + margin) or (base in HIGHER_IS_BETTER and now < old - margin)


def steps_without_recurrence(diagnosis: Diagnosis, before: NewRun, after: Sequence[NewRun]) -> float | None:
    """How far every new run went beyond the old fault without showing it again; see `Verification`."""
    old = cited_rules(diagnosis)
    back = any(f.rule in old and is_back(f, diagnosis, before, n) for n in after for f in grave(n.findings))
    if not after or back or any(n.last_step is None for n in after):
        return None
    return max(0.0, min(n.last_step or 0.0 for n in after) - (failing_step(diagnosis) or 0.0))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def judge(diagnosis: Diagnosis, verify: Verify, outcomes: Sequence[Outcome], before: NewRun, after: Sequence[NewRun],
          session: Path) -> Verification:
    """What speaks against the fix over all runs of the command, or over the new run's artifacts without a command.

    The result is "failed" or, where nothing does, "passed_effect_not_shown": `results.settled` says what was shown.
    """
    reasons: list[str] = []
    endings: list[str] = []
    notes: list[str] = []
    for number, outcome in enumerate(outcomes, 1):
        run = f"run {number}: " if len(outcomes) > 1 else ""
        endings += [run + r for r in exit_reasons(outcome, verify)]
        if prints_nonfinite(judged_output(outcome.folder)):
            reasons.append(f"{run}the command ended with exit code {outcome.exit_code}"
                           f"{', but' if outcome.exit_code == 0 else ', and'} its output shows a loss or gradient norm "
                           "that is not finite")
    reasons = [*endings, *reasons]
    for number, new in enumerate(after, 1):
        run = f"run {number}: " if len(after) > 1 else ""
        reasons += [run + r for r in _run_reasons(diagnosis, before, new)]
        if new.metrics or verify.steps is not None:
            against, remarks = _step_reasons(diagnosis, new, verify)
            reasons += [run + r for r in against]
            notes += [run + r for r in remarks]
        else:
            notes.append(f"{run}no metrics were found: judged by the exit code and the error lines alone")
    mixed = len(outcomes) > 1 and len({o.exit_code == 0 for o in outcomes}) > 1
    if mixed:
        notes.append("the runs disagree: the fault still comes and goes")
    last = outcomes[-1] if outcomes else None
    good = (f"{len(outcomes)} runs passed" if len(outcomes) > 1 else "the command passed" if outcomes
            else "the new run shows neither the old finding nor a new critical one")
    good += _seen_instead_of_steps(before, after[-1]) if after else ""
    return Verification(
        passed=False, result="failed" if reasons else "passed_effect_not_shown",
        reasons=tuple(dict.fromkeys(reasons)) or (good,), endings=tuple(dict.fromkeys(endings)),
        notes=tuple(dict.fromkeys(notes)),
        command=None if verify.command is None else shown(verify.command),
        exit_code=last.exit_code if last else None, timed_out=any(o.timed_out for o in outcomes),
        seconds=sum(o.seconds for o in outcomes),
        output=(last.folder / "output.log").relative_to(session).as_posix() if last else None,
        regressions=tuple(dict.fromkeys(r for new in after for r in regressions(before, new))),
        steps_without_recurrence=steps_without_recurrence(diagnosis, before, after))


def _seen_instead_of_steps(before: NewRun, after: NewRun) -> str:
    """For a run that counts no steps: a metric that moved the right way, as the verdict rests on it."""
    if after.last_step is not None or not after.metrics:
        return ""
    moved = [f"{name} went from {_number(old)} to {_number(now)}" for name, old in before.metrics.items()
             if (now := after.metrics.get(name)) is not None and _worse(name, now, old)]
    return f", {moved[0]}; it counts no steps" if moved else "; it counts no steps and shows no metric that improved"


def shown(command: str | tuple[str, ...]) -> str:
    """The command as it is typed."""
    import shlex

    return command if isinstance(command, str) else shlex.join(command)
