"""The mask of one pruned tensor keeps other weights than those of the others: the small ones, or another tensor's.

Pruning by magnitude removes what is smallest. Whether a kept weight is larger than a removed one is asked of every
pruned tensor, from its mask beside its weights or from its zeros beside the dense file. Where the others keep the large
ones and one tensor keeps the small ones, its mask was inverted; where it keeps what the mask of another tensor says, or
its own transposed one, the masks were taken from the wrong place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.pruning import LEAST, Pruned, pruned_of
from traindx_tools.rules import Rule, Threshold

_LARGE, _SMALL, _CERTAIN = 0.8, 0.2, 0.97
_EVERYWHERE = 0.03
_FEWEST, _OWN = 2, 0.75
_SAME = 0.999

RULE = Rule(
    id="W170",
    name="pruned-otherwise",
    title="The mask of a pruned tensor keeps other weights than those of the others",
    severity=Severity.HIGH,
    sees="The share of pairs of a kept and a removed weight in which the kept one is larger, in every pruned tensor; "
         "lines that were removed as wholes by their norms.",
    matters="The layer lost the weights that carry it and kept those that do nothing.",
    alike=("pruning by another criterion, random or structured, in all tensors", "masks that mark what is removed, in "
           "all tensors alike", "blocks of which so many of four are kept"),
    confirm=("invert the named mask in a copy, apply it to the dense weights and evaluate",
             "compare the accuracy with only this tensor pruned and with only the others"),
    thresholds={
        "large": Threshold(_LARGE, "share of pairs", "pruning by magnitude gives 1, two of four 0.9, chance 0.5"),
        "small": Threshold(_SMALL, "share of pairs", "an inverted mask gives 0"),
        "certain": Threshold(_CERTAIN, "share of pairs", "with the mask of another place: no chance"),
        "everywhere": Threshold(_EVERYWHERE, "share of pairs", "where all masks keep the small ones, exactly"),
        "others": Threshold(_FEWEST, "tensors", "that keep the large ones, before one that does not is odd"),
        "least": Threshold(LEAST, "of the values", "kept, and removed: else it is not pruned"),
    },
)


def check_files(read: Sequence[Checkpoint]) -> Iterator[Finding]:
    """The pruned tensors of each file against each other. Raises UnreadableInput."""
    told: set[tuple[str, str]] = set()
    for pruned in pruned_of(read):
        for found in _judged(pruned):
            key = (found.source, str(found.measured["name"]))
            if key not in told:
                told.add(key)
                yield found


def _judged(pruned: Sequence[Pruned]) -> Iterator[Finding]:
    shares = [p.larger() for p in pruned]
    if not any(p.told for p in pruned) and sum(s <= _SMALL for s in shares) > len(shares) / 2:  # ones mark the removed
        pruned, shares = [replace(p, kept=~p.kept) for p in pruned], [1 - s for s in shares]
    large = [s for s in shares if s >= _LARGE]
    small = [(p, s) for p, s in zip(pruned, shares, strict=True) if s <= _SMALL]
    if len(large) >= _FEWEST and len(large) > len(small):
        yield from (_inverted(p, s, large) for p, s in small)
        for one, share in zip(pruned, shares, strict=True):
            if _SMALL < share < _OWN and float(np.median(large)) >= _CERTAIN:
                yield from _of_another(one, share, pruned, len(large))
    elif len(small) == len(pruned) >= _FEWEST and all(p.told and s <= _EVERYWHERE for p, s in small):
        yield _everywhere(pruned, shares)


def _of_another(one: Pruned, share: float, pruned: Sequence[Pruned], usual: int) -> Iterator[Finding]:
    """Whether the mask is that of another tensor, or fits its own weights the other way round."""
    chance = one.kept.mean() ** 2 + (1 - one.kept.mean()) ** 2
    same = [p for p in pruned if p is not one and p.kept.shape == one.kept.shape and chance < _SAME - LEAST
            and (p.kept == one.kept).mean() >= _SAME and p.larger() >= _CERTAIN]
    if same:
        yield _finding(one, f"is that of {same[0].name}, whose weights it fits: of its own a kept weight is larger "
                       f"than a removed one in {share:.0%} of pairs", "another", share, usual)
        return
    turned = one.kept.T if one.kept.ndim == 2 and one.kept.shape[0] == one.kept.shape[1] else None
    if turned is not None and one.larger(turned) >= _CERTAIN:
        yield _finding(one, "is transposed: the other way round it keeps the largest weights, and as it stands a kept "
                       f"weight is larger than a removed one in {share:.0%} of pairs", "transposed", share, usual)


def _inverted(one: Pruned, share: float, large: Sequence[float]) -> Finding:
    sizes = np.abs(one.weights)
    kept, removed = (float(np.median(sizes[m])) for m in (one.kept, ~one.kept))
    return _finding(
        one, f"is inverted: it keeps the smaller weights (median {kept:.3g}) and removes the larger ones (median "
        f"{removed:.3g}); a kept one is larger in {share:.0%} of pairs", "inverted", share, len(large),
        f" ({min(large):.0%} of pairs and more)")


def _finding(one: Pruned, what: str, kind: str, share: float, usual: int, detail: str = "") -> Finding:
    return RULE.finding(
        f"the mask of {one.name} in {one.file} {what}, and the other {usual} pruned tensors keep the larger ones"
        f"{detail}",
        Location(file=one.file, module=one.name), one.file, bearing=Bearing.CAUSE,
        measured={"kind": kind, "name": one.name, "larger": round(share, 4), "others": usual,
                  "kept": round(float(one.kept.mean()), 4)})


def _everywhere(pruned: Sequence[Pruned], shares: Sequence[float]) -> Finding:
    first = pruned[0]
    return RULE.finding(
        f"all {len(pruned)} pruned tensors of {first.file} keep their smallest weights and lost the larger ones (a "
        f"kept one is larger in at most {max(shares):.0%} of pairs; {first.name} and others): the masks are inverted",
        Location(file=first.file, module=first.name), first.file, bearing=Bearing.CAUSE, severity=Severity.MEDIUM,
        measured={"kind": "everywhere", "name": first.name, "larger": round(max(shares), 4), "others": 0,
                  "kept": round(float(first.kept.mean()), 4)})
