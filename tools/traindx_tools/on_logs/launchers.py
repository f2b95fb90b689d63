"""Whose line it is: what launchers, schedulers and cluster tools put before the lines of each process.

Worked out once for a file from its first lines, because `3: ` before a line means a rank only where every line has one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import PurePath

SHARE = 0.6
"""Of the first lines that have to carry a prefix that an ordinary line could carry by chance."""
WITHIN_SHARE, LEAST_WITHIN = 0.9, 8
"""Of the lines from the first prefix to the last, and how many: what the launcher says for itself (a banner, the
traceback of the command that ended) has no prefix, stands before or behind, and may be longer than all the rest."""
_RANK_IN_NAME = re.compile(r"(?:^|[^a-zA-Z])rank[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
_FORMS = {
    # kubectl logs --prefix: [pod/trainer-worker-3/pytorch] ...; the container is the process's host
    "kubectl": re.compile(rb"\[pod/(?P<host>[\w.-]{1,253})[/ ][\w.-]{1,63}\] ?"),
    # stern: trainer-worker-3 pytorch ...
    "stern": re.compile(rb"(?P<host>[a-z][a-z0-9.-]*-(?:\d{1,5}|[a-z0-9]{5})) [a-z][a-z0-9-]{1,62} "),
    # docker compose up: app-trainer-1  | ...
    "compose": re.compile(rb"(?P<host>[A-Za-z][\w.-]{0,80}-\d{1,5})\s{1,40}\| "),
    # srun --label: "  3: ..."
    "srun": re.compile(rb"\s{0,5}(?P<rank>\d{1,6}):(?: |$)"),
    # mpirun --tag-output
    "mpi": re.compile(rb"\[\d+,(?P<rank>\d{1,6})\]<std(?:err|out)>:\s?"),
}
_WITHIN = re.compile(
    rb"\[rank ?(?P<rank>\d{1,6})\]:? ?|\[(?:\w{1,40}_)?default_?(?P<local>\d{1,6})\]:\s?"
    rb"|\[trainer(?P<local2>\d{1,4})\]:\s?")
"""torch (`[rank3]: `) and torchrun --tee (`[default3]:`), also behind one of the others."""


@dataclass(frozen=True)
class Whose:
    """Where the message begins, and the process as far as the prefix tells it."""

    start: int = 0
    rank: int | None = None
    local: int | None = None
    host: str | None = None
    at: tuple[int, int] | None = None
    """From where to where the outer prefix tells the rank, or else the host."""


NOBODY = Whose()


@dataclass(frozen=True)
class Form:
    """The prefix that the lines of a file have, by name; "" for none but torch's own."""

    name: str = ""

    def outer_end(self, line: bytes) -> int:
        """Where the launcher's own prefix ends; 0 where the line has none."""
        found = _FORMS[self.name].match(line) if self.name else None
        return found.end() if found else 0

    def whose(self, line: bytes) -> Whose:
        """The prefix of one line."""
        start, rank, local, host, at = 0, None, None, None, None
        if self.name and (found := _FORMS[self.name].match(line)):
            told = found.groupdict()
            start = found.end()
            rank = int(told["rank"]) if told.get("rank") else None
            host = told["host"].decode("ascii", "replace") if told.get("host") else None
            at = found.span("rank" if told.get("rank") else "host")
        if line[start:start + 1] == b"[" and (found := _WITHIN.match(line, start)):
            start = found.end()
            rank = int(found["rank"]) if found["rank"] else rank
            inner = found["local"] or found["local2"]
            local = int(inner) if inner else None
        return Whose(start, rank, local, host, at) if start else NOBODY


def rank_in_name(path: str) -> int | None:
    """The rank that the name of a file numbers (`rank_3.log`, `log_rank3.txt`)."""
    found = _RANK_IN_NAME.search(PurePath(path).name)
    return int(found[1]) if found else None


def form_of(lines: Sequence[bytes]) -> Form:
    """The form that most of the first lines have."""
    spoken = [line for line in lines if line.strip()]
    for name, pattern in _FORMS.items():
        at = [i for i, line in enumerate(spoken) if pattern.match(line)]
        most = len(at) >= max(2, SHARE * len(spoken))
        if (most or _in_one_piece(at)) and _LIKELY.get(name, _always)(spoken, pattern):
            return Form(name)
    return Form()


def _in_one_piece(at: Sequence[int]) -> bool:
    """Whether the lines with a prefix, by index, stand together and are more than chance would give."""
    return len(at) >= LEAST_WITHIN and len(at) >= WITHIN_SHARE * (at[-1] - at[0] + 1)


def _always(lines: Sequence[bytes], pattern: re.Pattern[bytes]) -> bool:
    return True


def _speaks_again(lines: Sequence[bytes], pattern: re.Pattern[bytes]) -> bool:
    """Whether numbers come again or fall: those that only rise are the line numbers of `grep -n`."""
    told = [int(m["rank"]) for line in lines if (m := pattern.match(line))]
    return any(b <= a for a, b in pairwise(told))


def _one_container(lines: Sequence[bytes], pattern: re.Pattern[bytes]) -> bool:
    """Whether the word behind the pod is always one of a few: a sentence has other words there."""
    words = {m[0].split(b" ")[1] for line in lines if (m := pattern.match(line))}
    return len(words) <= 3


def _several_hosts(lines: Sequence[bytes], pattern: re.Pattern[bytes]) -> bool:
    """Whether names take turns: a model has one ("ResNet-50 | ..."), folds and epochs follow each other."""
    hosts = [m["host"] for line in lines if (m := pattern.match(line))]
    turns = [host for host, _ in groupby(hosts)]
    return len(turns) >= 2 * len(set(turns)) >= 4


_LIKELY = {"compose": _several_hosts, "stern": _one_container, "srun": _speaks_again}
"""What else must hold of prefixes that other lines have by chance."""
