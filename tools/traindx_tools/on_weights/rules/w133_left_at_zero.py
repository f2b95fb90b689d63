"""Some layers' adapters, or projections behind a gate, are exactly at their beginning and those of the others trained.

An adapter's second matrix (LoRA's B), a gate and the last projection of a new branch begin at zero, so that the model
begins unchanged. The first step moves them: what is exactly zero among others that are not never had a gradient. All
at zero is a file of before training. A whole component at zero (a text encoder) was left out on purpose; the last
layers alone may lie behind the place where the model's output is taken.

The configuration beside an adapter says which layers it is for: a layer that it names and the file lacks, or a gap of
a whole layer, was not saved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.adapters import configuration_of, kind_of, layer_of, pairs
from traindx_tools.on_weights.initialisers import sharply_drawn
from traindx_tools.on_weights.rules.w102_constant import OTHERS
from traindx_tools.on_weights.seen import FEWEST_SIBLINGS, Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_TRAINED, _LAYERS, _LAST, _BLOCKS = 2, 6, 2, 3

RULE = Rule(
    id="W133",
    name="left-at-zero",
    title="Adapters or gates of some layers were never trained",
    severity=Severity.HIGH,
    sees="which second matrices of adapters, gates and last projections are exactly zero, and which layers are there",
    matters="These layers pass on what the base gives: a part of the model was not adapted.",
    alike=("a file of before training: all are zero", "layers_to_transform leaves layers out",
           "a component that is not adapted (a text encoder)", "copied blocks that begin as identity"),
    confirm=("print requires_grad and the gradient of the named matrices after one step",
             "compare the modules of the file with adapter_config.json"),
    thresholds={
        "trained": Threshold(_TRAINED, "adapters", "that are not zero"),
        "layers": Threshold(_LAYERS, "layers", "one in as many may be missing: stages that differ have fewer"),
        "last": Threshold(_LAST, "layers", "at the end that may lie behind the output that is used"),
    },
)
_GATE = re.compile(r"(?i)(?:^|[._])(?:\w*gate|\w*gating\w*|alpha|gamma|res_?weight|re_?zero|\w*scale)$")
"""How single numbers that a branch is multiplied by are called."""


def check(seen: Seen) -> Iterator[Finding]:
    """Adapters where there are some, else branches; layers that are not there."""
    found = pairs(seen.part.tensors)
    yield from _adapters(seen, found)
    yield from _branches(seen, found)
    if seen.main:
        yield from _absent(seen, found)


def _adapters(seen: Seen, found: Mapping[str, tuple[Tensor, Tensor]]) -> Iterator[Finding]:
    """Second matrices that are zero, in kinds of modules of which some are not."""
    stats = {m: s for m, (_, up) in found.items() if (s := seen.stats.get(up.name)) is not None}
    zero = [m for m, s in stats.items() if _zero(s)]
    trained = [m for m in stats if m not in set(zero)]
    going = {kind_of(m) for m in trained}
    mixed = [m for m in zero if kind_of(m) in going]
    if len(trained) < _TRAINED or not zero:
        return
    if not mixed:
        apart = _component(zero).isdisjoint(_component(trained))
        yield _finding(seen, stats[zero[0]], f"the second matrix of all {len(zero)} adapters of "
                       f"{', '.join(sorted({kind_of(m) for m in zero})[:3])} is zero and that of {len(trained)} others "
                       "is not: these modules got no gradient, or are not adapted on purpose", "kind", zero,
                       Severity.INFO if apart else Severity.MEDIUM, Bearing.SIGN)
        return
    layers = {i for m in mixed if (i := layer_of(m)) is not None}
    last = bool(layers) and len(layers) <= _LAST and min(layers) > max(
        (i for m in trained if (i := layer_of(m)) is not None), default=-1)
    fresh = sum(sharply_drawn(s) is not None for m in mixed if (s := seen.stats.get(found[m][0].name)) is not None)
    first = f"; {fresh} of their first matrices are as they were drawn" if fresh else ""
    why = "never trained, or behind the place where the output is taken" if last else "never trained"
    yield _finding(seen, stats[mixed[0]], f"the second matrix of {len(mixed)} of {len(stats)} adapters is exactly "
                   f"zero, as it begins ({_listed(mixed)}), and that of the others is not{first}: {why}", "adapter",
                   mixed, Severity.MEDIUM if last else None, Bearing.SIGN if last else Bearing.CAUSE)


def _zero(stats: Stats) -> bool:
    return stats.finite == stats.size and stats.low == stats.high == 0


def _component(modules: Sequence[str]) -> set[str]:
    """What stands before the layer's number."""
    return {kind_of(m).partition("*")[0] for m in modules}


def _listed(modules: Sequence[str]) -> str:
    more = f" and {len(modules) - 3} more" if len(modules) > 3 else ""
    return ", ".join(modules[:3]) + more


