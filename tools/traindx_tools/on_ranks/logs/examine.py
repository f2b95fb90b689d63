"""From the files of a job to what they say together: which are logs of ranks, all of them read, every rule asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from traindx_tools.artifact import Artifact
from traindx_tools.finding import Finding
from traindx_tools.on_logs.artifacts import MAX_FILES, Source
from traindx_tools.on_logs.launchers import form_of
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.stores import StoredRun
from traindx_tools.on_ranks.logs import mapping
from traindx_tools.on_ranks.logs.endings import endings
from traindx_tools.on_ranks.logs.flight_recorder import told_by_recorder
from traindx_tools.on_ranks.logs.job import Job, job_of
from traindx_tools.on_ranks.logs.numbering import attempt_named, rank_named
from traindx_tools.on_ranks.logs.reading import FIRST_LINES, read_file
from traindx_tools.on_ranks.logs.told import FileTold
from traindx_tools.on_ranks.rules import (
    r201_rank_failed_first,
    r202_collectives_part,
    r203_batches_differ,
    r204_rank_in_data_loading,
    r205_nonfinite_on_one_rank,
    r206_settings_differ,
    r207_world_size_changed,
    r208_rank_slower,
)

RULES = (r201_rank_failed_first, r202_collectives_part, r203_batches_differ, r204_rank_in_data_loading,
         r205_nonfinite_on_one_rank, r206_settings_differ, r207_world_size_changed, r208_rank_slower)
MOST_WHOLE = 24
"""Files of ranks that are also read whole, for the rules over curves and errors; of more, those of the ranks that
findings name and of the lowest ranks."""
MOST_LOOKED_AT = 64
"""Files that are opened to see whether they are logs of ranks, where their names do not say so."""
_NO_LOG = frozenset({
    ".py", ".ipynb", ".sh", ".yaml", ".yml", ".toml", ".md", ".rst", ".html", ".cfg", ".ini", ".png", ".pt", ".pth",
    ".safetensors", ".npy", ".npz", ".csv", ".tsv", ".parquet", ".h5", ".bin", ".zip", ".diff"})  # fmt: skip
_SAYS_RANK = re.compile(rb"\[(?:rank|default) ?\d+\]|\b[Rr]ank[ =:]{1,2}\d+|process_index[ =:]{1,2}\d+|GLOBAL_RANK: \d")

_AMONG_OTHERS = re.compile(rb"\[rank ?\d+\]|\bProcessGroup(?:NCCL|Gloo)\b|/gloo/transport/|\bNCCL (?:INFO|WARN)\b")
"""What a process of a job of several says at its end."""
_NUMBER = re.compile(r"\d+")
_OF_A_JOB = re.compile(r"(?i)(?:^|[^a-z])(?:worker|node|host|pod|replica|gpu|trainer)[-_.]?\d")
_OF_SO_MANY = re.compile(rb"(?<![\d./])0*(\d{1,6})(?:/| of )0*(\d{1,6})(?![\d./])")
TOP, TAIL = 20, 64 * 2**10
"""First lines, and last bytes, that are looked at to see whether a log is of a job of several processes."""


@dataclass(frozen=True, eq=False)
class ManyRanks:
    """What the logs of a job's ranks say together."""

    job: Job
    findings: tuple[Finding, ...]
    """The worst first."""

    @property
    def whole(self) -> frozenset[str]:
        """The files that are also read whole: all of them where there are few."""
        named = [f.source for f in self.findings]
        if len(self.job.sources) <= MOST_WHOLE:
            return frozenset(self.job.sources)
        lowest = [r.source for r in list(self.job.last.ranks.values())[:4]]
        return frozenset(list(dict.fromkeys((*named, *lowest)))[:MOST_WHOLE])

    @property
    def aside(self) -> frozenset[str]:
        """The files that are read for this alone."""
        return frozenset(self.job.sources) - self.whole

    @property
    def rank_of_file(self) -> dict[str, int]:
        """The rank of each file that is of one rank alone."""
        told: dict[str, set[int]] = {}
        for start in self.job.starts:
            for r in start.ranks.values():
                told.setdefault(r.source, set()).add(r.rank)
        return {name: next(iter(ranks)) for name, ranks in told.items() if len(ranks) == 1}

    @property
    def mixed(self) -> bool:
        """Whether a file holds the lines of several ranks in turn, behind prefixes that other readers do not take for
        ranks."""
        return self.job.prefixed

    def to_json(self) -> dict[str, Any]:
        """Plain values: what was read, how each group of ranks ended, and the findings."""
        job = self.job
        return {"files": job.files, "bytes": job.bytes, "lines": job.lines, "ranks": len(job.last.ranks),
                "world_size": job.last.world, "starts": len(job.starts), "notes": list(job.notes),
                "ended": [{"ranks": e.ranks, "how": e.how} for e in endings(job)],
                "findings": [f.to_json() for f in self.findings]}


