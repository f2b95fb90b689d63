"""The rows of facts that are told as they stand: each names a fact, what is asked of it, and words for all cases."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from traindx_tools.invariants import told_as_they_are as told
from traindx_tools.knowledge.tables import table
from traindx_tools.program.constants import HookedSchedule, Indexing
from traindx_tools.program.loading import Loader
from traindx_tools.program.moments import Spot
from traindx_tools.program.program import Program
from traindx_tools.program.uses import MaskUse

ROWS: list[dict[str, Any]] = table("told.toml")["told"]
KEYS = {"id", "fact", "each", "where", "choice", "once", "says", "words", "kind", "measured", "measured_of", "at",
        "known", "severity", "unless_certain", "remedy", "companion", "most"}
AT = Spot("train.py", 7)


def named(program: Program) -> list[str]:
    return [b.id for b in told.check(program)]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['id']} {r['fact']}")
def test_a_row_names_a_fact_and_what_is_known_of_it(row: dict[str, Any]) -> None:
    assert row["fact"] in {f.name for f in fields(Program)}
    assert row["id"] in told.PROSE
    assert row.keys() <= KEYS
    asked = [*row.get("where", {}).values(), *(v for ways in row.get("words", {}).values() for w in ways
                                               for v in w.get("where", {}).values())]
    assert all(how in told._HOLDS for wanted in asked if isinstance(wanted, dict) for how in wanted)
    assert all("where" not in ways[-1] or len(ways) > 1 for ways in row.get("words", {}).values())
    free = {name for text in (row.get("says", ""), row.get("kind", ""), row.get("severity", ""), row.get("known", ""))
            for name in re.findall(r"\{(\w+)", text)}
    assert free <= {"one", "of", *row.get("words", {})}


def test_a_fault_is_told_and_its_healthy_twin_is_not() -> None:
    beyond, within = (Indexing("table", 10, 0.0, high, "table[i]", AT) for high in (10.0, 9.0))
    assert named(Program("jax", indexings=[beyond])) == ["C529"]
    assert named(Program("jax", indexings=[within])) == []


def test_of_one_choice_the_first_that_fits_counts_and_a_place_is_told_once() -> None:
    filled = MaskUse("filled", AT, "fill", "softmax", value=float("-inf"))
    assert named(Program("torch", mask_uses=[filled, filled])) == ["C277"]
    assert named(Program("torch", mask_uses=[MaskUse("filled", AT, "fill", "", value=float("-inf"))])) == []


def test_what_is_not_known_is_no_breach() -> None:
    assert named(Program("torch", loaders=[Loader(AT, 1), Loader(AT, 2, trains=AT, shuffles=None)])) == []
    assert named(Program("torch", hooked_schedules=[HookedSchedule("LinearLR", AT, "", True, False)])) == []
    assert named(Program("torch")) == []
