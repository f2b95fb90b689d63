"""What launchers and schedulers say of other processes: who was killed, who left with which code, which host is gone.

Wordings of torchrun, Slurm, Kubernetes and JAX's coordination service. A process that the launcher itself told to end,
or killed because it did not, did not end the job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from traindx_tools.on_logs.tracebacks.mismatched import speaks_of_mismatch
from traindx_tools.on_ranks.logs.speaking import speaks_of_others
from traindx_tools.on_ranks.logs.told import Claim
from traindx_tools.on_ranks.logs.words import absent_in, fingerprints

KILLED, MEMORY, SEGFAULT, EXITED, LOST, ABSENT, TOLD, RUNNING, MISMATCH = (
    "killed", "host-memory", "segfault", "exited", "host-lost", "absent", "told-to-end", "running", "mismatch")
_SIGNALS = {9: KILLED, 11: SEGFAULT, 7: SEGFAULT, 6: EXITED, 15: TOLD}


def _code(code: int) -> str:
    if code > 128:
        code = 128 - code
    return _SIGNALS.get(-code, EXITED) if code < 0 else EXITED



def numbers(text: str) -> list[int]:
    """The numbers of "3,7-9", at most 65,536."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdigit() and (high or low).isdigit():
            found.extend(range(int(low), min(int(high or low), int(low) + 65_535) + 1))
    return found


class ClaimReader:
    """Feed it the lines of a file; torchrun's table of failures spreads over several."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._rank: str | None = None
        self._closed: set[str] = set()
        """Processes that torchrun told to end, by pid: how they left says nothing."""

    def feed(self, number: int, text: str, host: str) -> Iterator[Claim]:
        """The claims of one line. `host`: the host that the line comes from, "" where it is not known."""
        if not speaks_of_others(text) and self._rank is None:
            return
        for kind, about in self._told(text, host):
            yield Claim(kind, about, text.strip()[:300], self.source, number)

    def _told(self, text: str, host: str) -> Iterator[tuple[str, str]]:
        yield from self._table(text)
        if speaks_of_mismatch(text):
            yield MISMATCH, ""
        if closing := _CLOSING.search(text):
            self._closed.add(closing[1] or closing[2])
        elif failed := _FAILED.search(text):
            told_to = failed["pid"] in self._closed
            yield TOLD if told_to else _code(int(failed["code"])), f"{host}/{failed['local']}"
        for pattern, told in _LINES:
            if (found := pattern.search(text)) is not None:
                yield from told(found, host)
                return
        yield from ((ABSENT, str(r)) for r in absent_in(text))

    def _table(self, text: str) -> Iterator[tuple[str, str]]:
        if found := re.match(r"\s*rank +: (\d+) \(local_rank: (\d+)\)", text):
            self._rank = found[1]
        elif (found := re.match(r"\s*exitcode +: (-?\d+)", text)) and self._rank is not None:
            yield _code(int(found[1])), self._rank
            self._rank = None


_SAID = (("ut Of Memory", MEMORY), ("OOM", MEMORY), ("egmentation", SEGFAULT), ("Bus error", SEGFAULT),
         ("Killed", KILLED), ("Terminated", TOLD))
"""What srun says of a task, the surest first."""


def _tasks(found: re.Match[str], _: str) -> Iterator[tuple[str, str]]:
    what = found["what"]
    code = re.search(r"exit code (\d+)", what)
    said = next((kind for word, kind in _SAID if word in what), None)
    kind = said or (_code(int(code[1])) if code else EXITED)
    yield from ((kind, str(t)) for t in numbers(found["tasks"]))


def _host(kind: str) -> Callable[[re.Match[str], str], Iterator[tuple[str, str]]]:
    def told(found: re.Match[str], _: str) -> Iterator[tuple[str, str]]:
        yield kind, f"{found['host']}/"

    return told


_LINES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Iterator[tuple[str, str]]]], ...] = (
    (re.compile(r"srun: error: \S+: tasks? (?P<tasks>[\d,-]+): (?P<what>.+)"), _tasks),
    (re.compile(r"srun: error: Node failure on (?P<host>[\w.-]+)"), _host(LOST)),
    (re.compile(r"\bON (?P<host>[\w.-]+) CANCELLED AT \S+ DUE TO NODE FAIL"), _host(LOST)),
    (re.compile(r"[Nn]ode[ /](?P<host>[\w.-]+)[^.]{0,60}(?:NodeNotReady|NotReady|has rebooted"
                r"|was rebooted)"), _host(LOST)),
    (re.compile(r"pod[ /](?P<host>[\w.-]+)\b.{0,120}OOMKilled"), _host(MEMORY)),
)
_CLOSING = re.compile(r"[Ss]ending process (\d+) closing signal|[Uu]nable to shutdown process (\d+)")
_FAILED = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)")


def running_in(text: str, source: str, line: int) -> Iterator[Claim]:
    """What TORCH_DISTRIBUTED_DEBUG=DETAIL says that two ranks run at the same time: "812|ALLREDUCE|[4096]"."""
    for rank, number, operation in fingerprints(text):
        yield Claim(RUNNING, str(rank), f"{number}|{operation.name}|{operation.shape}", source, line)
