"""Texts that look the same and are not: other Unicode form, case, width or white space."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_SPACES = re.compile(r"[\s\u200b\u200c\u200d\u2060\ufeff]+")


def _spaces(text: str) -> str:
    return _SPACES.sub(" ", text.replace("\u200b", "").replace("\ufeff", "")).strip()


FORMS: Mapping[str, Callable[[str], str]] = {
    "Unicode form NFC": lambda t: unicodedata.normalize("NFC", t),
    "white space stripped": _spaces,
    "case folded": str.casefold,
    "Unicode form NFKC (width, ligatures)": lambda t: unicodedata.normalize("NFKC", t),
    "NFKC, case folded and white space stripped":
        lambda t: _spaces(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", t).casefold())),
}
"""What is tried, the least first."""
ENOUGH = 0.9
"""Share of what all of them together match that one must match."""


@dataclass(frozen=True)
class Matched:
    """What one part has and the others have in another form."""

    form: str
    pairs: tuple[tuple[str, str], ...]
    """In this part, and elsewhere; the most frequent first."""
    count: int
    """Occurrences in the part."""
    elsewhere: float
    """Share of all occurrences in the others that those other forms have."""


def matched(mine: Counter[str], others: Counter[str]) -> Matched | None:
    """What matches only after normalising, where the other form does not stand in this part as well."""
    lacking = {w: n for w, n in mine.items() if w not in others}
    if not lacking:
        return None
    found = {name: _pairs(lacking, mine, others, form) for name, form in FORMS.items()}
    most = max(sum(lacking[w] for w in pairs) for pairs in found.values())
    if not most:
        return None
    name, pairs = next((n, p) for n, p in found.items() if sum(lacking[w] for w in p) >= ENOUGH * most)
    ordered = sorted(pairs.items(), key=lambda p: -lacking[p[0]])
    total = max(1, sum(others.values()))
    return Matched(name, tuple(ordered), sum(lacking[w] for w in pairs),
                   sum(others[o] for o in set(pairs.values())) / total)


def _pairs(
    lacking: Mapping[str, int], mine: Mapping[str, int], others: Mapping[str, int], form: Callable[[str], str]
) -> dict[str, str]:
    known: dict[str, str] = {}
    for word in sorted(others, key=lambda w: others[w]):
        known[form(word)] = word  # the most frequent one last
    pairs = {w: known[f] for w in lacking if (f := form(w)) and f in known}
    return {w: o for w, o in pairs.items() if mine.get(o, 0) <= 0.1 * mine[w]}


def counted(texts: Sequence[str], words: bool) -> Counter[str]:
    """How often each text stands there, or each word of them."""
    if not words:
        return Counter(texts)
    return Counter(w for t in texts for w in t[:600].split(" "))
