"""How a diagnosis is scored against a case's truth.

A case is a folder with `input/` (what a user hands over) and `case.json` (the truth: `accept` and `reject` patterns for
the cause, `location`, `needs`, `healthy`). The truth is never shown to the code under test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LINE_TOLERANCE = 3
CONFIDENT = 0.70


@dataclass(frozen=True)
class Score:
    """What became of one case at one input level.

    `outcome`: "right", "third" (right among the first three), "wrong" (another cause asserted with 0.70 or more),
    "abstained", "quiet" (a healthy case left alone) or "alarm" (a healthy case called broken).
    """

    case: str
    level: str
    needs: str
    healthy: bool
    outcome: str
    located: bool | None
    confidence: float
    first: str
    status: str
    tempted: bool = False
    """A `reject` pattern matched the cause too: to be read by hand."""


def matches(patterns: Iterable[str], text: str) -> bool:
    """Whether any pattern is found, as the truth's author meant it (case-insensitive, dots match newlines)."""
    return any(re.search(p, text, re.IGNORECASE | re.DOTALL) for p in patterns)


def cause_text(item: Mapping[str, Any]) -> str:
    """What the diagnosis says of one cause: the issue and its mechanism."""
    return f"{item.get('issue', '')}\n{item.get('mechanism', '')}"


def near(place: str | None, truth: Sequence[str]) -> bool:
    """Whether `file.py:LINE` lies within three lines of one of the true places."""
    found = re.search(r"([^/\\:]+):(\d+)$", place or "")
    if not found:
        return False
    for true in truth:
        name, _, line = true.rpartition(":")
        if name.endswith(found[1]) and abs(int(line) - int(found[2])) <= LINE_TOLERANCE:
            return True
    return False


def score(name: str, truth: Mapping[str, Any], result: Mapping[str, Any], level: str) -> Score:
    """Scores the result JSON of a diagnosis against the truth of a case."""
    causes = result["root_causes"]
    ranked = causes or result["hypotheses"]
    confidence = float(ranked[0]["confidence"]) if ranked else 0.0
    first = cause_text(ranked[0]) if ranked else ""
    tempted = bool(causes) and matches(truth["reject"], first)
    located = None
    if truth["healthy"]:
        serious = [f for f in result["findings"] if f["severity"] in ("critical", "high", "medium")]
        outcome = "alarm" if causes or serious else "quiet"
    else:
        outcome = _outcome(truth, causes, result["hypotheses"], first, confidence)
        places = [truth["location"], *truth.get("location_alt", [])]
        if truth["location"]:
            located = near(ranked[0].get("location"), places) if ranked else False
    return Score(name, level, truth["needs"], truth["healthy"], outcome, located, confidence,
                 (ranked[0]["issue"] if ranked else result["status"]), result["status"], tempted)


def _outcome(truth: Mapping[str, Any], causes: Sequence[Mapping[str, Any]], hypotheses: Sequence[Mapping[str, Any]],
             first: str, confidence: float) -> str:
    if first and matches(truth["accept"], first):
        return "right"
    if causes and confidence >= CONFIDENT:
        return "wrong"
    if any(matches(truth["accept"], cause_text(h)) for h in hypotheses[:3]):
        return "third"
    return "abstained"
