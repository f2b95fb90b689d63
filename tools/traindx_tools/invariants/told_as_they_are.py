"""What the reader of a program has found, and what has no more to it than that, is told as it stands.

A row of `knowledge/told.toml` names a fact of the program, which of its entries are a breach, and the words for one.
The prose of each id stands there as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

from traindx_tools.finding import Severity, Value
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.knowledge.tables import table
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Spot
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

_ABOUT: list[dict[str, Any]] = table("told.toml")["about"]
RULES = tuple(rule for row in _ABOUT for family, ids in row["pages"].items() for rule in pages(family, ids))
PROSE: Mapping[str, str] = {id_: row["prose"] for row in _ABOUT for ids in row["pages"].values() for id_ in ids}


def check(program: Program) -> Iterator[Breach]:
    """Look at every fact that has a row."""
    for row in table("told.toml")["told"]:
        for of in getattr(program, row["fact"])[:row.get("most")]:
            for one in getattr(of, row["each"]) if row.get("each") else (of,):
                if _fits(one, row):
                    yield _breach(row, one, of)


def _fits(one: object, row: Mapping[str, Any]) -> bool:
    """Whether an entry is what a row, or one of its words, asks for."""
    return all(_is(attrgetter(path)(one), wanted) for path, wanted in row.get("where", {}).items())


def _is(value: object, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return value not in wanted["not"]
    if isinstance(wanted, list):
        return value in wanted
    return bool(value) is wanted if isinstance(wanted, bool) else value == wanted


def _breach(row: Mapping[str, Any], one: Any, of: object) -> Breach:
    words = {name: next(way["text"] for way in ways if _fits(one, way)).format(one=one)
             for name, ways in row.get("words", {}).items()}
    at, guessed = attrgetter(row.get("at", "at"))(one), row.get("unless_certain") is not None and not one.certain
    known = Known.GUESSED if guessed else Known(row.get("known") or getattr(one, "known", Known.DERIVED))
    kind = row.get("kind")
    measured: dict[str, Value] = {"kind": kind.format(one=one, **words)} if kind is not None else {}
    for whose, wanted in ((one, row.get("measured", {})), (of, row.get("measured_of", {}))):
        measured |= {n: attrgetter(p)(whose) if isinstance(p, str) else p for n, p in wanted.items()}
    severity = row["unless_certain"] if guessed else row.get("severity")
    return Breach(row["id"], row["says"].format(one=one, of=of, **words), at, known, measured,
                  Severity(severity) if severity is not None else None, _remedy(row.get("remedy"), one, at))


def _remedy(row: Mapping[str, str] | None, one: Any, at: Spot) -> Remedy | None:
    act = Act(Moment(row["moment"]), at, getattr(one, "name", ""), origin=one.origin) if row is not None else None
    return Remedy(row["kind"], act, text=row.get("text", "")) if row is not None and act is not None else None
