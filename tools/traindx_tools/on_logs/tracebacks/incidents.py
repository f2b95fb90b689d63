"""Errors judged together: which rule speaks for which error, what is only an echo of another one, what was survived.

Every rule of this room says by `claims(event)` which errors are its own and by `PRIORITY` how specific it is (a lower
number is more specific). One error gets one rule: along its chain of causes the root is asked first. When one process
dies, others complain: their complaints are echoes and become companions of the error that came first.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from weakref import WeakKeyDictionary

import numpy as np

from traindx_tools.on_logs.run import ErrorEvent, Frame, Run
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.blocks import ANOMALY, CUT
from traindx_tools.on_logs.tracebacks.mismatched import speaks_of_mismatch
from traindx_tools.on_logs.tracebacks.teardown import is_teardown
from traindx_tools.rules import rules_in

WEAK = 90
"""Claims from this priority on are made only where no other exception of the chain has a better one."""
SURVIVED_RECORDS = 5
"""So many further records of metrics after an error mean that the run went on: the error was caught."""
SURVIVED_LINES = 200
"""The same in ordinary lines, where the log holds no metrics that could be read."""
RECURRED = 3
"""An error that was written so often, with records between the first and the last, was survived each time before."""

_ROOM = "traindx_tools.on_logs.tracebacks"

_ECHO = re.compile(
    r"Connection (?:closed|reset) by (?:remote )?peer|NCCL communicator was aborted|Some NCCL operations have failed"
    r"|ncclRemoteError|got signal: 15|exitcode  : (?!-9|137)|Broken pipe|process group watchdog thread terminated"
    r"|NCCL watchdog thread terminated|Heartbeat monitor timed out|terminated with exit code (?!-9|137)"
)
_ECHO_TYPES = re.compile(
    r"(?:^|\.)(?:ChildFailedError|ProcessExitedException|BrokenPipeError|ConnectionResetError|EOFError|SignalException"
    r"|CalledProcessError|" + "|".join((fatal_lines.ABORTED, fatal_lines.TERMINATED, fatal_lines.EXIT_CODE)) + r")$"
)
_WAITED = re.compile(r"(?i)timed out waiting|collective operation timeout|watchdog|timeout at nccl|wait timeout"
                     r"|exited unexpectedly|monitoredbarrier")
_ENDS = frozenset({fatal_lines.KILLED, fatal_lines.OOM_KILLER, fatal_lines.SEGFAULT, fatal_lines.ABORTED})
_VARYING = re.compile(r"\d+")
_DEVICE = re.compile(r"CUDA error|CUBLAS_STATUS|CUDNN_STATUS|cuBLAS|cuDNN|device-side assert|HIP error")


@dataclass(frozen=True)
class Incident:
    """One error as a rule judges it.

    `printed` is the event as it stands in the log, `error` the exception of its chain that the rule claims,
    `companions` are events that go with it: repeats with other numbers, echoes, device asserts, forward traces.
    """

    rule: str
    printed: ErrorEvent
    error: ErrorEvent
    companions: tuple[ErrorEvent, ...] = ()
    records_after: int | None = None
    """Records of metrics in the same log after its last repeat; None where that log holds no metrics."""
    records_between: int = 0
    """Records of metrics between its first and its last repeat."""
    step: float | None = None
    """The last step (or epoch) that the log names before it."""
    unit: str = "step"
    ends: int = 0
    """How often a process ended, where it is an end that shell, launcher and wrapper each tell in their own words."""

    @property
    def text(self) -> str:
        """The message of the claimed exception."""
        return self.error.message

    @property
    def frame(self) -> Frame | None:
        """The user's frame: of the claimed exception, else of the one around it, else of a companion."""
        device = (c for c in self.companions if c.kind == "exception" and _DEVICE.search(c.message) is not None)
        events = (self.error, self.printed, *device)
        return next((e.user_frame for e in events if e.user_frame is not None), None)

    @property
    def survived(self) -> bool:
        """Whether the run went on long after it, or had done so each time before the last of several."""
        if self.records_between >= SURVIVED_RECORDS and self.printed.count >= RECURRED:
            return True
        if self.records_after is None:
            return self.printed.lines_after >= SURVIVED_LINES
        return self.records_after >= SURVIVED_RECORDS

    @property
    def count(self) -> int:
        """How often it happened, as far as it was written each time."""
        return self.ends or self.printed.count + sum(c.count for c in self.companions if c.type == self.printed.type)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that wrote it."""
        alike = (self.printed, *(c for c in self.companions if c.type == self.printed.type))
        return tuple(sorted({r for e in alike for r in e.ranks}))


_judged: WeakKeyDictionary[Run, Mapping[str, Sequence[Incident]]] = WeakKeyDictionary()


def incidents(run: Run, rule: str) -> Sequence[Incident]:
    """The incidents of a run that a rule speaks for, in the order of the log."""
    if run not in _judged:
        _judged[run] = _judge(run)
    return _judged[run].get(rule, ())


def forward_trace(incident: Incident) -> ErrorEvent | None:
    """Where anomaly mode says that the failing operation was made in the forward pass."""
    return next((c for c in incident.companions if c.type == ANOMALY), None)


def _judge(run: Run) -> dict[str, list[Incident]]:
    events = [e for e in run.errors if e.type != ANOMALY]
    found = [_claimed(run, e) for e in events]
    found = list(_without_echoes(_with_device_asserts(found)))
    traces = tuple(e for e in run.errors if e.type == ANOMALY)
    by_rule: dict[str, list[Incident]] = {}
    for incident in found:
        by_rule.setdefault(incident.rule, []).append(incident)
    return {rule: [_joined([*part], traces) for part in _parts(rule, group)] for rule, group in by_rule.items()}


# --- which rule

def chain(event: ErrorEvent) -> list[ErrorEvent]:
    """The exceptions of a chain, the root first."""
    links = [event]
    while links[-1].cause is not None and len(links) < 50:
        links.append(links[-1].cause)
    return links[::-1]


@lru_cache(maxsize=1)
def _claimants() -> tuple[tuple[int, str, ModuleType], ...]:
    modules = [(r.rule.id, importlib.import_module(r.module)) for r in rules_in(_ROOM)]
    return tuple(sorted(((m.PRIORITY, rule, m) for rule, m in modules), key=lambda c: c[:2]))


def _claimed(run: Run, event: ErrorEvent) -> Incident:
    links = [link for link in chain(event) if not is_teardown(link)] or chain(event)
    claims = [(weak, link, rule) for link in links for weak, rule in [_best(link)]]
    strong = next((c for c in claims if not c[0]), None)
    _, error, rule = strong or min(claims, key=lambda c: _priority_of(c[2]))
    step, unit = _step_before(run, event)
    return Incident(rule, event, error, (), _records_after(run, event), _records_between(run, event), step, unit)


def _best(event: ErrorEvent) -> tuple[bool, str]:
    priority, rule = next((p, rule) for p, rule, module in _claimants() if module.claims(event))
    return priority >= WEAK, rule


def _priority_of(rule: str) -> int:
    return next(p for p, r, _ in _claimants() if r == rule)


# --- what goes together

def _with_device_asserts(found: list[Incident]) -> list[Incident]:
    """Errors that the host saw after a failed device assert belong to the assert."""
    asserts = [i for i in found if i.error.type == fatal_lines.CUDA_ASSERT]
    if not asserts:
        return found
    ours = [i for i in found if i not in asserts and i.printed.kind != "warning" and _DEVICE.search(i.error.message)]
    first = _with(asserts[0], [i.printed for i in (*asserts[1:], *ours)])
    return [first, *(i for i in found if i not in asserts and i not in ours)]


def _without_echoes(found: list[Incident]) -> Iterator[Incident]:
    """An error that only follows from an earlier one on another process is its companion, not an error of its own."""
    faults = [i for i in found if i.printed.kind != "warning" and not i.survived]
    levels = {id(i): echo_level(i.error) for i in faults}
    lowest = min(levels.values(), default=0)
    first = min((i for i in faults if levels[id(i)] == lowest), key=lambda i: i.printed.line, default=None)
    if first is None:
        yield from found
        return
    echoes = [i for i in faults if i is not first and levels[id(i)] > lowest and _may_follow(i, first, levels[id(i)])]
    for incident in found:
        if incident is first:
            yield _with(incident, [e.printed for e in echoes])
        elif incident not in echoes:
            yield incident


def _may_follow(echo: Incident, first: Incident, level: int) -> bool:
    """Pure echoes follow from anything; a wait that ran out follows only from what happened before it."""
    return level == 2 or first.printed.source != echo.printed.source or first.printed.line <= echo.printed.line


def echo_level(event: ErrorEvent) -> int:
    """0 for a process's own error, 1 for a wait that ran out or a collective that met another one, 2 for what only
    follows when another process ends."""
    if event.type == "KeyboardInterrupt" or (_ECHO_TYPES.search(event.type) and "exitcode  : -9" not in event.message):
        return 2
    if event.type == CUT or _ECHO.search(event.message) is not None or is_teardown(event):
        return 2
    return 1 if _WAITED.search(event.message) is not None or speaks_of_mismatch(event.message) else 0


def _with(incident: Incident, companions: Sequence[ErrorEvent]) -> Incident:
    return replace(incident, companions=(*incident.companions, *companions))


def _parts(rule: str, group: list[Incident]) -> Iterator[list[Incident]]:
    """Incidents of one rule that are one and the same: of one place and sort, or all of them where the rule says so."""
    module = next(m for _, r, m in _claimants() if r == rule)
    together = getattr(module, "TOGETHER", False)
    sort_of = getattr(module, "sort_of", lambda _: "")
    parts: dict[object, list[Incident]] = {}
    for incident in group:
        frame = incident.frame
        sort = (incident.error.type, sort_of(incident.error))
        place = (*sort, frame.file, frame.line) if frame else (*sort, "")
        parts.setdefault("all" if together else place, []).append(incident)
    yield from parts.values()


def _joined(part: list[Incident], traces: tuple[ErrorEvent, ...]) -> Incident:
    """One incident for several: the one that ended the run if any did, best one that names a line."""
    last = min(part, key=lambda i: (i.survived, i.records_after or 0, i.frame is None))
    others = [i.printed for i in part if i is not last]
    before = [t for t in traces if t.source == last.printed.source and t.line <= last.printed.end_line]
    last = replace(last, ends=_ends(part)) if last.error.type in _ENDS else last
    return _with(last, [*(c for i in part if i is not last for c in i.companions), *others, *before[-1:]])


def _ends(part: Sequence[Incident]) -> int:
    """How often a process ended: what is said in other words, without a record in between, is said of the same end."""
    told: dict[str, Counter[str]] = {}
    between: dict[str, set[int]] = {}
    for incident in part:
        source, after = incident.printed.source, incident.records_after or 0
        told.setdefault(source, Counter())[_VARYING.sub("#", incident.error.message)] += incident.printed.count
        between.setdefault(source, set()).update((after, after + incident.records_between))
    return sum(max(*wordings.values(), len(between[source])) for source, wordings in told.items())


# --- where in the run

def _records_after(run: Run, event: ErrorEvent) -> int | None:
    series = [s for s in run.series if s.source == event.source and len(s)]
    end = max(event.last_line, event.end_line)
    return max((int(np.unique(s.line[s.line > end]).size) for s in series), default=None)


def _records_between(run: Run, event: ErrorEvent) -> int:
    if event.last_line <= event.end_line:
        return 0
    return max((int(((s.line > event.end_line) & (s.line < event.last_line)).sum()) for s in run.series
                if s.source == event.source), default=0)


def _step_before(run: Run, event: ErrorEvent) -> tuple[float | None, str]:
    best: tuple[int, float | None, str] = (-1, None, "step")
    for s in run.series:
        if s.source != event.source or s.unit == "line":
            continue
        before = np.flatnonzero(s.line <= event.line)
        if before.size and int(s.line[before[-1]]) > best[0]:
            best = (int(s.line[before[-1]]), float(s.position[before[-1]]), s.unit)
    return best[1], best[2]
