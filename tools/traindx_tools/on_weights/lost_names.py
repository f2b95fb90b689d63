"""Which name a vocabulary may have lost: the words of texts beside it that it alone does not hold.

Told only where the texts show it: nearly all of their words are in the list as they stand, and as many as were lost are
not, each of them more than once.
"""

from __future__ import annotations

import csv
import json
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

MOST_FILES, MOST_BYTES, MOST_WORDS = 8, 16 * 2**20, 5_000_000
FEWEST, KNOWN = 50, 0.95
"""Distinct words of the texts, and the share of them that must be in the list."""
TIMES = 2
"""Occurrences of a word that was lost, at least: what stands there once may be a slip."""
_SUFFIXES = frozenset({".csv", ".tsv", ".txt", ".jsonl"})


def lost_names(path: str, names: Sequence[str], count: int) -> str:
    """A clause that names them and, of a sorted list, their places; "" where the texts do not show them."""
    known = set(names)
    for folder in dict.fromkeys((Path(path).parent, Path(path).parent.parent)):
        for lowered in (False, True):
            words = _words(folder, Path(path), lowered)
            lost = {w: n for w, n in words.items() if w not in known}
            enough = len(words) >= FEWEST and len(words) - len(lost) >= KNOWN * len(words)
            if enough and len(lost) == count and min(lost.values()) >= TIMES:
                told = ", ".join(f"{w!r} ({n} times)" for w, n in lost.items())
                return f"of {len(words):,} words of the texts beside it only {told} {'are' if count > 1 else 'is'} " \
                       f"not in it{_place(names, list(lost))}"
    return ""


def _place(names: Sequence[str], lost: Sequence[str]) -> str:
    """Between which lines a word belongs, where the names behind the special ones are sorted."""
    first = next((i for i, n in enumerate(names) if n[:1].isalnum()), len(names))
    rest = list(names[first:])
    if len(lost) != 1 or len(rest) < FEWEST or rest != sorted(rest):
        return ""
    return f" (sorted: into line {first + bisect(rest, lost[0]) + 1})"


def _words(folder: Path, vocabulary: Path, lowered: bool) -> Counter[str]:
    found: Counter[str] = Counter()
    for text in _texts(folder, vocabulary):
        found.update((text.lower() if lowered else text).split())
        if found.total() > MOST_WORDS:
            break
    return found


def _texts(folder: Path, vocabulary: Path) -> Iterator[str]:
    """Texts of more than one word in the tables and files of a folder."""
    try:
        files = sorted(p for p in folder.iterdir() if p.suffix.lower() in _SUFFIXES and p != vocabulary and p.is_file()
                       and p.stat().st_size <= MOST_BYTES)[:MOST_FILES]
    except OSError:
        return
    for path in files:
        try:
            yield from (t for t in _cells(path) if len(t.split()) > 1)
        except (OSError, ValueError, csv.Error, RecursionError):
            continue


def _cells(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as stream:
        if path.suffix.lower() in (".csv", ".tsv"):
            for row in csv.reader(stream, delimiter="\t" if path.suffix.lower() == ".tsv" else ","):
                yield from row
        elif path.suffix.lower() == ".jsonl":
            for line in stream:
                said = json.loads(line)
                yield from (v for v in said.values() if isinstance(v, str)) if isinstance(said, dict) else ()
        else:
            yield from stream
