"""The host is out of memory: the kernel killed the process, or an allocation on the host was refused.

`Killed`, exit code 137 or -9, "Out of memory: Killed process", "oom-kill event", OOMKilled: the operating system or the
job scheduler ended the process, so there is no traceback. "can't allocate memory" and "Unable to allocate" are refusals
with a size: either the host is full or the size is absurd (a wrong shape). SIGKILL alone can also be a person or a
scheduler: only the OOM killer's own lines are certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.memory_numbers import gib, readable
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 30
TOGETHER = True

RULE = Rule(
    id="L509",
    name="host-oom",
    title="The host is out of memory",
    severity=Severity.CRITICAL,
    sees="`Killed`, exit codes 137 and -9, lines of the OOM killer, Slurm and Kubernetes, refused host allocations.",
    matters="The process is gone without a traceback; the kernel's log is the only witness.",
    alike=("SIGKILL by a person, a scheduler's time limit or a preemption.",
           "/dev/shm too small (L510): a bus error in a worker.", "The GPU's memory (L508)."),
    confirm=("dmesg -T | grep -i -E 'oom|killed process' on the host, or `sacct -j JOB "
             "--format=MaxRSS,State,ExitCode`.",
             "Watch the RSS of the main process and of each worker over an epoch: flat or growing?",
             "num_workers=0: if memory stays flat then, the workers' copies of the data set grow."),
)

_OOM_KILLER = re.compile(r"(?i)out of memory: killed process|oom-kill|oom_kill|OOMKilled|OOM Killed|out-of-memory "
                         r"handler"
                         r"|running low on memory")
_SIGKILL = re.compile(r"(?<!\d)(?:-9|137)\b.{0,40}(?:pid|SIGKILL|local_rank)|SIGKILL|exitcode  : -9|exit\w* "
                      r"(?:code|status) "
                      r"(?:137|-9)|return[ _]?code\D{0,8}(?:137|(?<=\W)-9)\b|killed by signal: Killed")
_REFUSED = re.compile(r"DefaultCPUAllocator: (?:can't allocate|not enough) memory.{0,40}?(?:allocate|requested)? "
                      r"([\d.]+) ?(bytes)|Unable to allocate ([\d.]+) ?([KMGTP]?i?B)|Cannot allocate memory"
                      r"|std::bad_alloc")

_DEAD = re.compile(r"exitcode: -9\) local_rank: (\d+)|rank      : (\d+) \(local_rank: \d+\)\n  exitcode  : -9")


def claims(event: ErrorEvent) -> bool:
    """A killed process or a refused host allocation."""
    if event.kind == "warning":
        return False
    killed = event.type in (fatal_lines.KILLED, fatal_lines.OOM_KILLER)
    named = event.type.split(".")[-1] in ("MemoryError", "_ArrayMemoryError", "ArrayMemoryError")
    message = event.message
    return killed or named or any(p.search(message) for p in (_OOM_KILLER, _SIGKILL, _REFUSED))


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    text = "\n".join([incident.text, *(e.message for e in incident.companions)])
    if _own_limit(incident):
        return report(RULE, incident, "the program's own limit of memory stopped it (it raised MemoryError itself)",
                      bearing=Bearing.SIGN, measured={"kind": "own-limit"})
    types = {incident.error.type, *(e.type for e in incident.companions)}
    refused = _REFUSED.search(incident.text)
    if refused is not None or "MemoryError" in incident.error.type:
        return _refused(incident, refused)
    worker = "DataLoader worker" in text
    if fatal_lines.OOM_KILLER in types or _OOM_KILLER.search(text):
        return report(RULE, incident, "the OOM killer ended the process: the host or its memory limit was full",
                      bearing=Bearing.CAUSE, measured={"kind": "oom-killer-worker" if worker else "oom-killer"})
    dead = sorted({int(r) for m in _DEAD.finditer(text) for r in m.groups() if r})
    measured: dict[str, Value] = {"killed_ranks": tuple(dead)} if dead else {}
    kind = "worker-killed" if worker else "exit-137" if incident.error.type != fatal_lines.KILLED else "killed"
    who = "a DataLoader worker" if worker else f"the process of rank {dead[0]}" if dead else "the process"
    return report(RULE, incident, f"{who} was ended by SIGKILL, as the OOM killer does when the host's memory is full",
                  bearing=Bearing.SIGN, measured={"kind": kind, **measured},
                  surfaced="the main process only notices that a worker is gone" if worker else "")


def _own_limit(incident: Incident) -> bool:
    """Whether the program raised the error: Python's own has no message, and numpy's and torch's name an allocation."""
    named = incident.error.type.split(".")[-1] == "MemoryError"
    message = incident.error.message.partition("MemoryError:")[2] or incident.error.message
    return named and _REFUSED.search(incident.text) is None and len(message.strip()) > 12


def _refused(incident: Incident, refused: re.Match[str] | None) -> Finding:
    measured: dict[str, Value] = {"kind": "allocation-refused"}
    statement = "the host refused an allocation"
    if refused is not None and any(refused.groups()):
        size = gib(refused)
        measured["requested_gib"] = round(size, 3)
        statement = f"the host refused an allocation of {readable(size)}"
        if size >= 2**10:
            measured["kind"] = "allocation-absurd"
            statement += ", which no host has: a shape is wrong"
    return report(RULE, incident, statement, bearing=Bearing.SIGN, measured=measured)
