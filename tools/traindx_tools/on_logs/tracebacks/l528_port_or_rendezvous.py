"""The processes of a distributed job did not find each other.

The port is taken (an old job is still alive), the address is wrong or blocked, a node never came, or MASTER_ADDR, RANK
and WORLD_SIZE are not set. Nothing was trained: the fault is in how the job was started.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 19
TOGETHER = True

RULE = Rule(
    id="L528",
    name="port-or-rendezvous",
    title="The processes did not find each other",
    severity=Severity.CRITICAL,
    sees="EADDRINUSE, connection refused or timed out at the start, rendezvous errors, missing environment variables.",
    matters="The job does not start.",
    alike=("A collective that times out later (L515).", "A service of the user's own (a tracker) that refuses "
                                                        "connections."),
    confirm=("ss -ltnp | grep PORT: who listens?", "From another node: nc -vz MASTER_ADDR MASTER_PORT",
             "env | grep -E 'MASTER|RANK|WORLD' on every node."),
)

_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("port-in-use", r"EADDRINUSE|[Aa]ddress already in use", "the port is already in use"),
    ("environment", r"environment variable (?P<name>\w+) expected, but not set", "environment variable {name} is "
                                                                                 "not set"),
    ("refused", r"(?:client socket|connect\w*|TCPStore|c10d|rendezvous|MASTER).{0,200}Connection refused"
                r"|connection to the "
                r"C10d store has failed|failed to connect to all addresses",
     "the connection to the first process was refused"),
    ("timed-out", r"client socket has timed out after (?P<seconds>\d+)ms|Timed out after \d+ seconds waiting for "
                  r"clients"
                  r"|RendezvousTimeoutError|rendezvous.{0,80}timed? ?out|store->get\('\d+'\).{0,60}timeout"
                  r"|wait\(\) timed out|Barrier timed out|DEADLINE_EXCEEDED.{0,120}(?:RegisterTask|Barrier"
                  r"|coordination)",
     "a process waited for the others at the start and they never came"),
    ("rendezvous", r"RendezvousConnectionError|RendezvousClosedError|RendezvousStateError|RendezvousGracefulExitError"
                   r"|Name or service not known|Temporary failure in name resolution|no address associated with "
                   r"hostname",
     "the address of the first process cannot be used"),
    ("duplicate-gpu", r"Duplicate GPU detected", "two ranks use one GPU"),
    ("not-initialised", r"Default process group has not been initialized", "a collective was called before "
                                                                           "init_process_group"),
))
_DISTRIBUTED = re.compile(r"(?i)torch/distributed|torch\.distributed|jax.*distributed|deepspeed|accelerate"
                          r"|rendezvous|TCPStore|c10d"
                          r"|nccl|gloo|server socket|client socket|DistNetworkError|DistStoreError|Rendezvous"
                          r"|process group")
_PORT = re.compile(r"port: (\d{2,5})|:(\d{4,5})\b")


def claims(event: ErrorEvent) -> bool:
    """Errors of starting a distributed job: told by the message and by what raised it."""
    if event.kind == "warning" or not any(p.search(f"{event.type} {event.message}") for _, p, _ in _KINDS):
        return False
    told = f"{event.type} {event.message} {' '.join(f.file for f in event.frames[-30:])}"
    return _DISTRIBUTED.search(told) is not None or "EADDRINUSE" in event.message


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        text = f"{incident.error.type} {incident.text}"
        kind, match, words = next((k, m, w) for k, p, w in _KINDS for m in [p.search(text)] if m is not None)
        found: dict[str, Value] = {k: v for k, v in match.groupdict().items() if v is not None}
        port = _PORT.search(incident.text)
        statement = words.format(**found)
        if port is not None:
            found["port"] = int(port[1] or port[2])
            statement += f" (port {found['port']})"
        yield report(RULE, incident, statement, bearing=Bearing.CAUSE, measured={"kind": kind, **found})
