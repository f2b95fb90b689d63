"""A dense layer behind a convolution kept the order of its inputs when the convolutions changed theirs.

Flax, Keras and haiku keep channels last: what a flatten gives is a place with all of its channels, and then the next
place. Torch keeps them first: all places of a channel, and then the next channel. Kernels of convolutions show in their
axes that they were turned; the dense layer behind the flatten has to be turned as well, its inputs put in the other
order, and a plain transpose fits in every shape. A program that puts the channels last before it flattens needs none of
this: where its calls move axes, the finding is a suspicion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.conversions import KNOWN, pair
from traindx_tools.on_weights.layouts import Flattened, flattened
from traindx_tools.on_weights.origins import CLOSE
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_code.project import Project

RULE = Rule(
    id="W172",
    name="flattened-order",
    title="A dense layer behind a flatten kept the order of the other library",
    severity=Severity.HIGH,
    sees="How kernels and dense layers of one file were turned from those of another one: a dense layer whose inputs "
         "are places by channels of the last convolution, in the order of the source.",
    matters="Every unit of the layer reads its inputs in another order: the output is noise.",
    alike=("a program that puts the channels last before it flattens", "a mean over all places: as many inputs as "
           "channels", "inputs that were put in the other order"),
    confirm=("reshape the weight to places and channels, exchange the two, and compare the outputs of both models",
             "evaluate before the first step"),
    thresholds={"known": Threshold(KNOWN, "of the matrices, at least, whose origin is found", "else another model"),
                "close": Threshold(CLOSE, "of the norm, that a way leaves at most", "eight bits leave 0.01")},
)
_MOVES = frozenset({"permute", "movedim", "moveaxis", "rearrange", "einsum"})
_OF_ONE_PLACE = frozenset({"transpose", "swapaxes", "mT"})
"""What moves channels as well where there is one axis of places."""


def check_run(read: Sequence[Checkpoint], projects: Sequence[Project]) -> Iterator[Finding]:
    """Every pair of files of which one was made from the other. Raises UnreadableInput."""
    told: set[frozenset[str]] = set()
    for made, source in permutations(read, 2):
        both = frozenset((made.path, source.path))
        if both in told or not _kernels(made) - _kernels(source):
            continue  # no kernel was turned
        found = pair(made, source)
        if found is not None and (odd := [f for f in flattened(found[0]) if f.to_first]):
            told.add(both)
            yield from (_finding(made, source, f, projects) for f in odd)


def _kernels(one: Checkpoint) -> set[tuple[int, ...]]:
    """The shapes of its kernels."""
    return {t.shape for t in one.weights.tensors.values() if len(t.shape) > 2}


def _finding(made: Checkpoint, source: Checkpoint, odd: Flattened, projects: Sequence[Project]) -> Finding:
    moves = _MOVES | (_OF_ONE_PLACE if odd.axes == 3 else frozenset())
    moved = any(True for p in projects for _ in p.calls(*moves))
    sure = bool(projects) and not moved
    places = odd.inputs // odd.channels
    unless = "" if sure else ("; unless the program puts the channels last before it flattens"
                              + (": it moves axes somewhere" if moved else ""))
    return RULE.finding(
        f"{odd.name} of {made.path} has its {odd.inputs} inputs ({places} places of {odd.channels} channels of "
        f"{odd.behind}) in the order of {odd.source} of {source.path}, channels last, and the {odd.convolutions} "
        f"convolutions before it were turned to channels first, where a flatten gives all places of a channel before "
        f"the next one{unless}",
        Location(file=made.path, module=odd.name), made.path, bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        severity=None if sure else Severity.MEDIUM,
        measured={"kind": "flattened", "name": odd.name, "source": odd.source, "inputs": odd.inputs,
                  "channels": odd.channels, "convolutions": odd.convolutions, "form": "flattened"})
