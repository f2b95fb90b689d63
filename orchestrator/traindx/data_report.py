"""How a report on data files reads: findings, then what was read, then what was not."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindx_tools.finding import Finding
    from traindx_tools.on_data import DataReport
    from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

MOST_FIELDS = 8
MOST_ALIKE = 3
"""Files with one and the same reason that are told one by one."""


def lines_of(report: DataReport, wanted: Collection[Finding] | None = None) -> Iterator[str]:
    """The report, a line each: findings (those that are wanted), sets, files that were not or not wholly read."""
    shown = [f for f in report.findings if wanted is None or f in wanted]
    for finding in shown:
        yield f"{finding.where}: {finding.rule} {finding.severity.value}: {finding.statement}"
    if not shown:
        yield "nothing wrong was found" if not report.findings else "no finding is left by what was asked"
    yield from (_set_line(d) for d in report.sets if any(s.columns for s in d.shards))
    yield from _unread(report)
    yield from report.notes


def _unread(report: DataReport) -> Iterator[str]:
    """Files that were not or not wholly read; many with one reason on one line."""
    by_reason: dict[str, list[str]] = {}
    for artifact in report.artifacts:
        if artifact.note:
            by_reason.setdefault(artifact.note, []).append(artifact.path)
    for reason, paths in by_reason.items():
        if len(paths) > MOST_ALIKE:
            yield f"{len(paths)} files, such as {paths[0]}: {reason}"
        else:
            yield from (f"{path}: {reason}" for path in paths)


def _set_line(data: DataSet) -> str:
    first = next(s for s in data.shards if s.columns)
    splits = ", ".join(
        f"{sum(s.total for s in g):,} rows in {_files_of(g, data.name)}{f' ({split})' if split else ''}"
        for split, g in data.splits.items()
    )
    fields = [f"{name} {_form(first.columns[name])}" for name in list(first.columns)[:MOST_FIELDS]]
    more = f" and {len(first.columns) - MOST_FIELDS} more" if len(first.columns) > MOST_FIELDS else ""
    return f"read: {data.name}: {splits}; fields: {', '.join(fields)}{more}"


def _files_of(shards: Sequence[Shard], told: str) -> str:
    """The files of a split: a single one by its name, unless it is what the line begins with."""
    if len(shards) != 1:
        return f"{len(shards)} files"
    name = PurePath(shards[0].name).name
    return "1 file" if name == told else name


def _form(column: Any) -> str:
    if column.kind != "number":
        return str(column.kind)
    return f"{column.values.dtype}{list(column.row_shape) if column.row_shape else ''}"


def json_of(report: DataReport) -> str:
    """The report as JSON: findings, files, notes."""
    return json.dumps(
        {
            "findings": [f.to_json() for f in report.findings],
            "sets": [_json_set(d) for d in report.sets],
            "files": [{"path": a.path, "format": a.format, "rows": a.rows, "note": a.note} for a in report.artifacts],
            "notes": list(report.notes),
            "seconds": round(report.seconds, 3),
        },
        indent=1,
        allow_nan=False,
    )


def _json_set(data: DataSet) -> dict[str, Any]:
    return {
        "name": data.name,
        "fields": list(data.fields),
        "shards": [{"file": s.name, "split": s.split, "rows": s.total, "read": s.rows} for s in data.shards],
    }
