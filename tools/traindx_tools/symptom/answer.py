"""What became of a stated symptom: seen, not seen in what was read, or not understood."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.finding import Value
from traindx_tools.symptom.stated import StatedSymptom

SEEN, NOT_SEEN, NOT_UNDERSTOOD = "seen", "not_seen", "not_understood"


@dataclass(frozen=True)
class Explanation:
    """One explanation of the symptom and the values that rule it out, or that do not."""

    what: str
    by: str
    ruled_out: bool


@dataclass(frozen=True)
class LookedAt:
    """`course`: what the symptom's metric did, "" where it is not recorded. `unseen`: what nothing read shows."""

    course: str = ""
    explanations: tuple[Explanation, ...] = ()
    unseen: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        def told(ruled_out: bool) -> list[dict[str, str]]:
            return [{"explanation": e.what, "by": e.by} for e in self.explanations if e.ruled_out == ruled_out]

        return {"course": self.course, "ruled_out": told(True), "not_ruled_out": told(False),
                "not_looked_at": list(self.unseen)}


@dataclass(frozen=True)
class SymptomAnswer:
    """The answer to one stated symptom.

    `statement`: one sentence with the values. `refuted`: the recording runs through and shows the opposite.
    `expected`: why what was seen is what this kind of run looks like, "" where nothing says so.
    """

    symptom: StatedSymptom
    answer: str
    statement: str
    metric: str = ""
    where: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    refuted: bool = False
    expected: str = ""
    explained_by: str | None = None
    """The failure mode that predicts it, where one is sure enough."""
    question: str = ""
    looked: LookedAt | None = None
    """What was looked at where nothing explains it."""

    @property
    def is_open(self) -> bool:
        """Whether nothing that was read settles it: neither explained nor expected nor refuted.

        A worry ("is it diverging?") is open only where what it asks for was seen.
        """
        if self.explained_by is not None or self.expected or self.refuted:
            return False
        return self.answer == SEEN or not self.symptom.asked

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; non-finite numbers become strings."""
        s = self.symptom
        return {
            "said": s.said, "kind": s.direction or "unknown", "metric": self.metric, "where": self.where,
            "answer": self.answer, "statement": self.statement,
            "values": {k: _plain(v) for k, v in self.values.items()}, "explained_by": self.explained_by,
            "expected": self.expected, "refuted": self.refuted, "asked": s.asked, "question": self.question,
            **({} if self.looked is None else {"looked_at": self.looked.to_json()}),
        }  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return list(value) if isinstance(value, tuple) else value
