"""Conditions on a finding's measured values, as the catalog writes them.

`onset = "ramp"` (equality), `peak = ">= 1e3"`, `kind = "in fragmentation,creeping"`, `name = "~ softmax"` (a regular
expression, searched), `lr = "present"`, `lr = "absent"`. A value that is missing makes every condition but "absent"
false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindx_tools.errors import CatalogError

_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "!=": operator.ne}
_LIST = re.compile(r"(?!in )[\w-]+(?:, ?[\w-]+)+")
_FORM = re.compile(r"(>=|<=|!=|>|<)\s*(\S.*)")


@dataclass(frozen=True)
class Condition:
    """`key` of the measured values must satisfy `test`."""

    key: str
    test: Any

    def __post_init__(self) -> None:
        """Raises CatalogError for a list without `in`, which no value would ever equal."""
        if isinstance(self.test, str) and self.test.startswith("~"):
            re.compile(self.test[1:].strip())
        if isinstance(self.test, str) and _LIST.fullmatch(self.test):
            raise CatalogError(f"{self.key} = {self.test!r} is never true: write 'in {self.test}' for one of them")

    def holds(self, measured: Mapping[str, Any]) -> bool:
        """Whether the condition is true of these values."""
        value = measured.get(self.key)
        if self.test in ("present", "absent"):
            return bool((value is not None) == (self.test == "present"))
        if value is None:
            return False
        if not isinstance(self.test, str):
            return bool(value == self.test)
        if self.test.startswith("~"):
            return re.search(self.test[1:].strip(), str(value), re.IGNORECASE) is not None
        if self.test.startswith("in "):
            return str(value) in [part.strip() for part in self.test[3:].split(",")]
        if form := _FORM.fullmatch(self.test.strip()):
            return _compared(value, form[1], form[2])
        return str(value) == self.test


def _compared(value: Any, sign: str, bound: str) -> bool:
    try:
        left, right = float(value), float(bound)
    except (TypeError, ValueError):
        return sign == "!=" and str(value) != bound
    return bool(_COMPARE[sign](left, right))
