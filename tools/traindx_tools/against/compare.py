"""Two examined runs, one that is broken and one that works, as one comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.against.code import CodeDifference, code_differences
from traindx_tools.against.data import DataDifference, data_differences
from traindx_tools.against.events import EventDifference, event_differences, nearest
from traindx_tools.against.metrics import MetricDifference, metric_differences
from traindx_tools.against.settings import SettingDifference, setting_differences
from traindx_tools.against.versions import versions_in
from traindx_tools.against.weigh import Explanation, explanations
from traindx_tools.examine import Examination
from traindx_tools.finding import Severity
from traindx_tools.on_logs.events.onsets import SET
from traindx_tools.on_logs.run import Run
from traindx_tools.scope.model import NO_TRAINING


@dataclass(frozen=True, eq=False)
class Comparison:
    """The broken run ("here") beside the one that works ("there")."""

    here: tuple[str, ...]
    there: tuple[str, ...]
    metrics: tuple[MetricDifference, ...]
    """Metrics of both runs, the first to part in front."""
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]
    settings: tuple[SettingDifference, ...]
    versions: tuple[SettingDifference, ...]
    code: tuple[CodeDifference, ...]
    ranked: tuple[Explanation, ...]
    """Every difference, the likeliest to explain what is wrong first."""
    remarks: tuple[str, ...]
    """What limits the comparison: findings that the working run shows too, nothing in common, the same everywhere."""
    runs: tuple[Run, Run]
    """Both runs as they were read, the broken one first."""
    events: tuple[EventDifference, ...] = ()
    """What the log of the broken run says and that of the other never, the earliest first."""
    data: tuple[DataDifference, ...] = ()
    """What data files of one name hold in the two runs, the largest factor first."""

    @property
    def parting(self) -> MetricDifference | None:
        """The metric that parts first."""
        return next((m for m in self.metrics if m.step is not None), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite become strings."""
        return {
            "here": list(self.here),
            "there": list(self.there),
            "metrics": [{"statement": m.statement(), **_plain(vars(m))} for m in self.metrics],
            "only_here": list(self.only_here),
            "only_there": list(self.only_there),
            "settings": [{**vars(d), "family": d.family.name, "statement": d.statement()} for d in self.settings],
            "versions": [{**vars(d), "statement": d.statement()} for d in self.versions],
            "code": [{"statement": d.statement(), **_plain(vars(d))} for d in self.code],
            "data": [{"statement": d.statement(), **vars(d)} for d in self.data],
            "events": [{"statement": e.statement(), **vars(e)} for e in self.events],
            "nearest": near.beside() if (near := nearest(self.events)) is not None else "",
            "ranked": [{**vars(e), "weight": round(e.weight, 2), "why": list(e.why)} for e in self.ranked],
            "remarks": list(self.remarks),
        }


def compare(here: Examination, there: Examination) -> Comparison:
    """Compare a broken run with one that works; both were examined."""
    metrics, only_here, only_there = metric_differences(here.run, there.run)
    both = bool(here.run.config) == bool(there.run.config)
    settings = [*(setting_differences(here.run.config, there.run.config) if both else ()),
                *setting_differences(_constants(_code(here)), _constants(_code(there)), "constant")]
    settings = _once(settings)
    versions = setting_differences(versions_in(_files(here)), versions_in(_files(there)), "version")
    code = code_differences(_code(here), _code(there))
    data = data_differences(_data(here), _data(there))
    ranked = explanations(settings, versions, code, here.verdict, here.findings, data)
    order = [e.statement for e in ranked]
    code.sort(key=lambda d: order.index(d.statement()))
    remarks = tuple(_remarks(here, there, metrics, bool(ranked)))
    return Comparison(here.paths, there.paths, tuple(metrics), tuple(only_here), tuple(only_there), tuple(settings),
                      tuple(versions), tuple(code), tuple(ranked), remarks, (here.run, there.run),
                      tuple(event_differences(here.run, there.run, metrics[0] if metrics else None)), tuple(data))


