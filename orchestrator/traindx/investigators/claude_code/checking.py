"""What of a model's claims stands: a cited line must exist and hold the quote, a cited value must be in the evidence or
in the output, a cited source must have been fetched. What fails is dropped, counted, and said why.

A line that was checked shows that the text is there, not that the reading of it is right: so a claim on it is
circumstantial at best. What a probe or an experiment measured is direct; what the agent had written into its code, and
the probe printed back, is nothing that was measured.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from traindx.investigators.bench.bench import output_place
from traindx.investigators.bench.outputs import Output
from traindx.investigators.claude_code.answers import Item, Row
from traindx.investigators.claude_code.written_in import written
from traindx.model import Evidence
from traindx.policy import Scope, readable, resolve

READ_AT_MOST = 16 * 2**20
"""Bytes of a file in which a quote is looked for."""

SHORTEST_QUOTE = 4
"""Characters that are no space; a shorter quote stands in every file."""

_QUOTED_LINES = 4
"""Lines of an output that one quote may go over, after the first."""

_PLACE = re.compile(r"`?(?P<path>[^`\n]+?):(?:L|line )?(?P<line>\d{1,9})\b")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
_URL = re.compile(r"https?://\S+")


@dataclass(frozen=True)
class Proven:
    """A claim whose citation was checked. `kind`: "line" (code or log), "evidence" (the session's own), "source", "run"
    (the output of a probe or an experiment), "measured" (an instrument's output)."""

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
    and the failure modes of the catalog with the addresses that it names; `outputs` what was run and measured."""

    scope: Scope
    known: Mapping[str, Evidence] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()
    outputs: Mapping[str, Output] = field(default_factory=dict)

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
        cited = item.place.strip().strip("[]` ")
        output = output_place(cited)
        if output is not None:
            return self._output(who, item, *output)
        if cited in self.known:
            return self._evidence(who, item, self.known[cited])
        if _URL.match(cited) or cited in self.sources:
            return self._source(who, item, cited)
        place = _PLACE.match(item.place.strip())
        if place is not None:
            return self._line(who, item, place["path"], int(place["line"]))
        return "it names no line, no output, no evidence of the session and no source"

    def _output(self, who: str, item: Item, name: str, number: int | None) -> Proven | str:
        output = self.outputs.get(name)
        if output is None:
            return f"there is no output {name}"
        lines = output.lines
        if number is not None and not 1 <= number <= len(lines):
            return f"{name} has {len(lines)} lines, no line {number}"
        quote = " ".join(item.quote.split())
        if len(quote.replace(" ", "")) < SHORTEST_QUOTE:
            return "it quotes nothing that could be checked"
        at = _line_with(quote, lines) if number is None else number
        if at is None or quote not in _flat(lines[at - 1:at + _QUOTED_LINES]):
            return f"{item.place.strip()[:40]} does not hold the quoted text"
        if item.value.strip() and not holds_value(_flat(lines[at - 1:at + _QUOTED_LINES]), item.value):
            return f"the value {item.value[:80]!r} is not in {name}, line {at}"
        told = written(str(json.loads(output.asked).get("code", "")))
        if output.was_run and told.says(quote, _numbers(f"{quote} {item.value}"), _numbers):
            return f"what it cites of {name} was written into the probe and not measured by it"
        kind = "run" if output.was_run else "measured"
        return Proven(who, item.claim, item.supports, kind, f"{output.path}:{at}", item.value.strip() or quote,
                      item.failure_mode, name)

    def _line(self, who: str, item: Item, path: str, line: int) -> Proven | str:
        wrong = self.quote_missing(path, line, item.quote)
        if wrong is not None:
            return wrong
        if item.value.strip() and not holds_value(item.quote, item.value) and not self._in_evidence(item.value):
            return f"the value {item.value[:80]!r} is neither in the quoted line nor in the evidence"
        where = f"{self._name(path)}:{line}"
        return Proven(who, item.claim, item.supports, "line", where, " ".join(item.quote.split()), item.failure_mode)

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

    def _evidence(self, who: str, item: Item, cited: Evidence) -> Proven | str:
        wanted = item.value.strip() or item.quote.strip()
        if not wanted or not holds_value(f"{cited.value} {cited.statement}", wanted):
            return f"the value {wanted[:80]!r} is not in the evidence {cited.id}"
        return Proven(who, item.claim, item.supports, "evidence", cited.place, wanted, item.failure_mode, cited.id)

    def _in_evidence(self, value: str) -> bool:
        """A quoted line beside a value that the session has measured elsewhere."""
        return any(holds_value(f"{e.value} {e.statement}", value) for e in self.known.values() if e.value)

    def _source(self, who: str, item: Item, cited: str) -> Proven | str:
        if not self.fetched(cited):
            return f"the source {cited[:200]} was not fetched"
        shown = item.value or item.quote
        return Proven(who, item.claim, item.supports, "source", cited, shown, item.failure_mode, cited)

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
    """True where every number of the value stands in the text; without numbers, where the text holds it.

    A number may be rounded ("0.693" for 0.6931), and of an equation ("2.302585 = ln 10") one side must stand there
    while the other one equals it.
    """
    sides = [s for s in _EQUALS.split(value) if s.strip()]
    if len(sides) == 2 and _equal(*sides):
        return any(holds_value(text, side) for side in sides)
    wanted = _NUMBER.findall(value)
    if any(_number(n) is not None for n in wanted):
        there = _numbers(text)
        return all(_stands(n, there) for n in wanted)
    words = " ".join(value.split()).casefold().strip("\"'`")
    return bool(words) and words in " ".join(text.split()).casefold()


def _stands(wanted: str, there: set[float]) -> bool:
    """The number itself, or one that gives it when rounded to as many decimals, of two digits at least."""
    number = _number(wanted)
    if number is None or number in there:
        return number is not None
    mantissa, _, exponent = wanted.rstrip("%").replace(",", "").replace("_", "").lower().partition("e")
    digits = mantissa.lstrip("+-0.").replace(".", "")
    if "." not in mantissa or len(digits) < 2:
        return False
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return any(abs(number - t) <= half * (1 + 1e-9) for t in there)


_EQUALS = re.compile(r"\s*(?:=|\u2248|~=)\s*")
_FUNCTION = re.compile(r"(?P<name>ln|log|log2|log10|sqrt|exp)\s*\(?\s*(?P<of>[\d.,]+)\s*\)?")
_MEANS: dict[str, Callable[[float], float]] = {"ln": math.log, "log": math.log, "log2": math.log2, "log10": math.log10,
                                               "sqrt": math.sqrt, "exp": math.exp}


def _equal(left: str, right: str) -> bool:
    """An arithmetic identity of a number and a function of one, to the digits given."""
    for a, b in ((left, right), (right, left)):
        found, number = _FUNCTION.fullmatch(b.strip()), _NUMBER.fullmatch(a.strip())
        if found and number:
            try:
                return _stands(number[0], {_MEANS[found["name"]](float(found["of"].replace(",", "")))})
            except (ValueError, OverflowError):
                return False
    return False


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("%").replace(",", "").replace("_", ""))
    except ValueError:
        return None


def _numbers(text: str) -> set[float]:
    """Every number of a text, a comma read as one between thousands and as one between columns."""
    found = (*_NUMBER.findall(text), *_NUMBER.findall(text.replace(",", " ")))
    return {n for n in map(_number, found) if n is not None}


def _line_with(quote: str, lines: Sequence[str]) -> int | None:
    """The first line that holds the quote, else the last that it begins in; None where it stands nowhere."""
    alone = next((n for n, row in enumerate(lines, 1) if quote in _flat([row])), None)
    windows = (n for n in range(len(lines), 0, -1) if quote in _flat(lines[n - 1:n + _QUOTED_LINES]))
    return next(windows, None) if alone is None else alone


def _flat(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines).split())


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
