"""`--against GOOD`: a diagnosis beside a run that works."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traindx.diagnose import Report
from traindx.joining import joined
from traindx.offered import typed
from traindx.places import common_root
from traindx_tools.against import Comparison, compare
from traindx_tools.against.metrics import metric_differences
from traindx_tools.against.parting import parting_of
from traindx_tools.errors import BadUsage
from traindx_tools.examine import examine
from traindx_tools.finding import Severity


def with_comparison(report: Report, good: Sequence[str | Path]) -> Report:
    """The report with the comparison to the run at `good`; a setting that parts first joins the evidence.

    Raises BadUsage where both are the same, UnreadableInput."""
    _refuse_overlap([Path(p) for p in report.seen.paths if _is_local(p)], [Path(p) for p in good if _is_local(p)])
    there = examine(good, root=common_root(good))
    wrong = any(f.severity.rank >= Severity.MEDIUM.rank for f in report.seen.findings)
    differences = metric_differences(report.seen.run, there.run)[0]
    parting = parting_of(report.seen.run, differences) if wrong else None  # else it explains nothing
    report = joined(report, (parting,), 0) if parting is not None else report
    comparison = compare(report.seen, there)
    return replace(report, comparison=comparison, extra_checks=(*report.extra_checks, *_checks(comparison)))


def _checks(comparison: Comparison) -> tuple[str, ...]:
    """Commands that show the whole difference."""
    differ = [d for d in comparison.code if d.here and d.there and d.functions]
    return tuple(_diff_command(d.there or "", d.here or "") for d in differ[:1])


def _diff_command(there: str, here: str) -> str:
    return f"git diff --no-index {typed([there, here])}"


def _is_local(path: str | Path) -> bool:
    return str(path) != "-" and "://" not in str(path)


def _refuse_overlap(bad: Sequence[Path], good: Sequence[Path]) -> None:
    for one in bad:
        for other in good:
            a, b = Path(os.path.realpath(one)), Path(os.path.realpath(other))
            if a == b:
                told = "" if str(one) == str(other) else f" as {other}"
                raise BadUsage(f"{one} is the run itself, given once more with --against{told}: nothing would differ. "
                               "Give --against the folder or log of another run, one that works")
            if (a.is_dir() and b.is_relative_to(a)) or (b.is_dir() and a.is_relative_to(b)):
                raise BadUsage(f"{one} and {other} are not two runs: one lies in the other. Give the broken run's own "
                               "folder or log, and with --against that of the run that works")
