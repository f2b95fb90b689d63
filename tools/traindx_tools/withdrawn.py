"""Checks that are no more, and why: whoever meets an old id in a report, a comment or a setting is told."""

from __future__ import annotations

from collections.abc import Mapping

REMARK = "it was a remark on a program that works, and never the cause of a failed run"
UNHEARD = ("it was never right on the programs of strangers, no known failure needs it, and it went by names or was "
           "false on public programs")
"""Judgements: `benchmarks/judgements/`, `benchmarks/unseen_cases.md`; names: `benchmarks/corpus_record.py`."""
STORY = "it knew one program's way to write the fault, not the fault"

WITHDRAWN: Mapping[str, str] = {
    "C118": UNHEARD,
    "C125": REMARK,
    "C139": UNHEARD,
    "C156": UNHEARD,
    "C168": UNHEARD,
    "C169": UNHEARD,
    "C177": REMARK,
    "C178": UNHEARD,
    "C181": UNHEARD,
    "C183": UNHEARD,
    "C184": UNHEARD,
    "C185": UNHEARD,
    "C188": UNHEARD,
    "C191": UNHEARD,
    "C193": UNHEARD,
    "C198": UNHEARD,
    "C200": UNHEARD,
    "C201": UNHEARD,
    "C203": UNHEARD,
    "C207": REMARK,
    "C208": REMARK,
    "C209": UNHEARD,
    "C210": UNHEARD,
    "C211": STORY,
    "C212": STORY,
    "C213": REMARK,
    "C214": UNHEARD,
    "C215": STORY,
    "C222": REMARK,
    "C223": REMARK,
    "C224": UNHEARD,
    "C237": UNHEARD,
    "C240": UNHEARD,
    "C243": UNHEARD,
    "C245": UNHEARD,
    "C249": UNHEARD,
    "C250": UNHEARD,
    "C254": UNHEARD,
    "C255": UNHEARD,
    "C256": UNHEARD,
    "C259": STORY,
    "C263": STORY,
    "C268": UNHEARD,
    "C275": STORY,
    "C282": REMARK,
    "C296": REMARK,
    "C303": UNHEARD,
    "C305": UNHEARD,
    "C328": UNHEARD,
    "C329": UNHEARD,
    "C332": UNHEARD,
    "C333": UNHEARD,
    "C334": UNHEARD,
    "C340": UNHEARD,
    "C353": STORY,
    "C510": UNHEARD,
    "C515": UNHEARD,
    "C516": UNHEARD,
    "C521": UNHEARD,
    "C522": UNHEARD,
    "C523": UNHEARD,
    "C525": UNHEARD,
    "C526": UNHEARD,
    "C532": UNHEARD,
    "C533": UNHEARD,
    "C534": UNHEARD,
    "C535": UNHEARD,
    "C538": UNHEARD,
    "C544": UNHEARD,
    "C545": UNHEARD,
    "C546": UNHEARD,
    "C548": UNHEARD,
    "C549": UNHEARD,
    "C550": UNHEARD,
    "C551": UNHEARD,
    "C564": STORY,
}
"""Why each rule was withdrawn, by its id."""


def withdrawn(rule: str) -> str:
    """One line about a rule that was withdrawn; "" of any other."""
    why = WITHDRAWN.get(rule.upper())
    return f"{rule.upper()} was withdrawn: {why}. Nothing is reported under this id any more." if why else ""
