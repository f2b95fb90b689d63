"""What a person's prompt tells the gate: a short list of phrases, each the whole of what the person typed.

Strict on purpose. "Fix it" is a task, "looks good" is a mood, "do not approve A" is a refusal, "approve A, but not yet"
is a condition; only the words below, with nothing before or after but a courtesy, decide anything. Opening a session
restricts, so there more may follow. Every phrase may be written with `traindx:` before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BEFORE = (r"(?:/?traindx[:,]?\s+)?"
           r"(?:(?:yes|yep|ok|okay|sure|good|fine|agreed|thanks|great)[,.!;:]?\s+)*(?:please[,]?\s+)?")
_AFTER = r"(?:[,.!]?\s*\b(?:please|thanks|thank you))?\s*[.!]*\s*"
_WORD = r"\b"
_SESSION = r"(?:the |this |a |an |my |new )*(?:ml )?debug(?:ging)? session"
_APPROVE = r"(?:i |we )?(?:hereby )?approved?"
_OPTION = r"[\"'`*]*(?P<option>A|B|targeted|broader)\b[\"'`*]*(?: fix| option)?"

_PHRASES: tuple[tuple[str, str, str], ...] = (
    ("approve", "approve", rf"{_APPROVE}[:,]?\s+(?:(?:the )?(?:option|fix)\s+)?{_OPTION}{_AFTER}"),
    ("approve", "please", rf"(?:(?:the )?(?:option|fix)\s+)?{_OPTION}[,.]?\s+please\s*[.!]*\s*"),
    ("approve", "approve", rf"{_APPROVE}(?: it| this| the fix| the diagnosis)?{_AFTER}"),
    ("open", "session", rf"(?:open|start|begin) {_SESSION}{_WORD}.*"),
    ("open", "-debug", r"/(?:traindx:)?(?:ml-debug|research-debug|(?:pytorch|jax|distributed)-debugging)\b.*"),
    ("close", "session", rf"(?:close|end|finish|stop) {_SESSION}{_AFTER}"),
    ("strike", "fail", rf"(?:the |that )?(?:fix|verification) (?:has )?failed{_AFTER}"),
    ("strike", "fix", rf"(?:the |that )?fix did(?: not|n't) (?:work|help){_AFTER}"),
    ("strike", "strike", rf"(?:count )?a strike{_AFTER}"),
    ("verified", "fix", rf"(?:the |that )?fix (?:works|worked|is verified){_AFTER}"),
    ("verified", "verification", rf"(?:the |that )?verification passed{_AFTER}"),
    ("different", "different", rf"(?:try|take|choose) (?:a )?(?:fundamentally )?different approach{_AFTER}"),
    ("reopen", "reopen", r"reopen (?:the |this )?approach\b[,:]?\s*(?:because)?\s*(?P<reason>.*)"),
    ("runs", "run", rf"(?:allow runs|you may run (?:the )?code){_AFTER}"),
)
"""What is decided, a word that must occur (a pattern is compiled only then: every prompt starts the hook anew), how."""

_WITH_NAME_ONLY = ("off", "on", "open", "close", "strike", "verified", "different")

_LONGEST = 4_000
"""Characters of a prompt that are looked at; a longer one opens a session at most."""

_NO_PERSON = re.compile(r"\s*<[\w-]+[^>]*>")
"""A prompt that begins with a tag was written by the host (a finished task, a reminder), not by a person."""

_ALMOST = (r"\W*(?:(?:(?:yes|yep|ok(?:ay)?|sure|go(?: ahead| for it)?|do it|lgtm|looks good|sounds good|proceed"
           r"|apply(?: it)?|fix it|a|b)\b\W*)+$|(?:.{0,30}\b)?approv(?:e|ed)\b)")


class Said(NamedTuple):
    """One decision of a person."""

    kind: str
    option: str = ""
    reason: str = ""


def said(prompt: str) -> Said | None:
    """What the person decided with this prompt, or None."""
    text = prompt.strip()
    if _NO_PERSON.match(text):
        return None
    for kind, pattern in _candidates(text[:_LONGEST].lower()):
        if len(text) > _LONGEST and kind != "open":
            continue
        found = re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL)
        if found is not None:
            given = found.groupdict()
            option = {"A": "A", "B": "B", "TARGETED": "A", "BROADER": "B"}.get((given.get("option") or "").upper(), "")
            return Said(kind, option, (given.get("reason") or "").strip())
    return None


def _candidates(text: str) -> Iterator[tuple[str, str]]:
    if text.startswith(("traindx", "/traindx")):
        yield from ((word, rf"/?traindx[:,]?\s+{word}{_AFTER}") for word in _WITH_NAME_ONLY)
    yield from ((kind, _BEFORE + pattern) for kind, word, pattern in _PHRASES if word in text)


def almost(prompt: str) -> bool:
    """True for a prompt that sounds like an approval and is none."""
    return len(prompt) < 400 and not _NO_PERSON.match(prompt) and re.match(_ALMOST, prompt, re.IGNORECASE) is not None
