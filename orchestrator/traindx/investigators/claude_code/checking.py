"""What of a model's claims stands: a cited line must exist and hold the quote, a cited value must be in the evidence, a
cited source must have been fetched. What fails is dropped, counted, and said why.

A line that was checked shows that the text is there, not that the reading of it is right: so a claim is circumstantial
at best, whatever the model calls it. Direct evidence comes from the instruments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from traindx.investigators.claude_code.answers import Item, Row
from traindx.model import Evidence
from traindx.policy import Scope, readable, resolve

READ_AT_MOST = 16 * 2**20
"""Bytes of a file in which a quote is looked for."""

SHORTEST_QUOTE = 4
"""Characters that are no space; a shorter quote stands in every file."""

_PLACE = re.compile(r"`?(?P<path>[^`\n]+?):(?:L|line )?(?P<line>\d{1,9})\b")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
_URL = re.compile(r"https?://\S+")


@dataclass(frozen=True)
class Proven:
    """A claim whose citation was checked. `kind`: "line" (code or log), "evidence" (the session's own), "source"."""

    who: str
    claim: str
    supports: bool
    kind: str
    place: str
    value: str
    failure_mode: str | None = None
    source: str = ""


@dataclass(frozen=True)
class Dropped:
    """A claim that did not stand, and why."""

    who: str
    claim: str
    why: str


@dataclass(frozen=True)
class Checker:
    """Checks against one workspace. `known` is the session's evidence by id; `sources` are addresses that were fetched,
    and the failure modes of the catalog with the addresses that it names."""

    scope: Scope
    known: Mapping[str, Evidence] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()

    def items(self, who: str, items: Iterable[Item]) -> tuple[tuple[Proven, ...], tuple[Dropped, ...]]:
        """What stands and what does not, each once."""
        kept: dict[tuple[str, str, bool], Proven] = {}
        dropped = []
        for item in items:
            found = self.item(who, item)
            if isinstance(found, Proven):
                kept.setdefault((found.place, found.source, found.supports), found)
            else:
                dropped.append(Dropped(who, item.claim, found))
        return tuple(kept.values()), tuple(dropped)

    def item(self, who: str, item: Item) -> Proven | str:
        """The claim as proven, or in one clause why not."""
        if not item.claim.strip():
            return "it claims nothing"
        place = _PLACE.match(item.place.strip())
        if place is not None:
            return self._line(who, item, place["path"], int(place["line"]))
        if item.source.strip() in self.known:
            return self._evidence(who, item)
        if _URL.match(item.source.strip()) or item.source.strip() in self.sources:
            return self._source(who, item)
        return "it names no line, no evidence of the session and no source"

    def _line(self, who: str, item: Item, path: str, line: int) -> Proven | str:
        wrong = self.quote_missing(path, line, item.quote)
        if wrong is not None:
            return wrong
        if item.value.strip() and not holds_value(item.quote, item.value) and not self._in_evidence(item):
            return f"the value {item.value[:80]!r} is neither in the quoted line nor in the evidence"
        where = f"{self._name(path)}:{line}"
        return Proven(who, item.claim, item.supports, "line", where, " ".join(item.quote.split()), item.failure_mode,
                      item.source)

    def line_missing(self, path: str, line: int) -> str | None:
        """Why there is no such line that may be read, or None where there is."""
        try:
            verdict = readable(path, self.scope)
            if not verdict.allow:
                return verdict.reason
            count = len(_lines(resolve(path, self.scope.workspace)))
        except (OSError, ValueError, RuntimeError) as error:
            return f"{path}: {error}"
        return None if 1 <= line <= count else f"{path} has {count} lines, no line {line}"

    def quote_missing(self, path: str, line: int, quote: str) -> str | None:
        """Why the line does not hold the quote, or None where it does."""
        if len("".join(quote.split())) < SHORTEST_QUOTE:
            return "it quotes nothing that could be checked"
        missing = self.line_missing(path, line)
        if missing is not None:
            return missing
        lines = _lines(resolve(path, self.scope.workspace))
        wanted = [" ".join(q.split()) for q in quote.strip().split("\n")]
        stands = [" ".join(s.split()) for s in lines[line - 1:line - 1 + len(wanted)]]
        if len(stands) == len(wanted) and all(w in s for w, s in zip(wanted, stands, strict=True)):
            return None
        return f"{path}:{line} does not hold the quoted text"

    def _evidence(self, who: str, item: Item) -> Proven | str:
        cited = self.known[item.source.strip()]
        if not item.value.strip() or not holds_value(f"{cited.value} {cited.statement}", item.value):
            return f"the value {item.value[:80]!r} is not in the evidence {cited.id}"
        return Proven(who, item.claim, item.supports, "evidence", cited.place, item.value, item.failure_mode, cited.id)

    def _in_evidence(self, item: Item) -> bool:
        cited = self.known.get(item.source.strip())
        return cited is not None and holds_value(f"{cited.value} {cited.statement}", item.value)

    def _source(self, who: str, item: Item) -> Proven | str:
        if not self.fetched(item.source):
            return f"the source {item.source[:200]} was not fetched"
        return Proven(who, item.claim, item.supports, "source", item.source.strip(), item.value or item.quote,
                      item.failure_mode, item.source.strip())

    def fetched(self, url: str) -> bool:
        """True where the source was fetched in this conversation, or is one of the catalog's own."""
        return _address(url) in {_address(s) for s in self.sources}

    def row(self, row: Row) -> str | None:
        """Why a row of the triangulation does not stand, or None: its source was fetched, its line exists."""
        if not self.fetched(row.url):
            return f"the source {row.url[:200]} was not fetched"
        if not row.location:
            return None
        place = place_of(row.location)
        return f"{row.location[:200]!r} is no place" if place is None else self.line_missing(*place)

    def _name(self, path: str) -> str:
        """The path as seen from the workspace."""
        real, root = resolve(path, self.scope.workspace), self.scope.workspace.resolve()
        return real.relative_to(root).as_posix() if real.is_relative_to(root) else str(real)


def place_of(text: str) -> tuple[str, int] | None:
    """(path, line) of a text that begins with `path:LINE`, or None."""
    found = _PLACE.match(text.strip())
    return (found["path"], int(found["line"])) if found else None


def holds_value(text: str, value: str) -> bool:
    """True where every number of the value stands in the text as a number; without numbers, where the text holds it."""
    numbers = _numbers(value)
    if numbers:
        there = _numbers(text)
        return all(n in there for n in numbers)
    wanted = " ".join(value.split()).casefold().strip("\"'`")
    return bool(wanted) and wanted in " ".join(text.split()).casefold()


def _numbers(text: str) -> set[float]:
    out = set()
    for found in _NUMBER.finditer(text):
        try:
            out.add(float(found[0].rstrip("%").replace(",", "").replace("_", "")))
        except ValueError:
            continue
    return out


def _address(url: str) -> str:
    return url.strip().split("#")[0].rstrip("/").casefold()


def _lines(path: Path) -> list[str]:
    status = path.stat()
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=32)
def _read(path: Path, changed: int, size: int) -> list[str]:
    if not path.is_file():
        raise ValueError("no regular file")
    with path.open("rb") as file:
        return file.read(READ_AT_MOST).decode("utf-8", "replace").removesuffix("\n").split("\n")
