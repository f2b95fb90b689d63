"""What the text of a line says, whatever its numbers: its plan and the kind of note that it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from traindx_tools.on_logs.configs.printed import is_dump
from traindx_tools.on_logs.readers import dialects, notes
from traindx_tools.on_logs.readers.bars import behind_bar, without_glued
from traindx_tools.on_logs.readers.fruitless import Fruitless
from traindx_tools.on_logs.readers.line_parser import plan_line
from traindx_tools.on_logs.readers.line_plans import NOTHING, Plan
from traindx_tools.on_logs.readers.numbers import kinds
from traindx_tools.on_logs.readers.pairs import EVALUATED
from traindx_tools.on_logs.readers.prefixes import Prefix
from traindx_tools.on_logs.readers.recorder import MAX_SERIES
from traindx_tools.on_logs.readers.unread import QUIET_LEVELS

MAX_SHAPES = 50_000
MAX_SHAPE_LENGTH = 2_000
"""Longer lines are worked out anew each time: remembering them would cost more than it saves."""
_SETTINGS = frozenset({"precision", "parameters", "device", "world_size", "other"})


class Understood(NamedTuple):
    """What lines with one text say."""

    plan: Plan
    note: str | None
    given_up: bool = False
    """Whether it was not worked out: nothing ever came of very many like it."""


@dataclass
class Understanding:
    """What is known of the texts of lines."""

    gives_up: bool = True
    dialects: dict[str, int] = field(default_factory=dict)
    world_size: int | None = None
    _fruitless: Fruitless = field(default_factory=Fruitless)
    _named: set[tuple[str, str]] = field(default_factory=set)
    """Groups and names of values."""
    _known: dict[str, Understood] = field(default_factory=dict)

    def of(self, parts: list[str], body: str, prefix: Prefix) -> Understood:
        """What a line says: the same for all with this text and such numbers."""
        key = "\0".join((*parts[::2], kinds(parts[1::2]), prefix.level or "", prefix.logger or ""))
        known = self._known.get(key)
        if known is not None:
            return known
        frames = self._fruitless.frames(parts, f"{prefix.level} {prefix.logger}") if self.gives_up else ()
        outcome = self._fruitless.outcome(frames)
        if outcome is not None:
            return Understood(*outcome, given_up=True)
        plan, note = self._work_out(parts, body, prefix)
        self._fruitless.gave(frames, (plan, note))
        if self._has_no_place(plan):
            self._fruitless.was_dropped(frames)
        told = Understood(plan, note)
        if len(self._known) < MAX_SHAPES and len(key) <= MAX_SHAPE_LENGTH:
            self._known[key] = told
        return told

    def _has_no_place(self, plan: Plan) -> bool:
        """Whether all its names are new ones, and of others there are already as many as are kept."""
        told = {(f.key.group, f.key.original) for f in plan.fields}
        if len(self._named) >= MAX_SERIES:
            return bool(told) and self._named.isdisjoint(told)
        self._named |= told
        return False

    def _work_out(self, parts: list[str], body: str, prefix: Prefix) -> tuple[Plan, str | None]:
        plan = plan_line(without_glued(parts), dialects.group_of(prefix.logger, body))
        drawn = bool(plan.bar) or "%|" in body
        kind = notes.kind_of(behind_bar(body) if drawn else body)
        if plan.fields and is_dump(body) and not any(f.key.name.canonical in EVALUATED for f in plan.fields):
            return NOTHING, notes.kind_of(body)  # settings: read with the configuration
        placed = plan.fields and (plan.step or plan.epoch)
        if placed and kind == "world_size":
            self.world_size = self.world_size or notes.world_size(body)
        if placed and (kind in _SETTINGS or (kind in ("step_skipped", "resume") and len(plan.fields) >= 3)):
            kind = None  # a record that also counts skipped steps or names a device
        remark = kind is not None and not drawn and (notes.hides_metrics(kind, body) or (
            plan.step is None and plan.epoch is None and plan.leftover > 2))
        if remark or prefix.level in QUIET_LEVELS:
            plan = NOTHING
        if kind is None and plan.header:
            kind = "epoch" if plan.epoch else None
        if not (plan.fields or plan.header or plan.bar or plan.epoch):
            plan = NOTHING  # a count of something else: nothing is done with it
        dialect = dialects.of_line(body) if len(parts) > 1 else None
        if dialect:
            self.dialects[dialect] = self.dialects.get(dialect, 0) + 1
        return plan, kind
