"""A DataLoader worker failed as a process: CUDA after a fork, pickling, shared memory, open files, a silent death.

An ordinary exception inside `__getitem__` ("Caught KeyError in DataLoader worker process 0") is not this: it is
judged by its own rule at its own line. The main process's line (`for batch in loader`) is never the faulty one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 32
TOGETHER = True

RULE = Rule(
    id="L510",
    name="dataloader-worker",
    title="A DataLoader worker failed",
    severity=Severity.CRITICAL,
    sees="'Cannot re-initialize CUDA in forked subprocess', pickling errors, bus errors, 'exited unexpectedly', "
         "timeouts.",
    matters="The main process reports only that a worker is gone; the cause is in the data set or the host.",
    alike=("The OOM killer took the worker (L509).", "An exception in __getitem__, judged by its own rule."),
    confirm=("num_workers=0: the real exception appears at its own line.",
             "pickle.dumps(dataset) and a scan of vars(dataset) for modules, open files, lambdas and CUDA tensors.",
             "df -h /dev/shm before and while it runs."),
)

_KINDS: tuple[tuple[str, re.Pattern[str], Bearing, str], ...] = tuple(
    (kind, re.compile(pattern), bearing, words) for kind, pattern, bearing, words in (
        ("cuda-in-fork", r"Cannot re-initialize CUDA in forked subprocess|CUDA error: initialization error"
                         r"|cudaErrorInitializationError",
         Bearing.CAUSE, "the data set or collate function uses CUDA inside a forked worker"),
        ("unpicklable", r"(?i)can't pickle|cannot pickle|Can't get (?:local object|attribute)|PicklingError",
         Bearing.CAUSE, "the data set cannot be pickled for a spawned worker"),
        ("shared-memory", r"insufficient shared memory|unable to (?:open|mmap|allocate|write to) .{0,40}shared memory"
                          r"|[Bb]us error|No space left on device.{0,40}/(?:dev/shm|torch_)",
         Bearing.SIGN, "shared memory (/dev/shm) ran out in a worker"),
        ("too-many-open-files", r"Too many open files|received 0 items of ancdata",
         Bearing.SIGN, "the process has too many files open (tensors shared as file descriptors)"),
        ("start-method", r"An attempt has been made to start a new process before the current process has finished its "
                         r"bootstrapping",
         Bearing.CAUSE, "the script starts workers outside `if __name__ == '__main__'`"),
        ("killed-by-signal", r"killed by signal: (?P<signal>[\w ]+)|Unexpected segmentation fault encountered in "
                             r"worker",
         Bearing.SIGN, "a worker was killed by a signal"),
        ("timeout", r"DataLoader timed out after (?P<seconds>\d+)",
         Bearing.SIGN, "no batch arrived within the loader's timeout"),
        ("exited", r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) exited unexpectedly(?: with exit code "
                   r"(?P<code>-?\d+))?",
         Bearing.COMPANION, "a worker died without saying why"),
        ("other", r"[Dd]ata[Ll]oader worker.{0,80}(?:died|crash|fail|exit)",
         Bearing.COMPANION, "a worker failed"),
    )
)


def claims(event: ErrorEvent) -> bool:
    """Failures of workers as processes. Outside loaders only where the frames or the message speak of workers."""
    if event.kind == "warning":
        return False
    kind = next((k for k, p, _, _ in _KINDS if p.search(event.message) or p.search(event.type)), None)
    if kind in ("unpicklable", "shared-memory", "too-many-open-files"):
        return event.type == fatal_lines.SHARED_MEMORY or _about_workers(event)
    return kind is not None


def _about_workers(event: ErrorEvent) -> bool:
    told = "worker" in event.message or "multiprocess" in event.message or "ancdata" in event.message
    return told or any("dataloader" in f.file or "multiprocessing" in f.file for f in event.frames)


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    kind, match, bearing, words = next(
        (k, m, s, w) for k, p, s, w in _KINDS for m in [p.search(incident.text) or p.search(incident.error.type)] if m
    )
    measured: dict[str, Value] = {"kind": kind, **{k: v.strip() for k, v in match.groupdict().items() if v is not None}}
    if kind == "unpicklable":
        words += f" ({incident.text.splitlines()[0][:120]})"
    elif measured.get("signal"):
        words += f" ({measured['signal']})"
    elif measured.get("code"):
        words += f" (exit code {measured['code']})"
    own = kind in ("cuda-in-fork",) and any(not f.library for f in incident.error.frames)
    return report(RULE, incident, words, bearing=bearing, measured=measured,
                  surfaced="" if own else "the main process only notices what its workers did")
