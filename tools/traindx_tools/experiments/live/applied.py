"""What the changes of a run did, read back from the records of all its processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions import check
from traindx_tools.experiments.live.ledger import KIND
from traindx_tools.experiments.trace import Applied
from traindx_tools.live.reading import MAX_BYTES, MAX_FILES


def applied_in(folder: Path) -> dict[str, Applied]:
    """What each change did, by its text with all options (`str(check(change))`), over all ranks of the run folder.

    `times` is what the rank that it held least in counts: every rank must have applied it. A problem of one rank is the
    problem of the run. A change without a record is missing: no process that trained said anything of it.
    """
    found: dict[str, dict[str, Applied]] = {}
    for path in sorted(folder.rglob("rank*.jsonl"))[:MAX_FILES]:
        for record in _records(path):
            change = str(record.get("change", ""))
            found.setdefault(change, {})[path.name] = Applied(
                int(record.get("times", 0)), str(record.get("where", "")), str(record.get("problem", "")))
    return {change: _together(ranks) for change, ranks in found.items()}


def applied_of(change: Change, folder: Path) -> Applied:
    """What one change did; where no process said anything of it, that is its problem."""
    found = applied_in(folder)
    told = str(check(change))
    missing = Applied(problem="no process of the run that trained has recorded it: it ended before its first step, or "
                              "its Python started without the instruments")
    return found.get(told, missing)


def _together(ranks: dict[str, Applied]) -> Applied:
    several = len(ranks) > 1
    problems = [f"{Path(name).stem}: {a.problem}" if several else a.problem for name, a in ranks.items() if a.problem]
    return Applied(min(a.times for a in ranks.values()), next((a.where for a in ranks.values() if a.where), ""),
                   problems[0] if problems else "")


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_bytes()[:MAX_BYTES]
    except OSError:
        return
    for line in text.splitlines():
        if b'"' + KIND.encode() + b'"' not in line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # the last line of a process that was killed
            continue
        if isinstance(record, dict) and record.get("kind") == KIND:
            yield record
