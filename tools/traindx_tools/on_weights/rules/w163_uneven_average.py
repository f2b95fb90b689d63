"""A file is a sum of other files of its folder, with the same parts of each for all tensors but some; or not in all.

An average of checkpoints, a soup of trainings or a merge takes the same share of each member for every tensor. The
shares are found from the values. A tensor with other shares was left out, added twice or divided by another number; one
that is a single member's was copied and not averaged. Shares that do not add up to one make every tensor too small or
too large. Where settings beside the files say a share for each member, those that were found are laid beside them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.file_sets import file_sets
from traindx_tools.on_weights.mixtures import FEWEST, SHARE, Mixture, mixture_of
from traindx_tools.on_weights.recipes import Recipe, recipes_of
from traindx_tools.rules import Rule, Threshold

_ODD, _LEFT, _ONE = 0.34, 0.02, 0.01

RULE = Rule(
    id="W163",
    name="uneven-average",
    title="A tensor of an average is not the average of its members",
    severity=Severity.HIGH,
    sees="Every tensor of a file as a sum of the same tensor of the other files of the folder, and the shares that "
         "settings beside them say.",
    matters="The tensor has another scale, or is of another step, than those that it works with.",
    alike=("a moving average: it is no sum of the few files that were kept", "tensors that no file moved",
           "merges that take another share for each layer"),
    confirm=("average the named tensor of the members again and compare",),
    thresholds={
        "tensors": Threshold(FEWEST, "tensors that are the same sum, at least", "one may be it by chance"),
        "share": Threshold(SHARE, "of the tensors that tell it", "else each layer has shares of its own"),
        "odd": Threshold(_ODD, "of the tensors, at most, that are another sum", "else there are two recipes"),
        "one": Threshold(_ONE, "that the shares add up to more or less than one, or that one is off", "rounding"),
    },
)


def check_files(read: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Of every file that is a sum of others. Raises UnreadableInput."""
    for found in filter(None, map(mixture_of, file_sets(read))):
        total = float(found.parts.sum())
        if abs(total - 1) > _ONE and abs(total) > _ONE:  # the difference of two files adds up to nothing
            yield _total(found, total)
        if found.odd and len(found.odd) <= _ODD * (len(found.odd) + len(found.good)):
            yield _odd(found)
        if (other := _other_recipe(found)) is not None:
            yield other


def _told(found: Mixture, parts: NDArray[np.float64]) -> str:
    return " + ".join(f"{p:.3g} x {os.path.basename(f.path)}" for f, p in zip(found.others, parts, strict=True)
                      if abs(p) > _LEFT)


def _total(found: Mixture, total: float) -> Finding:
    return RULE.finding(
        f"{len(found.good)} tensors of {found.made.path} are {_told(found, found.parts)}: the shares add up to "
        f"{total:.3g} and not to 1, so that all are {total:.3g} times the average", Location(file=found.made.path),
        found.made.path, bearing=Bearing.CAUSE, measured={"kind": "total", "name": os.path.basename(found.made.path),
                                                          "factor": round(total, 4)})


def _other_recipe(found: Mixture) -> Finding | None:
    """Shares that no recipe beside the files says; one that names other numbers may be of another file."""
    kept = found.parts / found.parts.sum() if abs(found.parts.sum()) > _ONE else found.parts
    told = [(r, np.array(r.parts) / sum(r.parts)) for r in recipes_of(found.made.path, [f.path for f in found.others])
            if abs(sum(r.parts)) > _ONE]
    off = [(float(np.abs(parts - kept).max()), r, parts) for r, parts in told]
    if not off or min(o[0] for o in off) <= 2 * _ONE:
        return None
    _, recipe, parts = min(off, key=lambda o: o[0])
    if _tells_nothing(recipe):
        return None
    same = np.allclose(np.sort(parts), np.sort(kept), atol=2 * _ONE)
    how = ("the same shares in another order: they went to other members than they are meant for" if same
           else "the shares are others")
    return RULE.finding(
        f"{len(found.good)} tensors of {found.made.path} are {_told(found, found.parts)}, and {recipe.file} says "
        f"{_told(found, parts)}: {how}", Location(file=found.made.path), found.made.path,
        bearing=Bearing.CAUSE, measured={"kind": "recipe", "name": os.path.basename(found.made.path),
                                         "exchanged": same, "off": round(float(np.abs(parts - kept).max()), 4)})


def _tells_nothing(recipe: Recipe) -> bool:
    """Whether the shares are those of one member alone, or of so little that rounding tells them no more."""
    return sum(abs(p) > _LEFT for p in recipe.parts) < 2 or not np.isfinite(recipe.parts).all()


def _odd(found: Mixture) -> Finding:
    name, parts, left = found.odd[0]
    own = _told(found, parts) if left <= _LEFT else "no sum of them"
    names = ", ".join(n for n, *_ in found.odd[:4]) + (f" and {len(found.odd) - 4} more" if len(found.odd) > 4 else "")
    times = float(parts.sum() / found.parts.sum())
    factor = f" ({times:.3g} times the average)" if left <= _LEFT and abs(times - 1) > _ONE else ""
    return RULE.finding(
        f"{len(found.good)} tensors of {found.made.path} are {_told(found, found.parts)}, and {len(found.odd)} "
        f"{'is' if len(found.odd) == 1 else 'are'} not: {names}; {name} is {own}{factor}",
        Location(file=found.made.path, module=name), found.made.path, bearing=Bearing.CAUSE,
        measured={"kind": "tensors", "name": name, "tensors": len(found.odd), "factor": round(times, 4)})
