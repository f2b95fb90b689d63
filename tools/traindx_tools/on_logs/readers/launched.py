"""The prefix of a line with what a launcher put before it: `3: `, `[1,3]<stdout>:`, `[pod/worker-3/t] [default1]:`.

Which launcher it is, is worked out once for a text (`on_logs.launchers`). The number of a pod is its place among the
pods of its kind; the kinds follow each other in the order of their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.launchers import Form, Whose, form_of
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.line_parser import plan_line
from traindx_tools.on_logs.readers.line_tokens import split
from traindx_tools.on_logs.readers.lines import ESCAPE
from traindx_tools.on_logs.readers.prefixes import Prefix, parse_prefix

_LINES = 400
_WIDEST = 400
"""Characters within which such a prefix ends."""
_NUMBERED = re.compile(r"(?P<kind>.*?[-.])(?P<number>\d{1,6})")
"""The name of one of several pods; one that ends otherwise has no number."""
_RAY = re.compile(r"\((?P<kind>[A-Za-z_][\w.:<>]{0,80}) pid=(?P<pid>\d{1,8})(?:, ip=[\da-fA-F.:]{2,45})?\) ")
"""What Ray puts before the lines of its workers and trials, which have no number but that of the process."""


@dataclass(frozen=True)
class Launched:
    """What is known of the launcher of a text."""

    form: Form = field(default_factory=Form)
    first: Mapping[str, int] = field(default_factory=dict)
    """The rank of the pod with number 0, by the kind of the pod."""
    width: int = 1
    """Processes of a pod."""
    workers: frozenset[str] = frozenset()
    """The names of Ray's workers that tell of steps."""
    processes: dict[int, int] = field(default_factory=dict)
    """Their processes, numbered as they come."""

    def prefix(self, text: str) -> Prefix:
        """What stands before the message of a line."""
        head = text[:_WIDEST].encode("utf-8", "replace") if self.form.name else b""
        whose = self.form.whose(head)
        if whose.at is None:
            return self._of_ray(text) or parse_prefix(text)
        start = self.form.outer_end(head)  # what torch put behind it is read with what loggers did
        inner = parse_prefix(text[start:])
        moved = replace(inner, end=inner.end + start, time_at=_moved(inner.time_at, start),
                        rank_at=_moved(inner.rank_at, start))
        return self._with_rank(moved, whose).same_shape(text)

    def _of_ray(self, text: str) -> Prefix | None:
        found = _RAY.match(text) if self.workers else None
        if found is None or found["kind"] not in self.workers:
            return None
        inner = parse_prefix(text[found.end():])
        moved = replace(inner, end=inner.end + found.end(), time_at=_moved(inner.time_at, found.end()),
                        rank_at=_moved(inner.rank_at, found.end()))
        named = moved if moved.rank_at is not None else replace(moved, host_at=found.span("pid"),
                                                                processes=self.processes)
        return named.same_shape(text)

    def _with_rank(self, prefix: Prefix, whose: Whose) -> Prefix:
        assert whose.at is not None
        if whose.host is None:
            return prefix if prefix.rank_at is not None else replace(prefix, rank_at=whose.at)
        named = _NUMBERED.fullmatch(whose.host)
        if named is None or named["kind"] not in self.first or (prefix.rank_at is not None and whose.local is None):
            return prefix  # `[rank3]:` behind it says it by itself
        start = whose.at[0] + named.start("number")
        return replace(prefix, host_at=(start, whose.at[1]), width=self.width, first=self.first[named["kind"]])


def launched(source: Source) -> Launched:
    """What the first lines of a source say of its launcher. Raises OSError."""
    if is_binary(source.head):
        return Launched()
    lines = ESCAPE.sub("", source.text_head.decode("utf-8", "replace")).encode("utf-8", "replace").splitlines()[:_LINES]
    form = form_of(lines)
    if form.name == "srun" and not any(_counts(line[form.outer_end(line):]) for line in lines):
        return Launched()  # "0: loss 0.7", "1: loss 0.6", and anew for the next fold: it is the number that counts
    if not form.name:
        return _by_ray(lines)
    told = [form.whose(line) for line in lines]
    width = 1 + max((w.local for w in told if w.local is not None), default=0)
    return Launched(form, _firsts([w.host for w in told if w.host is not None], width), width)


def _by_ray(lines: Sequence[bytes]) -> Launched:
    """Whether several processes of one name tell of steps; a driver beside its one worker does not."""
    told: dict[str, dict[int, None]] = {}
    for line in lines:
        found = _RAY.match(line[:_WIDEST].decode("utf-8", "replace"))
        if found is not None and _counts(line[found.end():]):
            told.setdefault(found["kind"], {})[int(found["pid"])] = None
    workers = {kind: pids for kind, pids in told.items() if len(pids) > 1}
    return Launched(workers=frozenset(workers), processes={
        pid: i for i, pid in enumerate(dict.fromkeys(p for pids in workers.values() for p in pids))})


def _counts(message: bytes) -> bool:
    """Whether a message says by itself which step or epoch it is of."""
    text = message.decode("utf-8", "replace")
    plan = plan_line(split(text[parse_prefix(text).end:]))
    return plan.step is not None or plan.epoch is not None


def _firsts(hosts: Sequence[str], width: int) -> dict[str, int]:
    """The rank of the first process of each kind of pod; none where a pod has no number."""
    named = [_NUMBERED.fullmatch(h) for h in dict.fromkeys(hosts)]
    numbers: dict[str, list[int]] = {}
    for found in named:
        if found is None:
            return {}
        numbers.setdefault(found["kind"], []).append(int(found["number"]))
    firsts, before = {}, 0
    for kind in sorted(numbers):
        firsts[kind] = before
        before += width * (max(numbers[kind]) + 1)
    return firsts


def _moved(span: tuple[int, int] | None, by: int) -> tuple[int, int] | None:
    return None if span is None else (span[0] + by, span[1] + by)
