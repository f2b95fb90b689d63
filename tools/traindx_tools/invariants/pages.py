"""The pages of invariants: under which ids they speak, read from `knowledge/pages/FAMILY.toml`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traindx_tools.finding import Severity
from traindx_tools.knowledge.tables import table
from traindx_tools.rules import Rule


def pages(family: str, ids: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of these ids. Raises KeyError where a page is missing."""
    written = table("pages", f"{family}.toml")
    return tuple(_rule(i, written[i]) for i in ids)


def _rule(name: str, row: dict[str, Any]) -> Rule:
    return Rule(name, row["name"], row["title"], Severity(row["severity"]), row["sees"], row["matters"],
                tuple(row["alike"]), tuple(row["confirm"]))
