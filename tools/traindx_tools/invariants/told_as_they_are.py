"""What the reader of a program has found, and what has no more to it than that, is told as it stands.

A row of `knowledge/told.toml` names a fact of the program, which of its entries are a breach, and the words for one.
The prose of each id stands there as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from traindx_tools.finding import Severity, Value
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.knowledge.tables import table
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Spot
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

_Row = Mapping[str, Any]
_ABOUT: list[_Row] = table("told.toml")["about"]
RULES = tuple(rule for row in _ABOUT for family, ids in row["pages"].items() for rule in pages(family, ids))
PROSE: Mapping[str, str] = {id_: row.get("prose") or import_module(f"{__package__}.{row['prose_of']}").__doc__ or ""
                            for row in _ABOUT for ids in row["pages"].values() for id_ in ids}
"""Of ids that share their prose with an invariant of its own: what stands there."""
_FACTS: Mapping[str, list[_Row]] = {fact: [row for row in table("told.toml")["told"] if row["fact"] == fact]
                                    for fact in dict.fromkeys(row["fact"] for row in table("told.toml")["told"])}
_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "not": lambda value, those: value not in those, "exactly": lambda value, that: value is that,
    "lacks": lambda value, one: one not in value,
    "above": lambda value, limit: value is not None and value > limit,
    "below": lambda value, limit: value is not None and value < limit,
    "least": lambda value, limit: value is not None and value >= limit,
    "most": lambda value, limit: value is not None and value <= limit,
    "beyond": lambda value, limit: value is not None and abs(value) > limit}


def check(program: Program) -> Iterator[Breach]:
    """Look at every fact that has rows."""
    told: set[tuple[str, str]] = set()
    for row, one, of in _found(program):
        breach, once = _breach(row, one, of), row.get("once")
        if once is None or (once, str(breach.at)) not in told:
            told.add((once or "", str(breach.at)))
            yield breach


def _found(program: Program) -> Iterator[tuple[_Row, Any, Any]]:
    """The rows that an entry, or what it holds, is a breach of."""
    for fact, rows in _FACTS.items():
        for place, of in enumerate(getattr(program, fact)):
            chosen: set[str] = set()
            for row in rows:
                choice = row.get("choice", "")
                for one in getattr(of, row["each"]) if row.get("each") else (of,):
                    if choice not in chosen and place < row.get("most", place + 1) and _fits(one, row):
                        chosen |= {choice} if choice else set()
                        yield from ((row, one, of),) if row.get("says") else ()


def _of(one: Any, path: str) -> Any:
    """An attribute of an attribute, an item by its number."""
    for part in path.split("."):
        one = one[int(part)] if part.isdigit() else getattr(one, part)
    return one


def _fits(one: object, row: _Row) -> bool:
    """Whether an entry is what a row, or one of its words, asks for."""
    return all(_is(_of(one, path), wanted) for path, wanted in row.get("where", {}).items())


def _is(value: object, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(_HOLDS[how](value, limit) for how, limit in wanted.items())
    if isinstance(wanted, list):
        return value in wanted
    return bool(value) is wanted if isinstance(wanted, bool) else value == wanted


def _breach(row: _Row, one: Any, of: object) -> Breach:
    words = {name: next(way["text"] for way in ways if _fits(one, way)).format(one=one)
             for name, ways in row.get("words", {}).items()}
    guessed = row.get("unless_certain") is not None and not one.certain
    known: Any = "guessed" if guessed else row.get("known") or getattr(one, "known", "derived")
    severity = (row["unless_certain"] if guessed else row.get("severity", "")).format(**words)
    measured: dict[str, Value] = {"kind": row["kind"].format(one=one, **words)} if row.get("kind") else {}
    for whose, wanted in ((one, row.get("measured", {})), (of, row.get("measured_of", {}))):
        measured |= {name: _of(whose, path) if isinstance(path, str) else path for name, path in wanted.items()}
    at = _of(one, row.get("at", "at"))
    return Breach(row["id"], row["says"].format(one=one, of=of, **words), at, Known(known.format(**words)), measured,
                  Severity(severity) if severity else None, _remedy(row.get("remedy"), one, at),
                  row.get("companion", False))


def _remedy(row: _Row | None, one: Any, at: Spot) -> Remedy | None:
    """What mends it; nothing where the reader has kept no place for it."""
    if row is None or one.origin is None:
        return None
    kind, act = row["kind"], Act(Moment(row["moment"]), at, getattr(one, "name", ""), origin=one.origin)
    return Remedy(kind, act, text=row.get("text", "").format(one=one))