def rank_logs(sources: Sequence[Source], *, asked: bool = False) -> list[Source]:
    """Those among the sources that may be logs of several ranks; none where nothing speaks for more than one.

    `asked`: somebody says that they are; then names that differ in a number speak enough.
    """
    texts = [s for s in sources if not isinstance(s, StoredRun) and PurePath(s.name).suffix.lower() not in _NO_LOG]
    if len(texts) > MAX_FILES and not asked:
        texts = _of_speaking_kinds(texts)
    if sum(rank_named(s.name) is not None for s in texts) > 1 or _numbered_alike(texts, asked=asked):
        return texts
    spread = texts[:: max(1, len(texts) // MOST_LOOKED_AT)]
    speaking = [s for s in spread if _says_rank(s)]
    return texts if any(_several(s) for s in speaking) or len(speaking) > 1 else []


def _of_speaking_kinds(sources: Sequence[Source]) -> list[Source]:
    """Of very many files those of kinds of names of which some say that they are a rank's: a job of thousands of ranks
    is one kind or a few, and what its workers leave beside it are others."""
    kinds = [some for some in _kinds(sources) if len(some) > 1]
    largest = sorted(kinds, key=len, reverse=True)[:MOST_LOOKED_AT]
    return [s for some in kinds if any(rank_named(one.name) is not None for one in some[:4]) or (
        any(some is one for one in largest) and _numbered_alike(some)) for s in some]


def _kinds(sources: Sequence[Source]) -> list[list[Source]]:
    """Files whose names, with their folder's, differ in numbers only."""
    groups: dict[str, list[Source]] = {}
    for s in sources:
        groups.setdefault(_NUMBER.sub("#", "/".join(PurePath(s.name).parts[-2:])), []).append(s)
    return list(groups.values())


def _numbered_alike(sources: Sequence[Source], *, asked: bool = False) -> bool:
    """Whether names differ in their numbers only, and something says that they are of ranks and no runs of a sweep.

    The logs of one of them, its end too, or the number of the name over the number of files in its first lines
    (`worker-0013.log`: "[13/64]").
    """
    several = max(_kinds(sources), key=len, default=[])
    if len(several) < 2:
        return False
    some = several[:4]
    return (asked or attempt_named(several[0].name) is not None or any(map(_says_rank, some))
            or sum(map(_ends_among_others, some)) > 1 or all(_numbers_itself(s, len(several)) for s in some))


def _ends_among_others(source: Source) -> bool:
    """Whether the end of a log says that other processes of the job are there."""
    if not isinstance(source.local, Path) or not source.local.is_file():
        return False
    try:
        with source.open() as stream:
            if stream.seekable():
                stream.seek(max(0, source.local.stat().st_size - TAIL))
            end = stream.read(TAIL)
    except (OSError, EOFError, ValueError):
        return False
    return not is_binary(end) and _AMONG_OTHERS.search(end) is not None


def _numbers_itself(source: Source, count: int) -> bool:
    """Whether a file of a worker says in its first lines that it is this one of so many."""
    name = PurePath(source.name).name
    number = re.search(r"\d+(?=\D*$)", name)
    if number is None or _OF_A_JOB.search(name) is None:
        return False
    try:
        top = b"\n".join(_first(source.text_head)[:TOP])
    except OSError:
        return False
    told = {(int(m[1]), int(m[2])) for m in _OF_SO_MANY.finditer(top)}
    return (int(number[0]), count) in told


def _says_rank(source: Source) -> bool:
    try:
        head = source.text_head
        return (not is_binary(head) and (_SAYS_RANK.search(head) is not None or bool(form_of(_first(head)).name))) or (
            told_by_recorder(source) is not None)
    except OSError:
        return False


def _first(head: bytes) -> list[bytes]:
    return head.split(b"\n")[:FIRST_LINES]


def _several(source: Source) -> bool:
    """Whether the first lines of one file are of at least two ranks."""
    try:
        lines = _first(source.text_head)
    except OSError:
        return False
    form = form_of(lines)
    told = {(w.rank, w.local, w.host) for line in lines if (w := form.whose(line)).start}
    ranks = {m[0] for line in lines for m in re.finditer(rb"\[?\b[Rr]ank[ =:]?\d+\]?(?=[\]:| ])", line[:80])}
    return len(told) > 1 or len(ranks) > 1


def examine_ranks(sources: Sequence[Source], *, asked: bool = False, workers: int | None = None,
                  cluster: str | None = None, progress: Callable[[int, int], None] | None = None,
                  left_out: Sequence[Artifact] = ()) -> ManyRanks | None:
    """What the logs of the ranks say together, or None where the sources are not logs of several ranks.

    `asked` as of `rank_logs`, `workers`, `cluster` as of `mapping.over`; the result is the same whichever reads.
    `progress` is called with files done and all. `left_out`: files that could not be opened, told among the notes.
    """
    chosen = rank_logs(sources, asked=asked)
    if not chosen:
        return None
    small = sum(_size(s) for s in chosen) < mapping.ALONE
    files: list[FileTold] = []
    for told in mapping.over(read_file, chosen, _left_out, workers=1 if small and workers is None else workers,
                             cluster=cluster):
        files.append(told)
        if progress is not None:
            progress(len(files), len(chosen))
    job = job_of(files)
    if job is None:
        return None
    job = replace(job, notes=(*(f"{a.path}: {a.note}" for a in left_out), *job.notes))
    found = [f for rule in RULES for f in rule.check(job)]
    return ManyRanks(job, tuple(sorted(found, key=lambda f: -f.severity.rank)))


def _left_out(source: Source, why: str) -> FileTold:
    return FileTold(source.name, note=why)


def _size(source: Source) -> int:
    try:
        return source.local.stat().st_size if isinstance(source.local, Path) else len(source.data or b"")
    except OSError:
        return 0


def without(sources: Sequence[Source], names: Container[str]) -> list[Source]:
    """The sources but those of these names."""
    return [s for s in sources if s.name not in names]
