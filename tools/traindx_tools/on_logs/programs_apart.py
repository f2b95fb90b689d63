"""Whether logs that lie in one folder are those of several programs, which share no steps to compare their curves over.

One run may leave a log of its steps beside one of its epochs, with other names: that two files differ says nothing.
Each has to tell a whole training run from its beginning, over steps that the other does not hold, and something has to
show that they were started apart: commands with other scripts, or the same script with another value of an option; or,
where no metric but the loss is in both, arguments that contradict each other, hours that do not touch, or one unit of
counting that ends elsewhere in each. A file that resumes a run is of that run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, takewhile
from pathlib import PurePath

import numpy as np

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers.names import identify
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.restarts import MOST_HEAD, STARTS
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.on_logs.runs_by_folder import whole
from traindx_tools.on_logs.several_runs import MOST, SHOWN, apart_as_folders, positions_shared

CONTRADICTED = 2
"""Arguments that both tell otherwise, and more than half of those that both tell: one may be each process's own."""
TABLES = frozenset({"csv", "tsv", "lightning_csv", "json", "jsonl"})
"""Formats of rows: one run writes them beside its text log, with a clock and a counter of their own."""
ENOUGH = 20
"""Records from which on the end of a log tells how long its run was."""
LONGER, MOST_TIMES = 1.5, 8.0
"""Times as far as the other one counts: below, one may have been cut off; above, any number is near a whole one."""
WHOLE_TIMES = 0.05
"""Distance to a whole number of times up to which one counts what the other counts in groups (micro-batches, ranks)."""
SHIFT, LEAST_SHIFT = 1800.0, 0.1
"""Seconds of which clocks of two zones differ by a multiple, and the share of a run's length up to which two runs that
differ by one are one."""
_SCRIPT = re.compile(r"(?:^|\s)(?:\S*/)?([\w-]+)\.py\b|\s-m\s+(\S+)")
_OPTION = re.compile(r"(?<!\S)--?([A-Za-z][\w.-]*)[= ]+(?!-)(\S+)")
_OF_A_PROCESS = re.compile(r"rank|node|nproc|port|device|worker|pid|host|time|date|dir|path|file|seed|uuid|^id$|world")
"""Arguments that differ between the processes of one run, or between its files."""


@dataclass(frozen=True, eq=False)
class Told:
    """A log of a whole run and what it says of how that was started."""

    source: Source
    part: Run
    loss: Series

    @cached_property
    def command(self) -> str:
        """The line that starts it; "" where its head holds none."""
        first = min((int(s.line[0]) for s in self.part.series if len(s)), default=0)
        with suppress(OSError):
            head = takewhile(lambda line: line[0] < min(first, MOST_HEAD), lines_of(self.source))
            return next((text for _, text in head if STARTS.search(text) and _SCRIPT.search(text)), "")
        return ""

    @cached_property
    def scripts(self) -> tuple[str, ...]:
        """The files and modules that the command names, in order: launchers as well, and configurations."""
        return tuple(a or b for a, b in _SCRIPT.findall(self.command))

    @cached_property
    def options(self) -> dict[str, str]:
        """The options of the command with a value, but for those of one process."""
        return {k: v for k, v in _OPTION.findall(self.command) if not _OF_A_PROCESS.search(k.lower())}

    @cached_property
    def names(self) -> frozenset[str]:
        """The metrics that it tells, but for the loss and the learning rate, which any log may have."""
        usual = (self.loss.name, "learning_rate")
        return frozenset(s.original.lower() for s in self.part.series if s.name not in usual)

    @property
    def is_table(self) -> bool:
        """Whether it is of rows."""
        return bool(self.part.artifacts) and self.part.artifacts[0].format in TABLES

    @cached_property
    def hours(self) -> tuple[float, float] | None:
        """When it begins and ends, in seconds since 1970; None where it has no dates."""
        time = self.loss.time[np.isfinite(self.loss.time)]
        return None if not len(time) or not self.loss.since > 0 else (
            self.loss.since + float(time.min()), self.loss.since + float(time.max()))