def _code(seen: Examination) -> Sequence[Path]:
    """The code of a run; where nothing that was given trains, all of it: what prepares the data differs as well."""
    return seen.code or (seen.scope.beside if seen.scope.how == NO_TRAINING else ())


def _data(seen: Examination) -> dict[str, Path]:
    """The data files that were read, by their path below the folder of the run."""
    files = [Path(f) for f in seen.data]
    given = [Path(p) if Path(p).is_dir() else Path(p).parent for p in seen.paths if "://" not in p and p != "-"]
    return {str(next((f.resolve().relative_to(g.resolve()) for g in given if f.resolve().is_relative_to(g.resolve())),
                     Path(f.name))): f for f in files}


def _once(settings: Sequence[SettingDifference]) -> list[SettingDifference]:
    """A setting that a configuration and a constant of the code both give is told once."""
    seen: set[tuple[str, str, str]] = set()
    kept = []
    for difference in settings:
        key = (difference.key.rpartition(".")[2].lower(), difference.here, difference.there)
        if key not in seen:
            seen.add(key)
            kept.append(difference)
    return kept


def _constants(code: Sequence[Path]) -> dict[str, Any]:
    from traindx_tools.against.constants import constants
    from traindx_tools.on_code.project import Project
    from traindx_tools.on_code.source import read_sources

    files, _ = read_sources(code)
    return dict(constants(Project.of(files))) if files else {}


def _files(seen: Examination) -> list[Path]:
    """The local files that were read, those that pin versions beside them first."""
    named = [Path(a.path) for a in seen.run.artifacts if "://" not in a.path and a.path != "-"]
    given = [Path(p) for p in seen.paths if "://" not in p and p != "-"]
    read = [p for p in named if p.is_file()] or [p for p in given if p.is_file()]
    folders = dict.fromkeys([*(p for p in given if p.is_dir()), *(p.parent for p in given if p.is_file())])
    beside = [f for folder in folders for f in sorted(folder.glob("*"))[:200]
              if f.is_file() and f.suffix in (".txt", ".yml", ".yaml", ".json", ".log", ".out")]
    return list(dict.fromkeys([*read, *beside]))


def _remarks(here: Examination, there: Examination, metrics: Sequence[MetricDifference], differ: bool) -> list[str]:
    said = []
    both = {f.rule for f in here.findings if _serious(f)} & {f.rule for f in there.findings if _serious(f)}
    if both:
        said.append(f"the run that works shows {', '.join(sorted(both))} too: these findings alone do not explain the "
                    "difference")
    if not metrics:
        said.append("the runs log no metric in common at comparable steps")
    elif all(m.step is None for m in metrics):
        said.append("no metric of the two runs differs beyond noise: is the first one really the worse?")
    elif here.verdict.status == "healthy" and differ:
        said.append("by itself the first run shows no fault; where it is worse, one of these differences made it so")
    moved = next((m for m in metrics if m.step is not None and m.name.startswith(SET)), None)
    if not differ:
        said.append("no setting, version, data file or line of code that was read differs: what is left is data that "
                    "were not read, seed, hardware and what neither run prints" if moved is None else
                    f"no setting, version, data file or line of code that was read differs, and yet {moved.name} does "
                    "in the log: look at what sets it (a schedule, a callback, a resumed state)")
    if bool(here.run.config) != bool(there.run.config):
        which, config = ("broken run", here.run.config) if here.run.config else ("run that works", there.run.config)
        told = " ".join(", ".join(f"{k} {v}" for k, v in list(config.items())[:4]).split())[:120]
        said.append(f"the {which} alone tells its settings ({told}): they were not compared")
    missing = [not _code(seen) for seen in (here, there)]
    if any(missing):
        which = "either run" if all(missing) else "the broken run" if missing[0] else "the run that works"
        said.append(f"no code was given with {which}, so that code was not compared")
    return said


def _serious(finding: Any) -> bool:
    return bool(finding.severity.rank >= Severity.MEDIUM.rank)


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Tuples as lists, numbers that are not finite as text."""
    plain = {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}
