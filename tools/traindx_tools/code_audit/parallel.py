"""Judging on several cores: programs are shared out whole, and each is parsed where it is judged.

Splitting one by its files or by the rules would be slower or wrong: what a rule sees in one file depends on others, and
most of the time goes into following the program, which each process would do again.
Where a process cannot be forked safely (other threads run, another system), one process judges everything; the
findings are the same. A child ends with its parent, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from traindx_tools.artifact import Artifact
from traindx_tools.code_audit.breaches import ROOM as INVARIANTS
from traindx_tools.code_audit.breaches import findings, program_failures
from traindx_tools.code_audit.results import BROKEN, RuleResults
from traindx_tools.finding import Finding
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import parse_all
from traindx_tools.rules import RuleModule

if TYPE_CHECKING:
    from traindx_tools.code_audit.programs import Program

WORTH_FORKING = 20_000
"""Lines of code from which on a fork pays for itself: below, rules take less than half a second."""
WORTH_SHARING = 5_000
"""Lines of programs from which on they are shared out."""


def processes_for(lines: int) -> int:
    """How many processes may judge a project of so many lines here."""
    if lines < WORTH_FORKING or not sys.platform.startswith("linux") or threading.active_count() > 1:
        return 1
    return min(4, len(os.sched_getaffinity(0)))


class Work(Protocol):
    """What a child does. It is told which process asked: once that is gone, nobody waits for the answer."""

    def __call__(self, *, parent: int | None) -> RuleResults:
        """Do it."""


def followed_and_judged(modules: Sequence[RuleModule], programs: Sequence[Program],
                        processes: int = 1) -> tuple[list[Project], RuleResults]:
    """These programs followed, as far as this process did it, and what the rules say of them all."""
    shares = _shares(programs, processes)
    followed: list[Project] = []
    told = RuleResults()
    with _Children() as children:
        asked = [(share, children.fork(partial(_judge_programs, modules, share, []))) for share in shares[1:]]
        told.add(_judge_programs(modules, shares[0], followed))
        for share, child in asked:
            said = child.answer()
            told.add(said if said is not None else _judge_programs(modules, share, followed))
    return followed, told


def _shares(programs: Sequence[Program], count: int) -> list[list[Program]]:
    """The programs in `count` shares of about as many lines; where they are few, all in the first."""
    if count <= 1 or sum(p.lines for p in programs) < WORTH_SHARING:
        return [list(programs)]
    shares: list[list[Program]] = [[] for _ in range(count)]
    lines = [0] * count
    for program in sorted(programs, key=lambda p: -p.lines):
        least = lines.index(min(lines))
        shares[least].append(program)
        lines[least] += program.lines
    return [s for s in shares if s] or [[]]


def _judge_programs(modules: Sequence[RuleModule], programs: Sequence[Program], followed: list[Project],
                    parent: int | None = None) -> RuleResults:
    """What the rules say of programs, one after the other; their projects are added to `followed`."""
    told = RuleResults()
    for program in programs:
        if parent is not None and os.getppid() != parent:
            break
        project = Project.of(parse_all(program.files, told.notes))
        followed.append(project)
        told.add(program.of_these(_judge(modules, project, parent)))
        told.notes += _failed(project)
    return told


def _failed(project: Project) -> list[Artifact]:
    in_part = [Artifact(f.path, "python", note=f"followed in part: {why}") for f, why in project.failures]
    return in_part + [Artifact(why.partition(":")[0], "rule", note=f"stopped{why[why.index(':'):]}")
                      for why in program_failures(project)]


def _judge(modules: Sequence[RuleModule], project: Project, parent: int | None = None) -> RuleResults:
    """What the rules say. A child gives the process that asked: once that is gone, nobody waits for the answer."""
    results = RuleResults()
    for module in modules:
        if parent is not None and os.getppid() != parent:
            break
        try:
            results.findings += checked(module, project)
        except Exception as error:  # noqa: BLE001 - one rule's defect must not silence the others
            note = f"stopped: {type(error).__name__}: {error}"
            results.notes.append(Artifact(module.rule.id, "rule", note=note))
    return results


def checked(module: RuleModule, project: Project) -> list[Finding]:
    """The findings of one rule, one for each place and kind."""
    unique: dict[tuple[str, str | None, int | None, object], Finding] = {}
    is_invariant = module.module.startswith(INVARIANTS)
    for finding in findings(module, project) if is_invariant else module.check(project):
        key = (finding.rule, finding.where.file, finding.where.line, finding.measured.get("kind"))
        known = unique.get(key)
        if known is None or finding.severity.rank > known.severity.rank:
            unique[key] = finding
    return list(unique.values())


@dataclass(frozen=True)
class _Child:
    """A process that judges. `pid` is 0 where there was no room for one."""

    pid: int = 0
    pipe: int = -1

    def answer(self) -> RuleResults | None:
        """What the child said; None where it died."""
        if not self.pid:
            return None
        with os.fdopen(self.pipe, "rb", closefd=False) as pipe:
            said = pipe.read()
        try:
            return RuleResults.loads(said)
        except BROKEN:
            return None


class _Children:
    """Processes that end with this block: they are waited for, and on the way out of an error killed first."""

    def __init__(self) -> None:
        self._running: list[_Child] = []

    def __enter__(self) -> _Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        for child in self._running:
            if kind is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
            os.close(child.pipe)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child.pid, 0)

    def fork(self, work: Work) -> _Child:
        """A child that does this and answers with what it gives."""
        child = _forked(work)
        if child.pid:
            self._running.append(child)
        return child


def _forked(work: Work) -> _Child:
    parent = os.getpid()
    read, write = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of numerical libraries wait and hold no lock
            pid = os.fork()
    except OSError:  # no room for another process
        os.close(read)
        os.close(write)
        return _Child()
    if pid:
        os.close(write)
        return _Child(pid, read)
    status = 1
    try:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(work(parent=parent).dumps().encode("utf-8", "surrogatepass"))
        status = 0
    finally:
        os._exit(status)  # nothing of the parent's (buffers, exit handlers, finally clauses) may run twice
