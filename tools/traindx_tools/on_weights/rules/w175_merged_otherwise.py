"""A merged model is not its base and its adapter, put together as the adapter's configuration says.

Where base, adapter and merged file all are there, nothing has to be estimated: the difference of the two models is the
product of the adapter's matrices times a number, to rounding. Which number, whether the product was turned, and whether
it is that of another module, is read from each module. The base is the file that the configuration names, else that
from which the difference points along the adapter.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.adapters import configuration_of, pairs
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_EXACT, _OFF, _SHARE, _MOST_BYTES, _MOST_FILES = 0.02, 0.05, 2 / 3, 2**28, 6
_ROUNDING: Mapping[str, float] = {"float16": 5e-4, "bfloat16": 4e-3}
Values = NDArray[np.float64]

RULE = Rule(
    id="W175",
    name="merged-otherwise",
    title="A merged model is not its base with its adapter as configured",
    severity=Severity.HIGH,
    sees="the difference of two models, module by module, as a multiple of the product of an adapter's matrices",
    matters="The merged model is further from the base than it was trained to be, or in another direction.",
    alike=("a file that was trained further after the merge: no multiple is left exactly",
           "several adapters merged together: no multiple of one of them", "a weight of its own that a recipe says"),
    confirm=("merge again from the base and compare", "evaluate base with adapter against the merged file"),
    thresholds={
        "exact": Threshold(_EXACT, "of the difference", "that the product may leave, beyond the type's rounding"),
        "off": Threshold(_OFF, "of the configured scale", "that a multiple is off by"),
        "share": Threshold(_SHARE, "of the adapted modules", "that are such multiples, else it is another adapter"),
    },
)


@dataclass(frozen=True)
class _Held:
    """What one module holds of the adapter: `times` the product of `source`, turned or not."""

    name: str
    source: str
    turned: bool
    times: float
    rank: int


def check_files(read: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Every adapter with two models of one form that have its modules. Raises UnreadableInput."""
    adapters = [(c, found) for c in read if (found := pairs(c.weights.tensors))]
    models = [c for c in read if not any(c is a for a, _ in adapters)][:_MOST_FILES]
    for adapter, held in adapters:
        config = configuration_of(adapter.path)
        scale = _scale(config)
        for base, merged in permutations(models, 2) if scale else ():
            if scale and (made := _made(base, merged, held)) and _is_base(base, merged, config, made):
                yield from _judged(base, merged, adapter, made, scale)


def _scale(config: Mapping[str, object]) -> float | None:
    alpha, rank = config.get("lora_alpha"), config.get("r")
    if not isinstance(alpha, (int, float)) or not isinstance(rank, (int, float)) or rank <= 0 or alpha <= 0:
        return None
    if config.get("rank_pattern") or config.get("alpha_pattern") or config.get("use_dora"):
        return None
    return float(alpha) / (math.sqrt(rank) if config.get("use_rslora") else float(rank))


def _is_base(base: Checkpoint, merged: Checkpoint, config: Mapping[str, object], made: Sequence[_Held]) -> bool:
    """Whether the first is the base: by its name in the configuration, else by the sign of what was added."""
    said = config.get("base_model_name_or_path")
    wanted = PurePath(said).name if isinstance(said, str) else ""
    names = [{PurePath(c.path).name, PurePath(c.path).stem, PurePath(c.path).parent.name} for c in (base, merged)]
    if wanted and (wanted in names[0]) != (wanted in names[1]):
        return wanted in names[0]
    return float(np.median([m.times for m in made])) > 0


def _made(base: Checkpoint, merged: Checkpoint, adapter: Mapping[str, tuple[Tensor, Tensor]]) -> list[_Held]:
    """Each adapted module as a multiple; [] where most are none, or where the models are not of one form."""
    one, other = base.weights.tensors, merged.weights.tensors
    if {n: t.shape for n, t in one.items()} != {n: t.shape for n, t in other.items()}:
        return []
    weights = {n.rpartition(".")[0]: n for n, t in one.items() if len(t.shape) == 2 and t.floating}
    at = {m: weights[own] for m in adapter if (own := _own(m, weights)) is not None}
    if not at or sum(one[n].nbytes for n in at.values()) > _MOST_BYTES:
        return []
    products = {m: np.asarray(adapter[m][1].load(), np.float64) @ np.asarray(adapter[m][0].load(), np.float64)
                for m in at}
    found = [h for m, n in at.items() if (h := _held(m, n, one[n], other[n], products, adapter[m][0].shape[0]))]
    return found if len(found) >= max(2, _SHARE * len(at)) and any(h.times for h in found) else []


