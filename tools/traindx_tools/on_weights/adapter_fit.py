"""How the modules of an adapter lie over those of a base: as they are called, after a renaming, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from traindx_tools.on_weights.adapter_base import Base
from traindx_tools.on_weights.adapter_keys import Adapted, kind_of, layer_of, shifted
from traindx_tools.on_weights.renaming import Renaming

Shape = tuple[int, ...] | None
_MOST = 400
_ALIKE, _AHEAD = 0.5, 0.08
"""Likeness of two names from which one may be meant by the other, and how far the next one is behind."""


@dataclass(frozen=True)
class Fit:
    """`at`: the module of the base that each of the adapter's names. `prefix`: a change of the beginning that was
    needed for it. `absent`: those that name none."""

    base: Base
    at: Mapping[str, str]
    prefix: Renaming | None
    absent: tuple[str, ...]


def fit(modules: Mapping[str, Adapted], base: Base) -> Fit:
    """Names as they are, or with the change of their beginning under which most are in the base."""
    best: tuple[Renaming | None, dict[str, str]] = (None, {m: m for m in modules if m in base.modules})
    for renaming in _prefixes(list(modules), base.modules):
        made = {m: new for m in modules if (new := renaming(m)) is not None and new in base.modules}
        if len(made) > len(best[1]):
            best = (renaming, made)
    prefix, at = best
    return Fit(base, at, prefix, tuple(m for m in modules if m not in at))


def _prefixes(names: Sequence[str], base: Mapping[str, Shape]) -> Iterator[Renaming]:
    """The changes of the beginning with the most votes of names that end alike."""
    ends: dict[str, list[list[str]]] = {}
    for other in base:
        ends.setdefault(kind_of(other).rpartition(".")[2], []).append(other.split("."))
    votes: Counter[tuple[str, str]] = Counter()
    for name in names[:: max(1, len(names) // 40)]:
        own = name.split(".")
        for other_parts in ends.get(own[-1], ())[:_MOST]:
            common = 0
            while common < min(len(own), len(other_parts)) and own[-1 - common] == other_parts[-1 - common]:
                common += 1
            heads = own[: len(own) - common], other_parts[: len(other_parts) - common]
            votes["".join(f"{p}." for p in heads[0]), "".join(f"{p}." for p in heads[1])] += 1
    for (old, new), _ in votes.most_common(6):
        if old != new and layer_of(f"{old}{new}") is None:
            yield Renaming(old, new)


def offset(found: Fit, modules: Mapping[str, Adapted]) -> Renaming | None:
    """Layer numbers that begin elsewhere: a shift by which all of the numbered modules are in the base and fit."""
    if not found.absent:
        return None
    there = found.base.modules
    names = {m: (found.prefix(m) if found.prefix else None) or m for m in modules if layer_of(m) is not None}
    for by in (-1, 1, -_lowest(list(names.values()))):
        if by and names and all((new := shifted(n, by)) in there and fits(modules[m], there[new])
                                for m, n in names.items()):
            return Renaming(offset=by)
    return None


def _lowest(modules: Sequence[str]) -> int:
    return min((i for m in modules if (i := layer_of(m)) is not None), default=0)


def fits(one: Adapted, shape: Shape) -> bool:
    """Whether the ends are those of the weight, in either order; what cannot be told fits."""
    if shape is None or one.ends is None:
        return True
    return sorted(one.ends) == sorted(shape[:2])


def other_names(found: Fit, modules: Mapping[str, Adapted]) -> dict[str, list[str]]:
    """Of the kinds of absent modules, the kinds of the base that they may mean: of their shape in all their layers
    and without an adapter, the likeliest first; several where it cannot be told."""
    taken = {kind_of(b) for b in found.at.values()}
    kinds: dict[str, dict[int, Shape]] = {}
    for module, shape in found.base.modules.items():
        if (layer := layer_of(module)) is not None and shape is not None:
            kinds.setdefault(kind_of(module), {})[layer] = shape
    wanted: dict[str, list[str]] = {}
    for module in found.absent:
        wanted.setdefault(kind_of(module), []).append(module)
    return {kind: _meant(kind, [c for c, at in kinds.items() if c not in taken and all(
        layer_of(m) in at and fits(modules[m], at[layer_of(m) or 0]) for m in own)]) for kind, own in wanted.items()}


def _meant(kind: str, candidates: Sequence[str]) -> list[str]:
    if len(candidates) < 2:
        return list(candidates)
    likeness = {c: SequenceMatcher(None, kind, c, autojunk=False).ratio() for c in candidates[:_MOST]}
    ranked = sorted(likeness, key=lambda c: -likeness[c])
    sure = likeness[ranked[0]] >= _ALIKE and likeness[ranked[0]] - likeness[ranked[1]] >= _AHEAD
    return ranked[:1] if sure else ranked[:4]
