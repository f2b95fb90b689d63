"""What a run showed, told as soon as it ended: facts first, before an experiment is made or a cause is weighed.

Who reads along (an agent, a person at a pipe) need not wait for the verdict: the program's entities, its usual order,
the files that it read and what the instruments saw are measured by then. Nothing here is a cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from traindx.safe_text import line
from traindx_tools.finding import Finding, Severity
from traindx_tools.live.reading import LiveRun

FACTS = 16
"""Lines of facts that are told at once; all of them lie in the records of the run."""
FINDINGS = 5
LONGEST = 240
TOLD = frozenset({Severity.MEDIUM, Severity.HIGH, Severity.CRITICAL})
"""Severities that are told at once; remarks and low ones wait for the verdict."""


def seen_at_once(told: LiveRun, seen: Sequence[Finding], root: Path) -> Iterator[str]:
    """A sentence each: what the instruments saw, then what the program is made of, then the files that it read.

    `root`: the folder that the command ran in, real path; paths below it are written from there. Nothing where the
    instruments saw no training.
    """
    alarming = [f for f in seen if f.severity in TOLD]
    for finding in alarming[:FINDINGS]:
        where = f" ({finding.where})" if finding.where else ""
        yield line(f"seen in this run, not weighed yet: {finding.rule} {finding.statement}{where}", LONGEST)
    if len(alarming) > FINDINGS:
        yield f"seen in this run: {len(alarming) - FINDINGS} more, with the verdict"
    facts = told.facts.splitlines()
    for fact in facts[:FACTS]:
        yield line(f"fact: {fact.replace(f'{root}/', '')}", LONGEST)
    if len(facts) > FACTS:
        yield f"fact: {len(facts) - FACTS} more facts in the records of the run"
    files = [Path(one.path) for one in told.data_files(root)]
    if files:
        shown = ", ".join(str(f.relative_to(root) if f.is_relative_to(root) else f) for f in files[:6])
        more = f" and {len(files) - 6} more" if len(files) > 6 else ""
        yield line(f"fact: it read {shown}{more}", LONGEST)
