"""A collective waited until its timeout, or met another one: the ranks do not run the same sequence of collectives.

The rank that reports is the one that waits; the fault is with a rank that diverged: an uneven number of batches, a
collective under `if rank == 0`, an exception or a long job on another rank, parameters unused on one rank only.
Operation, sequence number, timeout and elements come from NCCL's watchdog; gloo gives the time only. When another
rank raised first, that exception is the incident and this is its echo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.mismatched import speaks_of_mismatch
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 20
TOGETHER = True

RULE = Rule(
    id="L515",
    name="collective-timeout",
    title="A collective operation timed out",
    severity=Severity.CRITICAL,
    sees="NCCL watchdog lines, gloo's 'Timed out waiting', monitoredBarrier, broken connections between ranks.",
    matters="All ranks stop; the rank that speaks is not the one at fault.",
    alike=("A rank that raised or was killed first: look at every rank's log.", "A slow checkpoint or data set on "
                                                                                "rank 0."),
    confirm=("Compare the number of batches per rank, and every collective under a condition on the rank.",
             "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1: the flight recorder shows which "
             "rank's last "
             "collective differs.",
             "py-spy dump --pid PID on every rank while it hangs."),
)

_CLAIM = re.compile(
    r"Watchdog caught collective operation timeout|collective operation timeout|Timed out waiting \d+ms"
    r"|Timeout at (?:NCCL work|collective)|failed to pass monitoredBarrier|monitoredBarrier|wait timeout after \d+ms"
    r"|NCCL (?:error|communicator)|ncclRemoteError|ncclSystemError|ncclUnhandledCudaError|ncclInternalError"
    r"|Connection (?:closed|reset) by (?:remote )?peer|Mismatched collective"
    r"|Socket Timeout|Some NCCL operations have failed or timed out"
    r"|Heartbeat monitor timed out|Detected mismatch between collectives on ranks|Application timeout caused pair "
    r"closure"
)
_WORK = re.compile(r"SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<elements>\d+))?(?:, NumelOut=\d+)?"
                   r"(?:, Timeout\(ms\)=(?P<timeout>\d+))?")
_RAN = re.compile(r"ran for (\d+) milliseconds")
_LAST = re.compile(r"last enqueued(?: NCCL)? work: (?P<enqueued>-?\d+), last completed(?: NCCL)? work: "
                   r"(?P<completed>-?\d+)")
_WAITED = re.compile(r"Timed out waiting (\d+)ms for (\w+) operation|wait timeout after (\d+)ms|in (\d+) ?ms")
_RANK = re.compile(r"\bRank (\d+)\]|\[Rank (\d+)\]|\brank(?:s)? (\d+) (?:failed|in)")
_CLOSED = re.compile(r"Connection (?:closed|reset) by (?:remote )?peer|Application timeout caused pair closure"
                     r"|ncclRemoteError")
_BACKENDS = (("nccl", re.compile(r"(?i)nccl")), ("gloo", re.compile(r"(?i)gloo")))


def claims(event: ErrorEvent) -> bool:
    """Waiting or broken collectives."""
    waiting = event.type == fatal_lines.COLLECTIVE_TIMEOUT or _CLAIM.search(event.message) is not None
    return event.kind != "warning" and (waiting or speaks_of_mismatch(event.message))


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    events = [incident.error, *incident.companions]
    text = "\n".join(e.message for e in events)
    measured = _numbers(text)
    ranks = sorted({*_ranks(text), *(r for e in events if _CLAIM.search(e.message) for r in e.ranks), *incident.ranks})
    if ranks:
        measured["ranks"] = tuple(ranks)
    waited = measured.get("waited_s")
    operation = measured.get("operation") or "collective"
    who = f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:8]))}" if ranks else "a rank"
    sequence = f" (sequence number {measured['sequence']})" if "sequence" in measured else ""
    if measured["kind"] == "connection-lost":
        statement = f"{who} lost the connection to another rank inside a collective: that rank ended first"
    elif measured["kind"] == "mismatch":
        statement = f"the ranks called different collectives{sequence}"
    else:
        time = f" for {waited:g} s" if isinstance(waited, float) else ""
        statement = (f"{who} waited{time} in {operation}{sequence} for the others: the ranks do not run the same "
                     "collectives")
    return report(RULE, incident, statement, bearing=Bearing.SIGN, measured=measured,
                  surfaced="the rank that notices it need not be the one that diverged"
                  if measured["kind"] == "mismatch" else "a rank that waits reports, the rank that diverged is another")


def _numbers(text: str) -> dict[str, Value]:
    measured: dict[str, Value] = {"kind": _kind(text)}
    backend = next((name for name, pattern in _BACKENDS if pattern.search(text)), None)
    if backend is not None:
        measured["backend"] = backend
    if work := _WORK.search(text):
        measured |= {"operation": work["op"], "sequence": int(work["seq"])}
        operations = sorted({w["op"] for w in _WORK.finditer(text) if w["seq"] == work["seq"]})
        if len(operations) > 1:
            measured |= {"operations": tuple(operations), "kind": "mismatch"}
        if work["elements"]:
            measured["elements"] = int(work["elements"])
        if work["timeout"]:
            measured["timeout_s"] = int(work["timeout"]) / 1000
    if ran := _RAN.search(text):
        measured["waited_s"] = int(ran[1]) / 1000
    elif waited := _WAITED.search(text):
        measured["waited_s"] = int(next(g for g in (waited[1], waited[3], waited[4]) if g)) / 1000
        if waited[2]:
            measured["operation"] = waited[2]
    if last := _LAST.search(text):
        measured |= {"last_enqueued": int(last["enqueued"]), "last_completed": int(last["completed"])}
    return measured


def _kind(text: str) -> str:
    if speaks_of_mismatch(text):
        return "mismatch"
    if re.search(r"(?i)timeout|timed out|monitoredBarrier", text):
        return "timeout"
    return "connection-lost" if _CLOSED.search(text) else "nccl-error"


def _ranks(text: str) -> Sequence[int]:
    return [int(next(g for g in m.groups() if g)) for m in _RANK.finditer(text)][:1000]
