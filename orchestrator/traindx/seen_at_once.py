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

FINDINGS, FILES = 5, 6
LINES = 60
"""Lines of facts that are told at most: the probe writes no more than 800 tokens, whoever changed its file may have."""
LONGEST = 400


def seen_at_once(told: LiveRun, seen: Sequence[Finding], root: Path) -> Iterator[str]:
    """A sentence each: what the instruments saw, then what the program is made of, then the files that it read.

    `root`: the folder that the command ran in, real path; files below it are written from there. Nothing where the
    instruments saw no training.
    """
    serious = [f for f in seen if f.severity.rank >= Severity.MEDIUM.rank]
    for finding in serious[:FINDINGS]:
        where = f" ({finding.where})" if finding.where else ""
        yield line(f"seen in this run, not weighed yet: {finding.rule} {finding.statement}{where}", LONGEST)
    if len(serious) > FINDINGS:
        yield f"seen in this run: {len(serious) - FINDINGS} more, with the verdict"
    facts = told.facts.splitlines()
    yield from (line(f"fact: {fact}", LONGEST) for fact in facts[:LINES])
    if len(facts) > LINES:
        yield f"fact: {len(facts) - LINES} more facts are left out"
    files = [Path(one.path) for one in told.data_files(root)]
    if files:
        shown = ", ".join(str(f.relative_to(root) if f.is_relative_to(root) else f) for f in files[:FILES])
        more = f" and {len(files) - FILES} more" if len(files) > FILES else ""
        yield line(f"fact: it read {shown}{more}", LONGEST)
