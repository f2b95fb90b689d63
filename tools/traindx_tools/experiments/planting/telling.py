"""A study of planted values as findings and as lines."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.planting.study import Study
from traindx_tools.finding import Finding
from traindx_tools.rules import rules_in

ROOM = "traindx_tools.experiments.planting.rules"


def findings_of(study: Study) -> tuple[Finding, ...]:
    """X401 and X402, where the runs show them."""
    return tuple(f for module in rules_in(ROOM) for f in module.check(study))


def lines(study: Study) -> Iterator[str]:
    """What was planted and where it arrived."""
    runs = "1 run" if study.runs == 1 else f"{study.runs} runs"
    told = findings_of(study)
    yield f"planted values, {runs}, {study.seconds:.0f} s: " + ("; ".join(f.statement for f in told) if told else
                                                                 nothing(study))


def nothing(study: Study) -> str:
    """Why there is no finding."""
    if study.why or study.reached is None:
        return f"not decided, for {study.why or 'nothing was seen'}"
    column, seen = study.reached.column, study.reached.seen
    return (f"the target is made of {column.name or 'the array'} ({column.file}); of {seen.targets} rows with another "
            f"target the inputs of {seen.both} changed, of the other rows {seen.base:.1%}: no input holds its own "
            "target")
