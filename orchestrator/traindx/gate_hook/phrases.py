"""What a person's prompt tells the gate: a short list of phrases, each at the beginning of what the person typed.

Strict on purpose. "Fix it" is a task, "looks good" is a mood, "do not approve A" is a refusal; only the words below
decide anything. Every phrase may be written with `traindx:` before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BEFORE = (r"(?:/?traindx[:,]?\s+)?"
           r"(?:(?:yes|yep|ok|okay|sure|good|fine|agreed|thanks|great)[,.!;:]?\s+)*(?:please[,]?\s+)?")
_END = r"(?=\s*(?:$|[.,;:!)\n]|please\b|and\b|with\b|for\b|because\b|to me\b))"
_SESSION = r"(?:the |this |a |an |my |new )*(?:ml )?debug(?:ging)? session"

_PHRASES: tuple[tuple[str, str, str], ...] = (
    ("approve", "approve", r"(?:i |we )?(?:hereby )?approved?[:,]?\s+(?:(?:the )?(?:option|fix)\s+)?[\"'`*]*"
                           rf"(?P<option>A|B|targeted|broader)\b[\"'`*]*(?: fix| option)?{_END}"),
    ("approve", "approve", rf"(?:i |we )?(?:hereby )?approved?(?: it| this| the fix| the diagnosis)?{_END}"),
    ("open", "session", rf"(?:open|start|begin) {_SESSION}"),
    ("open", "ml-debug", r"/(?:traindx:)?ml-debug\b"),
    ("close", "session", rf"(?:close|end|finish|stop) {_SESSION}"),
    ("strike", "fail", rf"(?:the |that )?(?:fix|verification) (?:has )?failed{_END}"),
    ("strike", "fix", rf"(?:the |that )?fix did(?: not|n't) (?:work|help){_END}"),
    ("strike", "strike", rf"(?:count )?a strike{_END}"),
    ("verified", "fix", rf"(?:the |that )?fix (?:works|worked|is verified){_END}"),
    ("verified", "verification", rf"(?:the |that )?verification passed{_END}"),
    ("different", "different", rf"(?:try|take|choose) (?:a )?(?:fundamentally )?different approach{_END}"),
    ("reopen", "reopen", r"reopen (?:the |this )?approach\b[,:]?\s*(?:because)?\s*(?P<reason>.*)"),
    ("runs", "run", rf"(?:allow runs|you may run (?:the )?code){_END}"),
)
"""What is decided, a word that must occur (a pattern is compiled only then: every prompt starts the hook anew), how."""

_WITH_NAME_ONLY = ("off", "on", "open", "close", "strike", "verified", "different")

_LONGEST = 4_000
"""Characters of a prompt that are looked at: a phrase stands at the beginning."""

_NO_PERSON = re.compile(r"\s*<[\w-]+[^>]*>")
"""A prompt that begins with a tag was written by the host (a finished task, a reminder), not by a person."""

_ALMOST = (r"\W*(?:(?:yes|yep|ok(?:ay)?|sure|go(?: ahead| for it)?|do it|lgtm|looks good|sounds good|proceed"
           r"|apply(?: it)?|fix it|a|b)\b\W*)+$")


class Said(NamedTuple):
    """One decision of a person."""

    kind: str
    option: str = ""
    reason: str = ""


def said(prompt: str) -> Said | None:
    """What the person decided with this prompt, or None."""
    text = prompt[:_LONGEST].strip()
    if _NO_PERSON.match(text):
        return None
    for kind, pattern in _candidates(text.lower()):
        found = re.match(pattern, text, re.IGNORECASE)
        if found is not None and not _asks(text[found.end():]):
            given = found.groupdict()
            option = {"A": "A", "B": "B", "TARGETED": "A", "BROADER": "B"}.get((given.get("option") or "").upper(), "")
            return Said(kind, option, (given.get("reason") or "").strip())
    return None


def _candidates(text: str) -> Iterator[tuple[str, str]]:
    if text.startswith(("traindx", "/traindx")):
        yield from ((word, rf"/?traindx[:,]?\s+{word}{_END}") for word in _WITH_NAME_ONLY)
    yield from ((kind, _BEFORE + pattern) for kind, word, pattern in _PHRASES if word in text)


def _asks(rest: str) -> bool:
    """A question about a phrase is no decision."""
    return rest.split("\n", 1)[0].split(".", 1)[0].rstrip().endswith("?")


def almost(prompt: str) -> bool:
    """True for a prompt that sounds like an approval and names none."""
    return len(prompt) < 200 and not _NO_PERSON.match(prompt) and re.match(_ALMOST, prompt, re.IGNORECASE) is not None
