"""Bounded answers: a page of a text that says how much there is and how to get the rest."""

from __future__ import annotations

from traindx_tools.errors import BadUsage

_NOTICE = 260
"""Characters kept free on a page for the words that say what is missing."""


def page(text: str, max_chars: int, offset: int = 0, narrower: str = "") -> str:
    """At most `max_chars` characters of the text from `offset` on, cut at a line end where there is one.

    The last line of a page that is not the last says so, names the next offset and how to ask for less (`narrower`).
    Pages without that line, put together, are the text. Raises BadUsage for an offset behind the end.
    """
    if offset and offset >= len(text):
        raise BadUsage(f"offset={offset} lies behind the end: the answer has {len(text)} characters")
    rest = text[offset:]
    if len(rest) <= max_chars:
        return rest
    room = max_chars - _NOTICE
    cut = rest.rfind("\n", room // 2, room) + 1 or room
    advice = f" Or ask for less: {narrower}." if narrower else ""
    said = (f"[cut here: characters {offset}-{offset + cut} of {len(text)}; the rest: the same call with "
            f"offset={offset + cut}.{advice[:_NOTICE - 140]}]")
    shown = rest[:cut]
    return shown + ("" if shown.endswith("\n") else "\n") + said
