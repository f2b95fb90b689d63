"""What rules said, as a value that survives a pipe and a file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from traindx_tools.artifact import Artifact
from traindx_tools.finding import Finding


@dataclass
class RuleResults:
    """Findings, and notes about what could not be read, followed or judged."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[Artifact] = field(default_factory=list)

    def add(self, other: RuleResults | None) -> None:
        """What another process said; None where it died."""
        if other is not None:
            self.findings += other.findings
            self.notes += other.notes

    def dumps(self) -> str:
        """As JSON."""
        notes = [[a.path, a.format, a.note] for a in self.notes]
        findings = [f.to_json() for f in self.findings]
        return json.dumps({"findings": findings, "notes": notes}, allow_nan=False)

    @classmethod
    def loads(cls, text: str | bytes) -> RuleResults:
        """The inverse of `dumps`. Raises ValueError, KeyError, TypeError or AttributeError on anything else."""
        said = json.loads(text)
        notes = [Artifact(str(path), str(kind), note=str(note)) for path, kind, note in said["notes"]]
        return cls([Finding.from_json(f) for f in said["findings"]], notes)


BROKEN = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What `RuleResults.loads` raises on anything that `dumps` did not write."""
