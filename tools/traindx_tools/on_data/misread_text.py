"""Texts that were decoded with another encoding than they were written in, or escaped for a page and not back.

UTF-8 gives a letter beyond ASCII two bytes and more, of which the first says how many follow. Bytes of another encoding
are so by a rare chance, and words that were read in another encoding give the whole text back when they are written in
it and read as UTF-8. What was replaced (U+FFFD) is lost.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array

CODECS = ("latin-1", "cp1252", "cp1251", "mac_roman", "cp437", "cp850", "cp1250", "koi8_r")
"""What UTF-8 is read in by mistake, the most frequent first."""
_LETTERS = {c: "".join(bytes([b]).decode(c, "ignore") or chr(b) for b in range(256)) for c in CODECS}
"""By byte; what a codec leaves out stands as Latin-1 has it, as browsers do."""
_NUMBERS = {c: {letter: b for b, letter in enumerate(letters)} for c, letters in _LETTERS.items()}


def _runs(letters: str) -> re.Pattern[str]:
    """Stretches beyond ASCII that are letters of UTF-8 as a codec shows their bytes, from their first to their last."""
    more = f"[{re.escape(letters[0x80:0xC0])}]"
    first = [f"[{re.escape(letters[low:high])}]" for low, high in ((0xC2, 0xE0), (0xE0, 0xF0), (0xF0, 0xF5))]
    return re.compile(f"(?<![^\\x00-\\x7f\ufffd])(?:{first[0]}{more}|{first[1]}{more}{{2}}|{first[2]}{more}{{3}})+"
                      "(?![^\\x00-\\x7f\ufffd])")


_RUNS = {c: _runs(letters) for c, letters in _LETTERS.items()}
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,5}|[A-Za-z]{2,8}(?:acute|grave|uml|cedil"
                     r"|tilde|circ)|[lr][sd]quo|mdash|ndash|hellip|szlig|euro|copy);")
_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,200}>|://")
"""Pages and addresses are escaped by right."""
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_PERCENT = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f]){2,}")
MOST_TIMES = 3
LOST = "\ufffd"


@dataclass(frozen=True, eq=False)
class Misread:
    """How texts were changed, in which of them, and one before and after."""

    kind: str
    """`misread`, `replaced`, `entities`, `escaped`."""
    told: str
    repair: str
    """What gives the texts back, "" where they are lost."""
    hits: Array
    """bool shape (texts,)."""
    whole: Array
    """bool shape (texts,): those that the repair gives back and that come again when it is undone."""
    examples: Mapping[int, tuple[str, str]]
    """Before and after, by the number of the text: the surroundings of the first place."""


def misread(texts: Sequence[str]) -> Iterator[Misread]:
    """Each kind that any of the texts shows; a kind at most once."""
    yield from _by_codec(texts)
    kinds: tuple[tuple[str, str, str, re.Pattern[str], Callable[[str], str]], ...] = (
        ("entities", "hold HTML entities as text", "html.unescape(text)", _ENTITY, html.unescape),
        ("escaped", "hold the escapes of JSON as text", "json.loads(f'\"{text}\"')", _ESCAPED, _unescaped),
        ("percent", "hold letters escaped as in addresses", "urllib.parse.unquote(text)", _PERCENT, _unquoted),
    )
    for kind, told, repair, pattern, undo in kinds:
        found = {i: m for i, t in enumerate(texts) if (m := pattern.search(t)) and _MARKUP.search(t) is None}
        found = {i: m for i, m in found.items() if undo(texts[i]) != texts[i]}
        if found:
            shown = {i: _around(texts[i], m, undo) for i, m in found.items()}
            yield _made(kind, told, repair, texts, shown, set(found))
    lost = {i: m for i, t in enumerate(texts) if (m := re.search(LOST, t))}
    if lost:
        told = "hold the replacement character (U+FFFD): bytes that are no UTF-8 were read as UTF-8"
        yield _made("replaced", told, "", texts, {i: _around(texts[i], m, lambda t: t) for i, m in lost.items()}, set())


def _made(kind: str, told: str, repair: str, texts: Sequence[str], examples: Mapping[int, tuple[str, str]],
          whole: set[int]) -> Misread:
    marks = [np.zeros(len(texts), bool) for _ in (0, 1)]
    marks[0][list(examples)] = True
    marks[1][list(whole)] = True
    return Misread(kind, told, repair, marks[0], marks[1], examples)


def _around(text: str, match: re.Match[str], undo: Callable[[str], str]) -> tuple[str, str]:
    start = text.rfind(" ", 0, max(0, match.start() - 8)) + 1
    cut = text[max(start, match.start() - 30) : match.end() + 16].strip()
    return cut, undo(cut)


def _by_codec(texts: Sequence[str]) -> Iterator[Misread]:
    points = np.frombuffer("\n".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    if not len(points) or int(points.max()) < 0x80:
        return
    points = np.minimum(points, 0xFFFF)
    ends = np.cumsum(np.fromiter((len(t) + 1 for t in texts), np.int64, len(texts)))
    best: tuple[set[int], str, dict[int, tuple[str, int]]] | None = None
    for codec in CODECS:
        some = np.unique(np.searchsorted(ends, _starts(points, codec), side="right")).tolist()
        found = {i: after for i in some if (after := undone(texts[i], codec))[1]}
        whole = {i for i, (u, n) in found.items() if _again(u, codec, n) == texts[i]}
        if found and (best is None or len(whole) > 1.02 * len(best[0])):
            best = whole, codec, found
    if best is None:
        return
    whole, codec, found = best
    times = _TIMES[int(np.median([n for _, n in found.values()]))]
    examples = {i: _first_change(texts[i], u, codec) for i, (u, _) in found.items()}
    repair = f"text.encode({codec!r}).decode('utf-8'){times}"
    yield _made("misread", f"are UTF-8 that was read as {codec}{times}", repair, texts, examples, whole)


def _starts(points: Array, codec: str) -> Array:
    """Where a first byte and another one of UTF-8 stand behind a sign of ASCII: a look at all texts at once."""
    kinds = np.full(0x10000, 3, np.uint8)
    kinds[:0x80] = 0
    kinds[ord(LOST)] = 0
    for kind, (low, high) in ((1, (0xC2, 0xF5)), (2, (0x80, 0xC0))):
        kinds[[ord(c) for c in _LETTERS[codec][low:high]]] = kind
    at = kinds[points]
    before = np.concatenate([np.zeros(1, bool), at[:-1] == 0])
    before[:1] = True
    return np.flatnonzero(before[:-1] & (at[:-1] == 1) & (at[1:] == 2)) if len(at) else np.empty(0, np.int64)


_TIMES = {1: "", 2: ", twice", 3: ", three times"}


def undone(text: str, codec: str) -> tuple[str, int]:
    """A text whose stretches beyond ASCII were written in a codec and read as UTF-8, and how many times that went."""
    for times in range(MOST_TIMES + 1):
        after = _RUNS[codec].sub(lambda m: _decoded(m[0], codec), text)
        if after == text or times == MOST_TIMES:
            return text, times
        text = after
    return text, MOST_TIMES


def _decoded(run: str, codec: str) -> str:
    try:
        return bytes(_NUMBERS[codec][c] for c in run).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return run


def _again(text: str, codec: str, times: int) -> str:
    """What becomes of a text that is written as UTF-8 and read in a codec."""
    parts = text.split(LOST)  # what was lost on the way comes back neither way
    for _ in range(times):
        parts = ["".join(_LETTERS[codec][b] for b in p.encode("utf-8", "surrogatepass")) for p in parts]
    return LOST.join(parts)


def _first_change(before: str, after: str, codec: str) -> tuple[str, str]:
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    start, end = max(before.rfind(" ", 0, at) + 1, at - 30), before.find(" ", at + 3)
    cut = before[start : end if 0 < end < at + 24 else at + 24]
    return cut, undone(cut, codec)[0]


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        units = match[0].encode("ascii").decode("unicode_escape")
        return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    return _ESCAPED.sub(one, text)


def _unquoted(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        data = bytes.fromhex(match[0].replace("%", ""))
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return match[0]

    return _PERCENT.sub(one, text)
