"""What of a session's requests is the same in every session, in tokens, by role.

Counted is the whole of a session, from the first request to an approved and verified fix: of each conversation its
tools, its system text and all that we say in it but the data, once, as it is sent; the shared beginning is counted in
each of them. A specialist is asked by the lead: its question is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lead_scripts import user_texts
from one_case import SPECIALISTS
from scripted_api import Asked, system_text, tokens_of

WHOLE_SESSION = 12_000
"""Tokens: the lead, three specialists, the adversary, the fix author and the fix reviewer."""
FIRST_OF_A_SPECIALIST = 3_500
"""Tokens of its whole first request, with a question of 60 words and, in the CLI, with all that the CLI adds."""
PARTS_OF_THE_CLI = ("Agent", "Read", "DeferredToolPlaceholder")
"""Tools whose texts are the CLI's own; the rest of a request is ours, but for the environment that it describes."""
FRAME = "You work for traindx"
QUESTION = """Rows {n}: does every batch that reaches the loss in train.py hold labels that belong to the rows of its
inputs, and are both finite and in the range that the loss expects? The log turns to nan at step 1200, after the
warmup ended at step 1000; gradient norms rise from step 1150 on. Look at make_rows and at the clip before the
logarithm, count, and cite what you measured."""
_PLACE = re.compile(r"relative to /\S+\.(?=\s)")
_DATA = re.compile(r"<data>.*?</data>", re.DOTALL)


def fixed(asked: Sequence[Asked], *, cli: bool = False) -> dict[str, int]:
    """Tokens by role. `cli`: the CLI's own parts are left out."""
    first = {a.role: a.body for a in reversed(asked)}
    return {role: _ours(body, _said(role, asked), cli) for role, body in first.items()}


def _said(role: str, asked: Sequence[Asked]) -> str:
    if role in SPECIALISTS:
        return ""
    texts = dict.fromkeys(t for a in asked if a.role == role for t in user_texts(a.body) if not t.startswith("<"))
    return "\n".join(dict.fromkeys(_DATA.sub("", t) for t in texts))


def _ours(body: Mapping[str, Any], said: str, cli: bool) -> int:
    system = FRAME + system_text(body).partition(FRAME)[2].partition("\n\nMessages from the agent")[0]
    system = _PLACE.sub("relative to /home/person/project.", system)  # a test's folder has a longer name
    tools = [t for t in body["tools"] if not cli or t["name"] not in PARTS_OF_THE_CLI]
    return tokens_of({"system": system, "tools": tools, "messages": said})
