"""Which fields running functions ask a mapping for in a way that takes their absence: `get`, `pop`, `in`.

Read from the compiled code of a frame, and told only where the mapping itself stands in a variable of that frame now.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from traindx_tools.on_torch.nonfinite.places import USER, owner

DEEPEST = 40
_WITH_DEFAULT = ("get", "pop")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_GLOBAL")


@dataclass(frozen=True)
class Asking:
    """One place that asks: the field, the variable that holds the mapping, the line, and how it asks."""

    field: str
    variable: str
    line: int
    how: str


@dataclass(frozen=True)
class Asked:
    """What a running function asks a mapping for."""

    field: str
    function: str
    file: str
    line: int
    how: str
    keys: frozenset[str]
    """Those of the mapping now."""


def asked_on_stack(frame: FrameType | None) -> Iterator[Asked]:
    """What the user's functions on this stack ask, of mappings that are there now."""
    for _ in range(DEEPEST):
        if frame is None:
            return
        code = frame.f_code
        if owner(code.co_filename) is USER:
            for asking in askings(code):
                holder = _value(frame, asking.variable)
                if isinstance(holder, Mapping):
                    yield Asked(asking.field, code.co_name, code.co_filename, asking.line, asking.how,
                                frozenset(k for k in holder if isinstance(k, str)))
        frame = frame.f_back


@lru_cache(maxsize=512)
def askings(code: CodeType) -> tuple[Asking, ...]:
    """The places of one function."""
    return tuple(_askings([i for i in dis.get_instructions(code) if i.opname != "CACHE"], code.co_firstlineno))


def _askings(steps: list[dis.Instruction], line: int) -> Iterator[Asking]:
    for k, step in enumerate(steps):
        line = _line(step) or line
        if step.opname not in ("LOAD_CONST", "LOAD_CONST_IMMORTAL") or not isinstance(step.argval, str):
            continue
        before = steps[k - 1] if k else None
        if before is not None and before.opname in ("LOAD_ATTR", "LOAD_METHOD") and before.argval in _WITH_DEFAULT:
            yield from _of(steps[k - 2] if k > 1 else None, step.argval, line, str(before.argval))
        elif len(steps) > k + 2 and steps[k + 2].opname == "CONTAINS_OP":
            yield from _of(steps[k + 1], step.argval, line, "in")


def _of(holder: dis.Instruction | None, field: str, line: int, how: str) -> Iterator[Asking]:
    if holder is not None and holder.opname.startswith(_LOADS) and isinstance(holder.argval, str):
        yield Asking(field, holder.argval, line, how)


def _line(step: dis.Instruction) -> int | None:
    """Its line: an attribute that was renamed in Python 3.13."""
    found = getattr(step, "line_number", None) or step.starts_line
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _value(frame: FrameType, name: str) -> Any:
    found = frame.f_locals.get(name)
    return found if found is not None else frame.f_globals.get(name)
