"""Finds look-ups of the nearest code in a jaxpr while it is evaluated, by what is done and by no name.

A table is an argument of two axes. Its distances to vectors are a product with them, or the squares of their
differences, whatever is added or scaled after; the code is where these are smallest or largest; and the rows of the
same table with these numbers are taken (by index, or as a product with one-hot rows). A classifier whose best class is
counted takes no rows, and is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.interpret import WITHOUT_RESULT

TABLE, DISTANCE, INDEX = "table", "distance", "index"
SMALLEST = 8
"""Codes of a table, at least."""
_MOVES = frozenset({"broadcast_in_dim", "reshape", "convert_element_type", "squeeze", "transpose", "copy", "copy_p",
                    "expand_dims", "stop_gradient", "optimization_barrier", "device_put", "sharding_constraint"})
_SCALED = frozenset({"add", "sub", "mul", "div", "neg", "sqrt", "square", "integer_pow", "max", "min", "pow", "exp",
                     "reduce_sum", "rsqrt", "abs", "add_any", "log", "clamp"})  # fmt: skip
_OF_INDICES = frozenset({"lt", "add", "select_n", "eq", "clamp", "max", "min", "sub", "and", "ge", "le", "concatenate"})


@dataclass(frozen=True, eq=False)
class Tag:
    """What a value is: of which argument, and the vectors that distances are of."""

    kind: str
    table: int
    vectors: Any = None
    lookup: int = -1
    flipped: bool = False
    """The codes are the table's columns."""


@dataclass(eq=False)
class Lookup:
    """One choice of codes: the argument that is the table, the vectors, and the chosen numbers."""

    table: int
    vectors: Any
    indices: Any
    flipped: bool
    taken: bool = False


@dataclass(eq=False)
class Evaluation:
    """One evaluation of a closed jaxpr, of arrays or of tracers."""

    tables: dict[int, tuple[int, int]]
    """The shapes of the arguments that may be tables."""
    lookups: list[Lookup] = field(default_factory=list)

    def run(self, jaxpr: Any, values: Sequence[Any], tags: Sequence[Tag | None]) -> tuple[list[Any], list[Tag | None]]:
        """The outputs of a closed jaxpr, and what they are."""
        env: dict[Any, tuple[Any, Tag | None]] = {}
        env.update(zip(jaxpr.jaxpr.constvars, ((c, None) for c in jaxpr.consts), strict=True))
        env.update(zip(jaxpr.jaxpr.invars, zip(values, tags, strict=True), strict=True))
        for eqn in jaxpr.jaxpr.eqns:
            given = [(a.val, None) if internals.is_literal(a) else env[a] for a in eqn.invars]
            outputs, told = self._equation(eqn, [v for v, _ in given], [t for _, t in given])
            env.update({v: (o, t) for v, o, t in zip(eqn.outvars, outputs, told, strict=True)
                        if not internals.is_dropped(v)})
        out = [(a.val, None) if internals.is_literal(a) else env[a] for a in jaxpr.jaxpr.outvars]
        return [v for v, _ in out], [t for _, t in out]

    def _equation(self, eqn: Any, values: list[Any], tags: list[Tag | None]) -> tuple[list[Any], list[Tag | None]]:
        if eqn.primitive.name in WITHOUT_RESULT:  # it spoke when the program ran
            return [None] * len(eqn.outvars), [None] * len(eqn.outvars)
        body = internals.called(eqn)
        if body is not None:
            return self.run(body, values, tags)
        outputs = internals.bind(eqn, values)
        return outputs, [self._tag(eqn, values, tags, outputs[0]), *[None] * (len(outputs) - 1)]

    def _tag(self, eqn: Any, values: list[Any], tags: list[Tag | None], output: Any) -> Tag | None:
        name, known = eqn.primitive.name, [t for t in tags if t is not None]
        if not known:
            return None
        if name in _MOVES:
            return tags[0]
        if name == "dot_general":
            return self._product(eqn, values, tags)
        if name in ("argmin", "argmax"):
            return self._chosen(eqn, tags[0], values[0], output)
        if name == "gather":
            self._take(tags[0], tags[1])
            return None
        if name == "sub" and tags[0] is not tags[1] and any(t.kind == TABLE for t in known) and len(known) == 1:
            other = values[1] if tags[0] is not None else values[0]
            return Tag(DISTANCE, known[0].table, other) if self._differs(known[0].table, output) else None
        distance = next((t for t in known if t.kind == DISTANCE), None)
        if distance is not None and name in _SCALED:
            return distance
        index = next((t for t in known if t.kind == INDEX), None)
        return index if index is not None and name in _OF_INDICES else None

    def _differs(self, table: int, output: Any) -> bool:
        """Whether a difference has an axis of vectors beside those of the table."""
        return len(output.shape) >= 3 and tuple(output.shape[-2:]) == self.tables[table]

    def _product(self, eqn: Any, values: list[Any], tags: list[Tag | None]) -> Tag | None:
        (contracted, _) = eqn.params["dimension_numbers"]
        for side in (0, 1):
            one, other = tags[side], tags[1 - side]
            if one is None or one.kind != TABLE or len(contracted[0]) != 1:
                continue
            if other is not None and other.kind == INDEX:
                self._take(one, other)
                return None
            shape, axis, vectors = self.tables[one.table], contracted[1 - side][0], values[1 - side]
            if other is None and vectors.shape[axis] in shape and values[side].size == shape[0] * shape[1]:
                return Tag(DISTANCE, one.table, _last(vectors, axis), flipped=vectors.shape[axis] != shape[1])
        return None

    def _chosen(self, eqn: Any, tag: Tag | None, values: Any, output: Any) -> Tag | None:
        if tag is None or tag.kind != DISTANCE or (
                values.shape[eqn.params["axes"][0]] != self.tables[tag.table][int(tag.flipped)]):
            return None
        self.lookups.append(Lookup(tag.table, tag.vectors, output, tag.flipped))
        return Tag(INDEX, tag.table, lookup=len(self.lookups) - 1)

    def _take(self, table: Tag | None, index: Tag | None) -> None:
        if table is not None and index is not None and table.kind == TABLE and index.kind == INDEX and (
                table.table == index.table):
            self.lookups[index.lookup].taken = True


def _last(vectors: Any, axis: int) -> Any:
    import jax.numpy as jnp

    return jnp.moveaxis(vectors, axis, -1)


def tables_of(jaxpr: Any) -> dict[int, tuple[int, int]]:
    """The arguments of two axes that may be tables of codes, with their shapes."""
    found = {}
    for i, variable in enumerate(jaxpr.jaxpr.invars):
        shape = tuple(getattr(variable.aval, "shape", ()))
        if len(shape) == 2 and str(getattr(variable.aval, "dtype", "")).startswith(("float", "bfloat")) and (
                max(shape) >= SMALLEST and min(shape) >= 2):
            found[i] = (int(shape[0]), int(shape[1]))
    return found


def lookups_in(jaxpr: Any, values: Sequence[Any]) -> list[Lookup]:
    """Every choice of codes in one evaluation whose rows are taken."""
    tables = tables_of(jaxpr)
    made = Evaluation(tables)
    made.run(jaxpr, values, [Tag(TABLE, i) if i in tables else None for i in range(len(values))])
    return [one for one in made.lookups if one.taken]


def may_look_up(jaxpr: Any) -> bool:
    """Whether it chooses by a smallest or largest value at all, the calls within it included."""
    return any(e.primitive.name in ("argmin", "argmax") or any(may_look_up(b) for _, b in internals.inner_jaxprs(e))
               for e in jaxpr.jaxpr.eqns)
