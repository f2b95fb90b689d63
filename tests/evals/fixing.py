"""Does the proposed patch make a case healthy? Applied in a copy, run, and checked as the case says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Fixed:
    """`outcome`: "healthy", "not healthy", "instructions" (no certain patch was proposed), "no diagnosis"."""

    case: str
    outcome: str
    why: str = ""


def fix_case(name: str, truth: dict[str, Any], report: Any, folder: Path, seconds: float) -> Fixed:
    """Applies the edits of option A in a copy of the workspace, runs the case's command and checks its output."""
    from traindx import patching
    from traindx.rerun import run_in_copy

    if report.diagnosis is None:
        return Fixed(name, "no diagnosis", report.seen.verdict.reason[:100])
    option = report.diagnosis.option("A")
    if not option.edits:
        return Fixed(name, "instructions", option.summary)
    store = patching.Store(folder / "store")
    patching.put(report.places.root, patching.plan(report.places.root, option.edits, store), store)
    rerun = run_in_copy(truth["run"], report.places.root, folder / "fixed", seconds)
    output = rerun.log.read_text(encoding="utf-8", errors="replace")
    failed = rerun.outcome.exit_code != 0
    healthy = holds(truth["fixed_check"], output, failed=failed) and not still_there(truth, output, failed=failed)
    shown = "; ".join(f"{e.path}:{e.line}" for e in option.edits)
    return Fixed(name, "healthy" if healthy else "not healthy", f"{shown}: {rerun.ended}: {rerun.last_line}"[:160])


def holds(check: str, output: str, *, failed: bool) -> bool:
    """A check of a case: a regex on the output, `exit!=0`, or both joined by `&&`; a run that failed holds no other."""
    parts = [p.strip() for p in check.split("&&")]
    wants_failure = "exit!=0" in parts
    patterns = [p for p in parts if p != "exit!=0"]
    return failed == wants_failure and all(re.search(p, output, re.MULTILINE) for p in patterns)


def still_there(truth: dict[str, Any], output: str, *, failed: bool) -> bool:
    """Whether the case's own symptom is still shown."""
    return bool(truth.get("symptom_check")) and holds(truth["symptom_check"], output, failed=failed)
