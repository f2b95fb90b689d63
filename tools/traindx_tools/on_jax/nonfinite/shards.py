"""`shard_map`: which equation of its body, on which device, gave the value that is not finite.

The body is evaluated equation by equation for all devices at once: every value has the axes of the mesh in front, and
collectives run under `vmap` with the mesh's axis names. Where that cannot be done (axes that JAX shards by itself, a
collective that knows no vmap) the whole `shard_map` stands for its body.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.interpret import Interpreter, Level, Marked
from traindx_tools.on_jax.nonfinite.loops import explained, kind, settled
from traindx_tools.on_jax.nonfinite.marks import Mark

SUMS = frozenset({"psum", "psum2", "psum_invariant"})
SAME = frozenset({"pvary", "pbroadcast", "pcast"})
"""Collectives that only change what JAX knows of a value."""
STEP = "shard_map"


def shard_map(run: Interpreter, eqn: Any, values: Sequence[Any], marks: Sequence[Mark], level: Level) -> Marked | None:
    """Runs it as a whole, and its body device by device where its inputs do not explain what it gave."""
    outputs = internals.bind(eqn, values)
    if explained([kind(o) for o in outputs], marks):
        return outputs, run.judge(eqn, values, marks, outputs, level)
    first = len(run.candidates)
    try:
        told = _within(run, eqn, values, marks, level)
    except Exception:  # noqa: BLE001 - what cannot be taken apart is told as a whole
        del run.candidates[first:]
        return outputs, run.judge(eqn, values, marks, outputs, level)
    if not any(m.bad or m.written for m in told):
        return outputs, run.judge(eqn, values, marks, outputs, level)
    return outputs, settled(outputs, told, Mark(frozenset(range(first, len(run.candidates)))))


def _within(run: Interpreter, eqn: Any, values: Sequence[Any], marks: Sequence[Mark], level: Level) -> list[Mark]:
    sizes = internals.mesh_sizes(eqn)
    body = internals.closed(eqn.params["jaxpr"])
    first = len(run.candidates)
    inside = _Devices(run, sizes)
    split = [_split(v, axes, sizes) for v, axes in zip(values, internals.sharded_axes(eqn), strict=True)]
    _, told = inside.run(body, split, marks, level.within(STEP, eqn))
    for candidate in run.candidates[first:]:
        device = candidate.index[:len(sizes)]
        where = ", ".join(f"{name} {i}" for name, i in zip(sizes, device, strict=False))
        candidate.path = tuple(f"{STEP} device {where}" if step == STEP and where else step for step in candidate.path)
        candidate.index = candidate.index[len(sizes):]
    return told


class _Devices(Interpreter):
    """Evaluates the body for all devices: values have the mesh's axes in front, or are the same for all of them."""

    def __init__(self, outer: Interpreter, sizes: Mapping[str, int]) -> None:
        super().__init__({})
        self.candidates = outer.candidates
        self._sizes = sizes

    def wraps(self, eqn: Any, values: Sequence[Any], outputs: Sequence[Any], level: Level) -> frozenset[int]:
        """Integers are not followed here: their axes are shifted."""
        return frozenset()

    def bind(self, eqn: Any, values: Sequence[Any]) -> list[Any]:
        """The outputs on all devices."""
        import jax
        import jax.numpy as jnp

        name = eqn.primitive.name
        if name in SAME:
            return list(values)
        lead = len(self._sizes)
        psum: Any = jax.lax.psum
        stacked = [jnp.ndim(v) == lead + len(a.aval.shape) for v, a in zip(values, eqn.invars, strict=True)]

        def once(_: Any, *given: Any) -> list[Any]:
            if name in SUMS:
                return [psum(g, tuple(eqn.params["axes"])) for g in given]
            return internals.bind(eqn, given)

        every: Callable[..., Any] = once
        for axis in reversed(list(self._sizes)):
            every = jax.vmap(every, in_axes=(0, *(0 if s else None for s in stacked)), axis_name=axis,
                             axis_size=self._sizes[axis])
        count = jnp.zeros(tuple(self._sizes.values()))
        made: list[Any] = every(count, *values)
        return made


def _split(value: Any, axes: Mapping[int, tuple[str, ...]], sizes: Mapping[str, int]) -> Any:
    """The value with the mesh's axes in front: each device's part of it."""
    import jax.numpy as jnp

    shape: list[int] = []
    at: dict[str, int] = {}
    for i, size in enumerate(jnp.shape(value)):
        names = axes.get(i, ())
        for name in names:
            at[name] = len(shape)
            shape.append(sizes[name])
        shape.append(size // math.prod(sizes[n] for n in names))
    parts = jnp.reshape(value, tuple(shape))
    for name, size in sizes.items():
        if name not in at:
            at[name] = parts.ndim
            parts = jnp.broadcast_to(parts[..., None], (*parts.shape, size))
    front = [at[name] for name in sizes]
    return jnp.transpose(parts, (*front, *(i for i in range(parts.ndim) if i not in front)))