def _own(module: str, weights: Mapping[str, str]) -> str | None:
    pieces = module.split(".")
    return next((own for i in range(len(pieces)) if (own := ".".join(pieces[i:])) in weights), None)


def _held(module: str, name: str, base: Tensor, merged: Tensor, products: Mapping[str, Values], rank: int
          ) -> _Held | None:
    """The multiple, of the own product first, then turned, then of any other of the shape."""
    values = np.asarray(merged.load(), np.float64)
    moved = values - np.asarray(base.load(), np.float64)
    size = float(np.linalg.norm(moved))
    rounding = max(_ROUNDING.get(t.dtype, 1e-6) for t in (base, merged)) * float(np.linalg.norm(values))
    if not np.isfinite(moved).all():
        return None
    if size <= rounding:
        return _Held(name, module, False, 0.0, rank)
    others = sorted(products, key=lambda m: m != module)
    for turned in (False, True):
        for source in others:
            product = products[source].T if turned else products[source]
            power = float((product**2).sum())
            if product.shape != moved.shape or not power > 0:
                continue
            times = float((moved * product).sum()) / power
            if float(np.linalg.norm(moved - times * product)) <= _EXACT * size + 2 * rounding:
                return _Held(name, source, turned, times, rank)
    return None


def _judged(base: Checkpoint, merged: Checkpoint, adapter: Checkpoint, made: Sequence[_Held], scale: float
            ) -> Iterator[Finding]:
    """One finding for each way that is not the configured one."""
    own = {m.name: m for m in made}
    ways: dict[tuple[bool, bool, float], list[_Held]] = {}
    for one in made:
        own_product = f".{one.source}".endswith(f".{one.name.rpartition('.')[0]}")
        times = one.times / scale
        if own_product and not one.turned and abs(times - 1) <= _OFF:
            continue
        ways.setdefault((own_product, one.turned, round(times, 2)), []).append(one)
    usual = Counter({w: len(m) for w, m in ways.items()}).most_common(3)
    for way, _ in usual:
        yield _finding(base, merged, adapter, ways[way], way, len(own), scale)


def _finding(base: Checkpoint, merged: Checkpoint, adapter: Checkpoint, odd: Sequence[_Held],
             way: tuple[bool, bool, float], of: int, scale: float) -> Finding:
    own, turned, times = way
    first = odd[0]
    what = "the product of its adapter" if own else f"the product of another module's adapter ({first.source})"
    how = f"{times:.4g} times {what}{', transposed,' if turned else ''} where once is configured"
    why = ""
    if own and not turned:
        why = (": it was merged twice, into weights that held it already" if abs(times - 2) <= 2 * _OFF else
               ": it was left out" if times == 0 else ": it was subtracted" if abs(times + 1) <= _OFF else
               ": alpha was not divided by the rank" if abs(times - first.rank) <= _OFF * first.rank else
               ": alpha over the root of the rank" if abs(times - math.sqrt(first.rank)) <= _OFF * times else
               ": alpha was left out" if abs(times * scale - 1) <= _OFF else "")
    return RULE.finding(
        f"{len(odd)} of {of} adapted tensors of {merged.path} are those of {os.path.basename(base.path)} of "
        f"{PurePath(base.path).parent.name or '.'} plus {how} ({first.name} and its like; a scale of "
        f"{first.times:.4g} where the adapter's configuration says {scale:.4g}){why}",
        Location(file=merged.path, module=first.name), merged.path, bearing=Bearing.CAUSE,
        measured={"kind": "turned" if turned else "source" if not own else "times", "name": first.name,
                  "times": times, "tensors": len(odd), "of": of, "adapter": os.path.basename(adapter.path)})
