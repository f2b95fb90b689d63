"""Where a live instrument writes: one bounded file of JSON lines a rank, and a summary beside it.

`<run folder>/rank00000.jsonl` holds records of kind "start", "metrics" (a step and plain numbers), "finding" and
"end"; when it reaches its bound the oldest metrics go first, findings never. `rank00000.summary.json` is rewritten
whenever a finding arrives, so that a process that is killed leaves what it saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from traindx_tools.finding import Finding


class Recorder(Protocol):
    """What a probe may write. No call raises: a full disk switches the instrument off, with one line."""

    @property
    def rank(self) -> int:
        """The rank of this process: 0 where there is only one."""

    def mark(self, kind: str, **fields: object) -> None:
        """A record of a kind of its own."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of one optimizer step under canonical names, such as `grad_norm/<module>`; host values only."""

    def finding(self, finding: Finding) -> None:
        """One finding; a second one of the same rule at the same place is counted, not written again."""

    def facts(self, text: str) -> None:
        """What the program is made of and does, as a short text; a later one stands in its place."""

    def withdraw(self, rule: str, key: str, value: str) -> None:
        """Takes back the findings of a rule that measured this: what came later showed that they were early."""
