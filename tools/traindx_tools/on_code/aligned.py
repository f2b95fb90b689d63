"""Where axes meet that do not belong together: samples against all samples, a whole asked along another axis."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import axes as ax
from traindx_tools.on_code import axis_layers
from traindx_tools.on_code.arrays import COLUMNS
from traindx_tools.on_code.attributes import Attributes
from traindx_tools.on_code.descriptions import Axes, Axis, Rest, Site
from traindx_tools.on_code.interpreter import Frame
from traindx_tools.on_code.values import Const, Tensor, Thing, Value, integer

_ELEMENTWISE, _ASKED, _SPREAD, _CLASS_IDS = (
    words("axes.toml", k) for k in ("elementwise_losses", "asked", "spread", "class_ids"))


class Aligned(Attributes):
    """Adds what is noticed while arrays meet. Each is an event: "clash", "whole"."""

    def __init__(self) -> None:
        super().__init__()
        self.ranks: dict[str, int] = {}
        """How many axes an array from outside has, where a layer took it."""
        self.met: dict[Site, dict[bool, tuple[str, list[Value], ast.AST, Frame]]] = {}
        self.met_told: set[Site] = set()

    def counted(self, value: Value | None) -> Axes | None:
        """The axes of a value, with what layers that took it or its like say of their number."""
        axes = ax.of(value)
        rest = next((d for d in axes.dims if isinstance(d, Rest)), None) if axes is not None else None
        rank = self.ranks.get(rest.of) if rest is not None else None
        if axes is None or rest is None or rank is None:
            return axes
        dims = ax.ranked(axes, len(axes.dims) - 1 + rank - rest.front - rest.back)
        return replace(axes, dims=tuple(dims)) if dims is not None else axes

    def note_ranks(self, rank: int, given: Sequence[Value]) -> None:
        """Remember how many axes arrays have."""
        for axes in map(ax.of, given):
            rest = next((d for d in axes.dims if isinstance(d, Rest)), None) if axes is not None else None
            if axes is not None and rest is not None:
                self.ranks.setdefault(rest.of, rank - (len(axes.dims) - 1) + rest.front + rest.back)

    def note_rank(self, layer: Thing, given: Sequence[Value]) -> None:
        """Remember how many axes an array has that a layer takes."""
        axes, rank = ax.of(given[0]) if given else None, axis_layers.taken(layer)
        if axes is not None and rank is not None and len(axes.dims) > 1:
            self.note_ranks(rank, given[:1])

    def note_sides(self, name: str, sides: Sequence[Value]) -> None:
        """Remember how many axes a target has, from a loss that takes it beside an output whose axes are counted."""
        x = self.counted(sides[0])
        if x is not None and x.exact:
            self.note_ranks(len(x.dims) - (name in _CLASS_IDS), sides[1:2])

    def _note_both(self, name: str, sides: Sequence[Value], node: ast.AST, frame: Frame) -> None:
        """Remember an output that is compared as a column here and as a row there, with targets of one making.

        Whichever the targets are, one of the two comparisons is between all samples; where it is not known which, it is
        told of the column, for single numbers are what most targets are.
        """
        for output, target in (sides, sides[::-1]):
            x, y = ax.of(output), ax.of(target)
            ends = isinstance(output, Tensor) and bool(output.models) and x is not None and x.exact
            loose = isinstance(target, Tensor) and not target.models and y is not None and (
                isinstance(y.dims[-1], Rest) and len(y.dims) < 3)
            if not ends or not loose or x is None or not isinstance(target, Tensor) or target.site is None:
                continue
            column = len(x.dims) == 2 and x.dims[1] == Axis(1, "feature")
            if column or len(x.dims) == 1:
                met = self.met.setdefault(target.site, {})
                met.setdefault(column, (name, [replace(s, axes=Axes(x.dims[:1])) if s is target else s for s in sides],
                                        node, frame))
                if len(met) == 2 and not self.met_told & {target.site}:
                    self.met_told.add(target.site)
                    self.event("clash", met[True][0], met[True][2], met[True][3], args=tuple(met[True][1]))

    def note_clash(self, name: str, sides: Sequence[Value], node: ast.AST, frame: Frame) -> None:
        """Remember where samples meet all samples of the other side, and one-hot rows a whole along another axis."""
        known = [ax.of(side) for side in sides[:2]]
        if len(known) < 2 or any(k is None or not k.dims for k in known):
            return
        one, other = self.counted(sides[0]), self.counted(sides[1])
        differs = name == "-" or name in _ELEMENTWISE
        if differs:
            self._note_both(name, sides[:2], node, frame)
        if ax.clash(one, other) is not None or (differs and any(_column_and_row(*two) for two in (sides, sides[::-1]))):
            found = zip(sides, (one, other), strict=False)
            self.event("clash", name, node, frame, args=tuple(
                replace(side, axes=known) if isinstance(side, Tensor) else side for side, known in found))
        for x, y in ((one, other), (other, one)) if name == "*" else ():
            at = next((i for i, d in enumerate(y.dims if y else ()) if isinstance(d, Axis) and d.role == "class"), None)
            dims = ax.ranked(x, len(y.dims)) if at is not None and y is not None and y.exact else None
            if dims is not None and x is not None and len(x.dims) > 1:
                self._note_whole(replace(x, dims=tuple(dims)), at or 0, "classes of one-hot rows", node, frame)

    def note_product(self, left: Value, right: Value, node: ast.AST, frame: Frame) -> None:
        """Remember where weights are whole along another axis than the one that the product runs over."""
        x, y = self.counted(left), self.counted(right)
        if x is None or x.whole is None or y is None:
            return
        dims = ax.ranked(x, len(y.dims)) if y.exact and len(x.dims) > 1 else None
        x = replace(x, dims=tuple(dims)) if dims is not None else x
        last, scores, done = len(x.dims) - 1, x.dims[-1], x.whole
        if not x.exact or done is None:
            return
        if done.by == "softmax" and done.axis == last - 1 and isinstance(scores, Axis) and scores.role == "scores":
            self._note_whole(x, last, "values that the weights multiply", node, frame)
        both = y.whole is not None and done.by == y.whole.by == "normalize" and y.exact and len(y.dims) == last + 1
        if both and y.whole is not None and y.whole.axis != last - 1 and x.dims[done.axis] != x.dims[-1]:
            self._note_whole(x, last, "product of rows with rows", node, frame)

    def note_call(self, name: str, given: Sequence[Value], kwargs: dict[str, Value], node: ast.AST,
                  frame: Frame) -> None:
        """Remember a choice, or a loss, along another axis than the one along which probabilities sum to 1."""
        x = self.counted(given[0]) if given else None
        if x is None:
            return
        asked = kwargs.get("dim") or kwargs.get("axis") or (given[1] if len(given) > 1 else None)
        axis = {"nll_loss": 1, "ctc_loss": 2}.get(name) or integer(asked)
        found = ax.place(x, axis)
        if found is not None and axis is not None and name in _ASKED and len(found[0]) > 1:
            exact = Axes(tuple(found[0])).exact
            self._note_whole(x, found[1] if exact else axis, name, node, frame)
        one = found[0][found[1]] if found is not None else None
        if name in _SPREAD and isinstance(one, Axis) and one.role == "columns":
            self.event("whole", "columns", node, frame, args=(given[0], Const(axis)))

    def _note_whole(self, x: Axes, axis: int, by: str, node: ast.AST, frame: Frame) -> None:
        done = x.whole
        if done is None or done.axis == axis or (done.axis < 0) != (axis < 0) or done.site is None:
            return
        self.event("whole", by, node, frame, args=(Tensor(axes=x, site=done.site), Const(axis)))

    def note_steps(self, layer: Thing, given: Sequence[Value], node: ast.AST, frame: Frame) -> None:
        """Remember attention or recurrence over an axis of samples."""
        x = self.counted(given[0]) if given else None
        dims = ax.ranked(x, 3) if x is not None and axis_layers.taken(layer) == 3 else None
        if dims is not None and dims[0].role == "batch" and axis_layers.runs_over_first(layer):
            self.event("whole", "samples", node, frame, receiver=layer, args=(given[0], Const(0)))


def _column_and_row(column: Value, row: Value) -> bool:
    """A layer's single output for each of what nobody counted, and single numbers that are of no model."""
    if not isinstance(column, Tensor) or not isinstance(row, Tensor) or row.models or not column.tags & COLUMNS:
        return False
    long, short = column.axes, row.axes
    return long is not None and short is not None and not long.exact and len(long.dims) == 2 and (
        long.dims[-1] == Axis(1, "feature") and short.exact and len(short.dims) == 1 and short.dims[0] != Axis(1))
