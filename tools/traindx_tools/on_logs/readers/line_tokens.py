"""Cuts one line of free text into text and numbers, and finds the unit behind a number."""

from __future__ import annotations

import re

from traindx_tools.on_logs.readers.languages import counters_first, plain_signs
from traindx_tools.on_logs.readers.names import identify
from traindx_tools.on_logs.readers.numbers import TOKEN, UNIT, unit

_MAY_HOLD = re.compile(r"[0-9]|[nN][aA][nN]|[iI][nN][fF]")
"""Without one of these a line holds no token: told first, because prose is long and cutting it is slow."""
_UNIT_IN_NAME = re.compile(r"[A-Za-z_]\(1[eE][+-]?\d{1,2}\)\s?[:=]")
"""A power of ten in brackets right behind a name and before its value."""
_A_SECOND = re.compile(r"/s(?:ec)?(?![\w/])")


def split(text: str) -> list[str]:
    """Text and tokens in turn; the text parts alone are the shape."""
    if text.isascii() and not _MAY_HOLD.search(text):
        return [text]
    parts = TOKEN.split(text)
    return _with_units(parts) if _UNIT_IN_NAME.search(text) else parts


def _with_units(parts: list[str]) -> list[str]:
    """With each power of ten that is the unit of a name left in the text: "lr(1e-3): 3.0" holds one number."""
    joined = parts[:1]
    for token, after in zip(parts[1::2], parts[2::2], strict=True):
        if _UNIT_IN_NAME.search(f"{joined[-1][-2:]}{token}{after[:2]}"):
            joined[-1] += token + after
        else:
            joined += [token, after]
    return joined


def in_order(parts: list[str]) -> list[str]:
    """With plain signs, and counters before their numbers, where the line is in a script that has its own."""
    if all(p.isascii() for p in parts[::2]):
        return counters_first(parts)
    return counters_first([plain_signs(p) if i % 2 == 0 else p for i, p in enumerate(parts)])


def glued(after: str, used: int) -> bool:
    """Whether a word begins right behind a number, without being its unit."""
    return not used and bool(after) and (after[0].isalpha() or after[0] == "_")


def unit_behind(after: str, last: bool) -> tuple[tuple[str, float] | None, int]:
    """The unit at the start of the text behind a number, and how much of the text it takes."""
    if a_second := _A_SECOND.match(after):
        return ("throughput", 1.0), a_second.end()
    match = UNIT.match(after)
    if not match:
        return None, 0
    if match.group(1):
        return ("percent", 1.0), match.end()
    glued = not after[0].isspace()
    found = unit(match.group(2), glued)
    if found and found[0] == "count":  # "12.3k tok/s"
        rate, more = unit_behind(after[match.end():], last)
        if rate and rate[0] in ("throughput", "tokens_per_second"):
            return (rate[0], found[1] * rate[1]), match.end() + more
    names_next = not glued and not last and after[match.end():].strip() in ("", ":", "=")
    return (None, 0) if found is None or names_next else (found, match.end())


_SCALAR = re.compile(r"\b(?:np|numpy|jnp)\.(?:float|int|bfloat)\w*\($")
"""How NumPy 2 prints a number of its own within a list: "[np.float32(0.61), np.float32(0.5)]"."""


def unwrapped(parts: list[str]) -> list[str]:
    """Text and numbers in turn, without the calls around numbers that say of which type they are."""
    if not any("np." in p or "numpy." in p for p in parts[::2]):
        return parts
    told = list(parts)
    for at in range(0, len(told) - 2, 2):
        found = _SCALAR.search(told[at])
        if found is not None and told[at + 2].startswith(")"):
            told[at], told[at + 2] = told[at][:found.start()], told[at + 2][1:]
    return told


_LAST = re.compile(r"[\s(]+(?:(?:over|of|for|in|across|from)\s+)?(?:the\s+)?(?:last|past|previous|recent)\s+$")
_ENDS_NAME = re.compile(r"(?:\s+(?:episodes?|steps?|batches|iterations|iters|epochs|updates|samples))?\s*\)?\s*"
                        r"([:=]\s*)")


def in_a_name(gap: str, token: str, after: str) -> str | None:
    """The name before the next number where this one is a part of it: over how many values a mean was taken, or the k
    of a known name ("top 5: 0.93"); None for a number of its own."""
    ends = _ENDS_NAME.fullmatch(after) if token.isdigit() else None
    if ends is None:
        return None
    window = _LAST.search(gap)
    if window is not None and gap[:window.start()].strip():
        return gap[:window.start()] + ends[1]
    word = gap.rstrip()
    last = word.split()[-1:] if word == gap.rstrip(" _@-") else []
    counts = bool(last) and last[0].isalpha() and identify(last[0] + token).known and not identify(last[0]).known
    return f"{word}{token}{after}" if counts else None


_NAME_BEHIND = re.compile(r"(\s+)([A-Za-z][A-Za-z_ ]{0,30}?)\s*([,;|]?)\s*")
FEWEST_BEHIND = 2
"""Known names behind their numbers from which on a line is written so."""


def names_first(parts: list[str]) -> list[str] | None:
    """Text and numbers in turn with each name before its number, where a line has them behind: "2.31 avg loss, 0.001
    rate, 6400 images"; None for other lines."""
    if not any(part.rstrip().endswith((",", ";", "|")) for part in parts[2:-1:2]):
        return None
    found = {at: m for at in range(2, len(parts), 2) if (m := _NAME_BEHIND.fullmatch(parts[at])) is not None
             and (m[3] or at == len(parts) - 1)}
    known = [m for m in found.values() if (name := identify(m[2])).known and (name.measured or name.canonical != m[2])]
    named_before = any(part.rstrip()[-1:] in "=:" and part.strip(" :=") for part in parts[:-1:2])
    if len(known) < FEWEST_BEHIND or named_before:
        return None
    told = list(parts)
    for at, m in found.items():
        told[at] = ", "
        told[at - 2] = f"{told[at - 2]}{m[2]}: "
    return told
