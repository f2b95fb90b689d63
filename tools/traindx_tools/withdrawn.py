"""Checks that are no more, and why: whoever meets an old id in a report, a comment or a setting is told."""

from __future__ import annotations

from collections.abc import Mapping

REMARK = "it was a remark on a program that works, and never the cause of a failed run"
STORY = "it knew one program's way to write the fault, not the fault"

WITHDRAWN: Mapping[str, str] = {
    "C125": REMARK,
    "C177": REMARK,
    "C207": REMARK,
    "C208": REMARK,
    "C211": STORY,
    "C212": STORY,
    "C213": REMARK,
    "C215": STORY,
    "C222": REMARK,
    "C223": REMARK,
    "C259": STORY,
    "C263": STORY,
    "C282": REMARK,
    "C296": REMARK,
    "C353": STORY,
}
"""Why each rule was withdrawn, by its id."""


def withdrawn(rule: str) -> str:
    """One line about a rule that was withdrawn; "" of any other."""
    why = WITHDRAWN.get(rule.upper())
    return f"{rule.upper()} was withdrawn: {why}. Nothing is reported under this id any more." if why else ""
