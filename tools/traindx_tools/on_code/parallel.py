"""Judging on several cores: the project is followed once, then forked processes take the rules among themselves.

While it is followed, a forked process already runs the rules that only read it: a rule that asks for what following
gives is left to the others. Splitting by files would be simpler and wrong: what a rule sees in one file depends on
others. Where a process cannot be forked safely (other threads run, another system), one process judges everything; the
findings are the same.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traindx_tools.on_code.judged import BROKEN, Judged
from traindx_tools.on_code.project import Project
from traindx_tools.on_logs.run import Artifact
from traindx_tools.rules import RuleModule

if TYPE_CHECKING:
    from traindx_tools.on_code.source import SourceFile

WORTH_FORKING = 20_000
"""Lines of code from which on a fork pays for itself: below, rules take less than half a second."""


def processes_for(lines: int) -> int:
    """How many processes may judge a project of so many lines here."""
    if lines < WORTH_FORKING or not sys.platform.startswith("linux") or threading.active_count() > 1:
        return 1
    return min(4, len(os.sched_getaffinity(0)))


class NotFollowed(Exception):
    """A rule asked a project that was only read for something that following gives."""


class ReadOnly(Project):
    """A project that was read and not followed: its files, and nothing of what happens in them."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        object.__setattr__(self, "files", tuple(files))

    def __getattribute__(self, name: str) -> Any:
        if name in _FOLLOWED:
            raise NotFollowed(name)
        return super().__getattribute__(name)


_FOLLOWED = frozenset({"roots", "classes", "instances", "failures"})


def followed_and_judged(modules: Sequence[RuleModule], files: Sequence[SourceFile],
                        processes: int = 1) -> tuple[Project, Judged]:
    """The project that these sources are, followed, and what the rules say of it, by so many processes at once."""
    early = _forked(modules, ReadOnly(files)) if processes > 1 else None
    project = Project.of(files)
    said = early.answer() if early is not None else None
    told = Judged() if said is None else said
    left = modules if said is None else [m for m in modules if m.rule.id in said.left]
    for judged in _shared(left, project, processes):
        told.findings += judged.findings
        told.notes += judged.notes
    return project, told


def _shared(modules: Sequence[RuleModule], project: Project, processes: int) -> Iterator[Judged]:
    shares = [modules[i::processes] for i in range(processes)]
    children = [_forked(share, project) for share in shares[1:]]
    yield _judge(shares[0], project)
    for share, child in zip(shares[1:], children, strict=True):
        answer = child.answer() if child is not None else None
        yield answer if answer is not None else _judge(share, project)  # a child that was killed: done here instead


def _judge(modules: Sequence[RuleModule], project: Project) -> Judged:
    from traindx_tools.on_code.entry import checked

    judged = Judged()
    for module in modules:
        try:
            judged.findings += checked(module, project)
        except NotFollowed:
            judged.left.append(module.rule.id)
        except Exception as error:  # noqa: BLE001 - one rule's defect must not silence the others
            note = f"stopped: {type(error).__name__}: {error}"
            judged.notes.append(Artifact(module.rule.id, "rule", note=note))
    return judged


@dataclass(frozen=True)
class _Child:
    pid: int
    pipe: int

    def answer(self) -> Judged | None:
        """What the child said; None where it died."""
        with os.fdopen(self.pipe, "rb") as pipe:
            said = pipe.read()
        os.waitpid(self.pid, 0)
        try:
            return Judged.loads(said)
        except BROKEN:
            return None


def _forked(modules: Sequence[RuleModule], project: Project) -> _Child | None:
    read, write = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of numerical libraries wait and hold no lock
            pid = os.fork()
    except OSError:  # no room for another process
        os.close(read)
        os.close(write)
        return None
    if pid:
        os.close(write)
        return _Child(pid, read)
    status = 1
    try:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(_judge(modules, project).dumps().encode("utf-8", "surrogatepass"))
        status = 0
    finally:
        os._exit(status)  # nothing of the parent's (buffers, exit handlers, finally clauses) may run twice