def _branches(seen: Seen, found: Mapping[str, tuple[Tensor, Tensor]]) -> Iterator[Finding]:
    """Blocks whose gate or last projection is zero and whose other matrices are as drawn, where others are neither."""
    adapters = {t.name for pair in found.values() for t in pair}
    blocks: dict[tuple[str, int], list[Stats]] = {}
    zeros: dict[tuple[str, int], Stats] = {}
    moved: dict[str, int] = {}
    for stack in seen.stacks_from(_BLOCKS):
        head = stack.pattern.partition("*")[0]
        own = [_zero(s) for s in stack.members]
        left, going = sum(own), len(own) - sum(own)
        few = len(own) >= FEWEST_SIBLINGS and going >= OTHERS * (len(own) - 1)  # W102, W104 tell it
        begins = going and left and not few and (
            stack.members[0].tensor.matrix or (stack.members[0].size == 1 and _GATE.search(stack.pattern)))
        for index, stats, is_zero in zip(stack.indexes, stack.members, own, strict=True):
            if stats.tensor.matrix and not is_zero and stats.name not in adapters:
                blocks.setdefault((head, index), []).append(stats)
            if begins and is_zero and stats.name not in adapters:
                zeros.setdefault((head, index), stats)
                moved[head] = going
    for head, trained in moved.items():
        own_zero = {b: s for b, s in zeros.items() if b[0] == head}
        fresh = [b for b in own_zero if _drawn(blocks.get(b, ()))]
        others = [b for b in blocks if b[0] == head and b not in own_zero]
        if trained >= _TRAINED and fresh and len(fresh) == len(own_zero) and not any(_drawn(blocks[b]) for b in others):
            names = [f"{head}{i}" for _, i in fresh]
            one = own_zero[fresh[0]]
            yield _finding(seen, one, f"{one.name} and its like in {len(fresh)} blocks ({_listed(names)}) are exactly "
                           f"zero, the matrices there are as they were drawn, and neither is so in the other "
                           f"{len(others)} blocks: never trained", "branch", names)


def _drawn(matrices: Sequence[Stats]) -> bool:
    """Whether all of a block's matrices are still what an initialiser draws."""
    return bool(matrices) and all(sharply_drawn(s) is not None for s in matrices)


def _absent(seen: Seen, found: Mapping[str, tuple[Tensor, Tensor]]) -> Iterator[Finding]:
    """Layers that the configuration names, or that stand between others, and that no adapter of the file is for."""
    by_component: dict[str, set[int]] = {}
    for module in found:
        if (layer := layer_of(module)) is not None:
            by_component.setdefault(kind_of(module).partition("*")[0], set()).add(layer)
    if not by_component:
        return
    config = configuration_of(seen.path)
    wanted = _layers(config.get("layers_to_transform"))
    there = set().union(*by_component.values())
    first = next(iter(found.values()))[1]
    if wanted:
        lost = sorted(wanted - there)
        if lost and wanted & there:
            yield _finding(seen, seen.stats[first.name], f"adapter_config.json names {len(wanted)} layers to transform "
                           f"and the file has adapters of {len(wanted & there)} of them; there is none of layer "
                           f"{', '.join(map(str, lost[:6]))}", "absent", [str(i) for i in lost])
        return
    for head, layers in by_component.items():
        lost = sorted(set(range(min(layers), max(layers))) - layers)
        if len(layers) >= _LAYERS and 0 < len(lost) <= len(layers) / _LAYERS and not _regular(lost):
            said = "; adapter_config.json leaves no layer out" if config else ""
            yield _finding(seen, seen.stats[first.name], f"there is no adapter of {head}{lost[0]}"
                           f"{f' and {len(lost) - 1} more' if lost[1:] else ''} between those of {len(layers)} other "
                           f"layers{said}", "gap", [f"{head}{i}" for i in lost],
                           None if config else Severity.MEDIUM, Bearing.CAUSE if config else Bearing.SIGN)


def _layers(told: object) -> set[int]:
    values = told if isinstance(told, list) else [told]
    return {v for v in values if isinstance(v, int) and not isinstance(v, bool)}


def _regular(layers: Sequence[int]) -> bool:
    """Whether layers are as far from each other, as those of another kind that alternate are."""
    return len(layers) > 2 and len({b - a for a, b in pairwise(layers)}) == 1 and (
        layers[1] - layers[0] > 1)


def _finding(seen: Seen, stats: Stats, statement: str, kind: str, modules: Sequence[str],
             severity: Severity | None = None, bearing: Bearing = Bearing.CAUSE) -> Finding:
    return RULE.finding(f"{statement} ({seen.path})", seen.where(stats.name), seen.path, bearing=bearing,
                        severity=severity, measured={"kind": kind, "name": stats.name, "modules": tuple(modules[:20]),
                                                     "count": len(modules)})
