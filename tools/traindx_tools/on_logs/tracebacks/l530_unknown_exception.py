"""An error that no other rule knows: type, message and the user's line, so that nothing that ended a run stays unsaid.

Read the message, then the innermost frame of the user's own code. A failure that was raised by the project itself
says in its own words what it expected.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.blocks import CUT
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 100

RULE = Rule(
    id="L530",
    name="unknown-exception",
    title="The run raised an error",
    severity=Severity.CRITICAL,
    sees="Every exception and fatal line that no other rule claims.",
    matters="It ended the run, or it was caught: the finding says which.",
    alike=("An echo of an error on another rank: look for an earlier one.",),
    confirm=("Reproduce with one small batch on the CPU, num_workers=0 and one process.",
             "Read the whole message and the innermost frame of your own code."),
)

_ENDED = {
    "KeyboardInterrupt": ("interrupted", Severity.INFO, "the run was interrupted by hand"),
    "SystemExit": ("exit", Severity.LOW, "the script ended itself"),
    fatal_lines.TIME_LIMIT: ("time-limit", Severity.LOW, "the scheduler's time limit ended the job"),
    fatal_lines.TERMINATED: ("terminated", Severity.LOW, "the job was cancelled or terminated"),
    fatal_lines.SEGFAULT: ("segmentation-fault", Severity.CRITICAL, "native code crashed (segmentation fault or "
                                                                    "bus error)"),
    fatal_lines.PYTHON_FATAL: ("native-crash", Severity.CRITICAL, "the interpreter crashed"),
    fatal_lines.ABORTED: ("aborted", Severity.CRITICAL, "the process aborted"),
    fatal_lines.HANG_DUMP: ("hang-dump", Severity.HIGH, "faulthandler's timer expired: the run hung"),
    CUT: ("cut", Severity.HIGH, "the log ends inside a traceback, before the line that names the exception"),
}


def claims(event: ErrorEvent) -> bool:
    """Everything."""
    return True


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    error = incident.error
    known = _ENDED.get(error.type.split(".")[-1])
    if known is not None:
        kind, severity, words = known
        return report(RULE, incident, words, bearing=Bearing.SIGN, severity=severity,
                      measured={"kind": kind})
    message, kind = short(incident.text), _kind(error)
    name = error.type.strip(".").split(".")[-1] or "an exception whose name is cut off"
    return report(RULE, incident, f"{name}: {message}" if message else name,
                  bearing=Bearing.CAUSE if kind == "syntax" else Bearing.COMPANION, measured={"kind": kind})


def _kind(error: ErrorEvent) -> str:
    if error.type in ("SyntaxError", "IndentationError", "TabError"):
        return "syntax"
    if not error.frames:
        return "no-traceback"
    return "raised-by-a-library" if error.frames[-1].library else "raised-by-the-project"
