"""Whether the parameters of a function stopped, by which number of the program, and whether gradients arrive still."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.measures.standstill import SMALL, Standstill, rounds, standstill
from traindx_tools.on_jax.moving.looks import Look, Moving
from traindx_tools.on_jax.paths.factors import Factor, Path, factors
from traindx_tools.on_jax.paths.reach import is_float, reach
from traindx_tools.on_jax.rules.j706_updates_stop import Ended, Stopped

WEAK = 1e-2
"""Of the gradients before: as small as that they explain small updates by themselves."""
NOVEL = 1e-3
"""Of a moment: what a gradient adds to it in a call; without one it only becomes shorter (float32 rounds at 1e-7)."""
VARIES = 1e-3
"""Of the loss: batches differ, so that the run is not at the bottom of one problem to the last bit."""
TRIES = 6


def stopped(known: Moving, functions: Sequence[Moving]) -> Stopped | None:
    """What there is to say of a function that trains; None where its parameters move, or nothing decides why not."""
    among = trained_leaves(known)
    steps, told = known.distances(among)
    if not steps:
        return None
    moved = (told[:, :, 0] > 0).any(axis=0)
    still = standstill(steps, np.sqrt(np.square(told[:, moved, 0]).sum(axis=1)))
    if still is None or not moved.any():
        return None
    shapes = _shapes(known, among)
    ended = next((e for f in (known, *functions) if (e := _ended(f, still, shapes)) is not None), None)
    kind, why = ("rate", "") if ended is not None else _gradient(known, still, among)
    if not kind or (still.left > 0 and kind not in ("rate", "gradient")):
        return None
    cadence = next((r for gaps in known.gaps.values() if (r := rounds(gaps)) is not None), None)
    return Stopped(known.watched.name, int(moved.sum()), still, kind, why, known.watched.place, ended, cadence)


def trained_leaves(known: Moving) -> frozenset[int]:
    """The argument leaves that gradients are taken for: as the outputs or the jaxpr say."""
    fed = known.fed
    if known.pairs and not any(output in fed for output, _ in known.pairs):
        wanted = {leaf for _, leaf in known.pairs}
    elif known.traced is not None and known.positions is not None:
        wanted = _reached(known.traced.jaxpr, known.positions, fed) & set(fed.values())
    else:
        return frozenset()
    looked = [frozenset(x.leaves) for x in known.looks if x.told is not None]
    return frozenset(wanted) & (looked[-1] if looked else frozenset())


def _reached(jaxpr: Any, positions: Sequence[int], fed: Mapping[int, int]) -> set[int]:
    if len(positions) != len(jaxpr.jaxpr.invars):
        return set()
    found = reach(jaxpr)
    bits = 0
    for i, v in enumerate(jaxpr.jaxpr.outvars):
        if i not in fed and not internals.is_literal(v) and is_float(v.aval) and not v.aval.shape:
            bits |= found.outputs[i].smooth
    return {leaf for k, leaf in enumerate(positions) if bits >> k & 1}


def _shapes(known: Moving, among: frozenset[int]) -> frozenset[tuple[int, ...]] | None:
    if known.traced is None or known.positions is None:
        return None
    body = known.traced.jaxpr.jaxpr
    return frozenset(tuple(body.invars[k].aval.shape) for k, leaf in enumerate(known.positions)
                     if leaf in among and k < len(body.invars))


# ---- the number that multiplies the updates


def _ended(known: Moving, still: Standstill, shapes: frozenset[tuple[int, ...]] | None) -> Ended | None:
    """A factor of arrays of the parameters' shapes that was of some size and is none when the parameters stop."""
    looks = [x for x in known.looks if x.numbers]
    moving, resting = [x for x in looks if x.step <= still.moved], [x for x in looks if x.step >= still.since]
    if known.traced is None or not moving or not resting or not known.fed:
        return None
    try:
        now = _at(known, resting[-1].numbers)
        earlier = [_at(known, x.numbers) for x in moving[:: max(1, len(moving) // TRIES)]]
        for path, factor in now.items():
            before = max((abs(e[path].value) for e in earlier if path in e), default=0.0)
            if (shapes is None or factor.shape in shapes) and abs(factor.value) <= SMALL * before:
                return _told(known, path, factor, before, looks)
    except Exception:  # noqa: BLE001 - a primitive that does not run by itself: the program is not asked then
        return None
    return None


def _at(known: Moving, numbers: Mapping[int, Any]) -> dict[Path, Factor]:
    assert known.traced is not None
    assert known.positions is not None
    given = {k: numbers[leaf] for k, leaf in enumerate(known.positions) if leaf in numbers}
    body = known.traced.jaxpr.jaxpr
    return factors(known.traced.jaxpr, {k: np.asarray(v).astype(body.invars[k].aval.dtype) for k, v in given.items()
                                        if k < len(body.invars) and not body.invars[k].aval.shape})


def _told(known: Moving, path: Path, factor: Factor, before: float, looks: Sequence[Look]) -> Ended:
    """With the value of the counter at which it became as small as that, where counters alone decide it."""
    assert known.traced is not None
    assert known.positions is not None
    leaves = [known.positions[k] for k in sorted(factor.inputs)]
    names = ", ".join(known.traced.inputs[k] for k in sorted(factor.inputs)[:3])
    at = next(iter(_first_small(known, path, SMALL * before, leaves, looks)), None)
    place = (factor.place.file, factor.place.line) if factor.place is not None else None
    return Ended(names, at, before, factor.value, place)


def _first_small(known: Moving, path: Path, limit: float, leaves: Sequence[int],
                 looks: Sequence[Look]) -> Iterator[int]:
    """The first value of the one counter, between its first and its last, at which the factor is within `limit`."""
    told = [[np.asarray(x.numbers[leaf]) for x in looks] for leaf in leaves if all(leaf in x.numbers for x in looks)]
    if len(told) != len(leaves) or any(t[0].dtype.kind not in "iu" for t in told) or len(
            {tuple(int(v) for v in t) for t in told}) != 1:
        return
    low, high = int(told[0][0]), int(told[0][-1])
    fixed = looks[-1].numbers

    def small(count: int) -> bool:
        found = _at(known, {**fixed, **{leaf: np.asarray(count) for leaf in leaves}}).get(path)
        return found is not None and abs(found.value) <= limit

    if small(low):
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if small(middle) else (middle, high)
    yield high


# ---- gradients


def _gradient(known: Moving, still: Standstill, among: frozenset[int]) -> tuple[str, str]:
    """Whether gradients arrive although nothing moves, and by what it is seen; "" where neither is known."""
    if known.gradients:
        norms = {s: float(np.linalg.norm(np.asarray(g, np.float64))) for s, g in known.gradients.items()}
        before = [n for s, n in norms.items() if s < still.since]
        later = [n for s, n in norms.items() if still.since <= s < still.last]
        if before and later and np.isfinite(later).all() and np.median(later) > WEAK * np.median(before) > 0:
            return "gradient", (f"gradients arrive (norm {np.median(later):.3g}, {np.median(before):.3g} before): "
                                "the rate is 0, everything is masked, or the update is not used")
        return "", ""
    if _moments_move(known, still, among):
        return "gradient", ("other arrays of the state go on changing by new gradients (the optimizer's moments): the "
                            "rate is 0, or everything is masked")
    return ("unknown", "the loss differs from call to call: the rate is 0, everything is masked, or no gradient "
                       "arrives") if _loss_varies(known, still) else ("", "")


def _moments_move(known: Moving, still: Standstill, among: frozenset[int]) -> bool:
    """Whether arrays of the parameters' shapes that come back get more than they lose, as much as before."""
    shapes = _shapes(known, among)
    looks = [x for x in known.looks if x.told is not None]
    if shapes is None or known.traced is None or known.positions is None or not looks:
        return False
    body = known.traced.jaxpr.jaxpr
    shape_of = {leaf: tuple(v.aval.shape) for leaf, v in zip(known.positions, body.invars, strict=False)}
    others = frozenset(leaf for leaf in known.fed.values() if leaf not in among and shape_of.get(leaf) in shapes
                       and leaf in looks[-1].leaves)
    steps, told = known.distances(others)
    if not steps:
        return False
    later = np.asarray(steps[1:]) > still.since
    return bool(later.any()) and _novel(told[later], told[~later])


def _novel(later: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.nan_to_num(later[:, :, 2] / later[:, :, 1])
    large = np.median(later[:, :, 1], axis=0) > WEAK * (np.median(before[:, :, 1], axis=0) if len(before) else 0.0)
    return bool(((np.median(share, axis=0) > NOVEL) & large).any())


def _loss_varies(known: Moving, still: Standstill) -> bool:
    rows = [[float(np.asarray(x)) for x in known.losses[s] if not getattr(x, "is_deleted", bool)()]
            for s in sorted(known.losses) if still.since <= s < still.last]
    width = {len(r) for r in rows}
    if len(rows) < 3 or len(width) != 1 or not width.pop():
        return False
    values = np.asarray(rows)
    return bool(np.isfinite(values).all() and (values.std(axis=0) > VARIES * np.abs(values).mean(axis=0)).any())