def files_of_programs(sources: Sequence[Source], parts: Sequence[Run], job: Container[str] = ()
                      ) -> dict[str, str]:
    """The logs of several programs, each with what shows it; none where there is a single run.

    `job`: files of the ranks of one job, which are one run."""
    told = list(islice(_whole_logs(sources, parts, job), MOST))
    found: dict[str, str] = {}
    for one, other in combinations(told, 2):
        for here, said in zip((one, other), _apart(one, other), strict=False):
            found.setdefault(here.source.name, said)
    return {t.source.name: found[t.source.name] for t in told if t.source.name in found}


def told_by_program(files: dict[str, str]) -> str:
    """A sentence for a person that names the files."""
    named = ", ".join(f"{name} ({said})" for name, said in list(files.items())[:SHOWN])
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return (f"these files look like logs of several programs, each of a run of its own: {named}{more}. "
            "Each was judged by itself; give the path of one run's file or folder to see that one alone")


def _whole_logs(sources: Sequence[Source], parts: Sequence[Run], job: Container[str]) -> Iterator[Told]:
    seen_job = False
    for source, part in zip(sources, parts, strict=True):
        loss = whole(source, part)
        of_job = source.name in job
        if loss is None or (of_job and seen_job) or any(n.kind == "resume" for n in part.notes):
            continue
        if (identify(f"{PurePath(source.name).stem}/loss").group or "train") == "train":
            seen_job = seen_job or of_job
            yield Told(source, part, loss)


def _apart(one: Told, other: Told) -> tuple[str, ...]:
    """What each of two says that shows that they were started apart; () where nothing does."""
    folders = PurePath(one.source.name).parent, PurePath(other.source.name).parent
    if apart_as_folders(*folders) or positions_shared(one.loss, other.loss):
        return ()
    if one.command and other.command:
        return _started(one, other)
    if one.names & other.names:
        return ()
    contradicted = _contradicted(one, other)
    if contradicted:
        return tuple(", ".join(f"{k} {t.part.config[k]!r}" for k in contradicted[:3]) for t in (one, other))
    if one.is_table or other.is_table:
        return ()
    return _at_other_hours(one, other) or _ends_elsewhere(one, other)


def _started(one: Told, other: Told) -> tuple[str, ...]:
    """Other scripts, or the same with another value of an option."""
    if not set(one.scripts) & set(other.scripts):
        return f"it starts {one.scripts[-1]}", f"it starts {other.scripts[-1]}"
    otherwise = [k for k, v in one.options.items() if k in other.options and other.options[k] != v]
    return tuple(", ".join(f"{k} {t.options[k]}" for k in otherwise[:3]) for t in (one, other)) if otherwise else ()


def _contradicted(one: Told, other: Told) -> list[str]:
    both = [k for k in one.part.config if k in other.part.config and not _OF_A_PROCESS.search(k.lower())]
    found = [k for k in both if one.part.config[k] != other.part.config[k]]
    return found if len(found) >= CONTRADICTED and 2 * len(found) > len(both) else []


def _at_other_hours(one: Told, other: Told) -> tuple[str, ...]:
    if one.hours is None or other.hours is None:
        return ()
    (a, b), (c, d) = one.hours, other.hours
    if a <= d and c <= b:
        return ()
    near = max(LEAST_SHIFT * max(b - a, d - c), 60.0)
    if abs((b - a) - (d - c)) <= near and abs((c - a) - SHIFT * round((c - a) / SHIFT)) <= near:
        return ()
    first, second = "ended before the other began", "began after the other had ended"
    return (first, second) if b < c else (second, first)


def _ends_elsewhere(one: Told, other: Told) -> tuple[str, ...]:
    if one.loss.unit != other.loss.unit or one.loss.unit == "line" or one.loss.name == other.loss.name:
        return ()
    ends = [float(t.loss.position[-1]) for t in (one, other)]
    (less, more), short, far = sorted(ends), *sorted((one.loss, other.loss), key=lambda s: float(s.position[-1]))
    if min(len(short), len(far)) < ENOUGH or not LONGER <= more / max(less, 1.0) <= MOST_TIMES:
        return ()
    least, greatest = more / (less + _stride(short)), (more + _stride(far)) / less  # the last steps are not logged
    if math.floor(greatest + WHOLE_TIMES) >= math.ceil(least - WHOLE_TIMES):
        return ()
    return tuple(f"{t.loss} up to {t.loss.unit} {end:.10g}" for t, end in zip((one, other), ends, strict=True))


def _stride(loss: Series) -> float:
    return float(np.median(np.diff(loss.position)))
