"""A diagnosis with findings that came later: a new run's, an experiment's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traindx.diagnose import Report
from traindx_tools.code_among import named_code
from traindx_tools.finding import Finding


def joined(report: Report, more: Sequence[Finding], records: int) -> Report:
    """The report with further findings, weighed anew; the code that they point at is known by its lines."""
    code = named_code(more, report.places.root.resolve())
    places = replace(report.places, code=tuple(dict.fromkeys([*report.places.code, *code])))
    return replace(report, seen=report.seen.joined(more, records), places=places)
