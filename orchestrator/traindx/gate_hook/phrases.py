"""What a person's prompt tells the gate: a short list of phrases, each at the beginning of what the person typed.

Strict on purpose. "Fix it" is a task, "looks good" is a mood, "do not approve A" is a refusal; only the words below
decide anything. Every phrase may be written with `traindx:` before it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BEFORE = (r"(?:/?traindx[:,]?\s+)?"
           r"(?:(?:yes|yep|ok|okay|sure|good|fine|agreed|thanks|great)[,.!;:]?\s+)*(?:please[,]?\s+)?")
_END = r"(?=\s*(?:$|[.,;:!)\n]|please\b|and\b|with\b|for\b|because\b|to me\b))"
_SESSION = r"(?:the |this |a |an |my |new )*(?:ml )?debug(?:ging)? session"

_PHRASES: tuple[tuple[str, re.Pattern[str]], ...] = tuple((kind, re.compile(_BEFORE + pattern, re.IGNORECASE)) for
                                                          kind, pattern in (
    ("approve", r"(?:i |we )?(?:hereby )?approved?[:,]?\s+(?:(?:the )?(?:option|fix)\s+)?"
                r"[\"'`*]*(?P<option>A|B|targeted|broader)"
                rf"\b[\"'`*]*(?: fix| option)?{_END}"),
    ("approve", rf"(?:i |we )?(?:hereby )?approved?(?: it| this| the fix| the diagnosis)?{_END}"),
    ("open", rf"(?:open|start|begin) {_SESSION}"),
    ("open", r"/(?:traindx:)?ml-debug\b"),
    ("close", rf"(?:close|end|finish|stop) {_SESSION}"),
    ("strike", rf"(?:(?:the |that )?(?:fix|verification) (?:has )?(?:failed|did(?: not|n't) (?:work|help))"
               rf"|(?:count )?a strike){_END}"),
    ("verified", rf"(?:the |that )?(?:fix (?:works|worked|is verified)|verification passed){_END}"),
    ("different", rf"(?:try|take|choose) (?:a )?(?:fundamentally )?different approach{_END}"),
    ("reopen", r"reopen (?:the |this )?approach\b[,:]?\s*(?:because)?\s*(?P<reason>.*)"),
    ("runs", rf"(?:allow runs|you may run (?:the )?code){_END}"),
))
_WITH_NAME_ONLY: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"/?traindx[:,]?\s+{word}{_END}", re.IGNORECASE))
    for kind, word in (("off", "off"), ("on", "on"), ("open", "open"), ("close", "close"), ("strike", "strike"),
                       ("verified", "verified"), ("different", "different")))

_LONGEST = 4_000
"""Characters of a prompt that are looked at: a phrase stands at the beginning."""

_NO_PERSON = re.compile(r"\s*<[\w-]+[^>]*>")
"""A prompt that begins with a tag was written by the host (a finished task, a reminder), not by a person."""

_ALMOST = re.compile(r"\W*(?:(?:yes|yep|ok(?:ay)?|sure|go(?: ahead| for it)?|do it|lgtm|looks good|sounds "
                     r"good|proceed|apply(?: it)?|fix it|a|b)\b\W*)+$", re.IGNORECASE)


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
    for kind, pattern in (*_WITH_NAME_ONLY, *_PHRASES):
        found = pattern.match(text)
        if found is not None and not _asks(text[found.end():]):
            given = found.groupdict()
            option = {"A": "A", "B": "B", "TARGETED": "A", "BROADER": "B"}.get((given.get("option") or "").upper(), "")
            return Said(kind, option, (given.get("reason") or "").strip())
    return None


def _asks(rest: str) -> bool:
    """A question about a phrase is no decision."""
    return rest.split("\n", 1)[0].split(".", 1)[0].rstrip().endswith("?")


def almost(prompt: str) -> bool:
    """True for a prompt that sounds like an approval and names none."""
    return len(prompt) < 200 and not _NO_PERSON.match(prompt) and _ALMOST.match(prompt) is not None
