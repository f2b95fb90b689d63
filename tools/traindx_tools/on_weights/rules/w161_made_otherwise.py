"""Two files hold one model in two forms, and one tensor was converted otherwise than the same tensor of other blocks.

Exports, conversions to another library and quantised copies keep the values and change names, axes and the order of
lines. What was done to each tensor is read from the values. A tensor of one block that was left as it was, transposed,
scaled, taken from another block, or that the source does not hold at all, was missed or changed by the converter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.conversions import FEWEST, KNOWN, SHARE, Member, Odd, known_share, odd_ones, pair
from traindx_tools.on_weights.layouts import Turned, turned_otherwise
from traindx_tools.on_weights.orders_apart import Apart, layers_off, orders_apart
from traindx_tools.on_weights.origins import CLOSE, Held
from traindx_tools.rules import Rule, Threshold

Way = tuple[Checkpoint, Checkpoint, tuple[list[Member], list[Held]]]
"""The file that was made, its source, and what was found of each tensor."""

RULE = Rule(
    id="W161",
    name="made-otherwise",
    title="One tensor of a converted file was made otherwise than its kind",
    severity=Severity.HIGH,
    sees="Every matrix of a file as made from one of another file: as it is, with axes or lines in another order, "
         "times or plus a number, restored from codes; compared over the blocks.",
    matters="The layer computes something else than the model that was converted.",
    alike=("blocks that were pruned or whose units were sorted, each in its own way", "a fine-tuned file: its values "
           "are those of no other", "a tensor without the same one in other blocks"),
    confirm=("convert the named tensor again and compare", "compare outputs of both files layer by layer"),
    thresholds={
        "known": Threshold(KNOWN, "of the matrices, at least, whose origin is found", "else it is another model"),
        "kind": Threshold(FEWEST, "members of a kind", "fewer have no usual way"),
        "share": Threshold(SHARE, "of them that were made in one way", "else there is none"),
        "close": Threshold(CLOSE, "of the norm, that a way leaves at most", "eight bits leave 0.01"),
    },
)


def check_files(read: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Every pair of files of which one was made from the other. Raises UnreadableInput."""
    for one, other in combinations(sorted(read, key=lambda c: (_width(c), c.path)), 2):
        ways = [(made, source, found) for made, source in ((one, other), (other, one))
                if (found := pair(made, source)) is not None]
        if ways:
            yield from _told(ways, _width(one) < _width(other))


def _told(ways: Sequence[Way], narrower: bool) -> Iterator[Finding]:
    """What is odd in the file that was made. What was split has all of its parts in what it was split from, and not the
    other way round; the narrower one is made from the other.

    Where neither tells them apart, what the one holds from elsewhere says more than that the other has it nowhere; the
    times of the files say nothing: copying changes them.
    """
    asked = [(known_share(way[2][0]), list(odd_ones(*way[2], lost=_another_form(*way[:2]))), way) for way in ways]
    _, odd, (made, source, (members, sources)) = max(
        asked, key=lambda a: (a[0], _named_by(*a[2][:2]), not narrower and any(o.kind != "lost" for o in a[1])))
    either = not narrower and len(asked) > 1 and asked[0][0] == asked[1][0] and not _named_by(made, source)
    yield from (_finding(made, source, o, either) for o in odd)
    told = {o.name for o in odd}
    yield from (_turned(made, source, t, either) for t in turned_otherwise(members) if told.isdisjoint(t.names))
    yield from (_apart(made, source, a) for a in orders_apart(members, sources))
    if (off := layers_off(members, sources)) is not None:
        yield _layers(made, source, *off)


def _named_by(made: Checkpoint, source: Checkpoint) -> bool:
    """Whether a file itself names the other one as what it was made from."""
    return any(isinstance(v, str) and os.path.basename(v) == os.path.basename(source.path)
               for v in made.values.values())


def _width(checkpoint: Checkpoint) -> int:
    """Hundredths of bytes that a value takes: files of codes and of narrow types are made from the others."""
    held = list(checkpoint.weights.tensors.values())
    return sum(t.nbytes for t in held) * 100 // max(1, sum(t.size for t in held))


def _another_form(made: Checkpoint, source: Checkpoint) -> bool:
    """Whether names or types differ: a file of the same form may be one that was trained further."""
    types = [{n: t.dtype for n, t in c.weights.tensors.items()} for c in (made, source)]
    both = types[0].keys() & types[1].keys()
    return not both or sum(types[0][n] != types[1][n] for n in both) > len(both) / 2


def _turned(made: Checkpoint, source: Checkpoint, odd: Turned, either: bool) -> Finding:
    """Square tensors that were turned otherwise than all others."""
    theirs = _beside(made, source)
    name, count = odd.names[0], len(odd.names)
    more = f" and {count - 1} more ({', '.join(odd.names[1:4])}{', ...' if count > 4 else ''})" if count > 1 else ""
    turned = "; which of the two was made from the other, the values do not say" if either else ""
    return RULE.finding(
        f"{name}{more} of {made.path} {'is' if count == 1 else 'are'} {_axes(odd.axes)} beside {odd.source} of "
        f"{theirs}, where the other {odd.others} {'matrices' if len(odd.axes) == 2 else 'kernels'} are "
        f"{_axes(odd.usual)}: the values show it, the shape {list(odd.shape)} is the same either way{turned}",
        Location(file=made.path, module=name), made.path, bearing=Bearing.CAUSE,
        measured={"kind": "form", "name": name, "names": odd.names, "source": odd.source, "usual": odd.others,
                  "of": odd.others + count, "form": "transposed" if len(odd.axes) == 2 else "axes"})


def _apart(made: Checkpoint, source: Checkpoint, apart: Apart) -> Finding:
    """Rows in another order, and not in what belongs to them."""
    name, count, (row, was) = apart.names[0], len(apart.names), apart.row
    more = f" and {count - 1} more matrices" if count > 1 else ""
    other = {"bias": "its bias", "keys": "the keys that are multiplied with it"}[apart.kind]
    return RULE.finding(
        f"the rows of {name}{more} of {made.path} stand in another order than in {_beside(made, source)} (row {row} "
        f"was row {was}), and {other}, {apart.beside}, {'does' if apart.kind == 'bias' else 'do'} not stand so",
        Location(file=made.path, module=apart.beside), made.path, bearing=Bearing.CAUSE,
        measured={"kind": "order", "name": apart.beside, "names": apart.names, "of": count, "form": "order of rows"})


def _layers(made: Checkpoint, source: Checkpoint, off: int, count: int, name: str, theirs: str) -> Finding:
    """All layers one place off, where both files have layers of the same numbers."""
    return RULE.finding(
        f"the layers of {made.path} are {abs(off)} {'place' if abs(off) == 1 else 'places'} off: {count} matrices are "
        f"those of layer {off:+d} of {_beside(made, source)} ({name} is {theirs}), and both number their layers "
        f"alike", Location(file=made.path, module=name), made.path, bearing=Bearing.CAUSE,
        measured={"kind": "layers", "name": name, "source": theirs, "off": off, "of": count, "form": "order of layers"})


def _axes(axes: tuple[int, ...]) -> str:
    """How axes were turned, in words."""
    if axes == tuple(range(len(axes))):
        return "not transposed" if len(axes) == 2 else "with their axes as they were"
    return "transposed" if len(axes) == 2 else f"with axes in the order {list(axes)}"


def _beside(made: Checkpoint, source: Checkpoint) -> str:
    """The path of the source as seen from the folder of both."""
    both = [os.path.dirname(os.path.abspath(p.path)) for p in (made, source)]
    return os.path.relpath(source.path, os.path.commonpath(both)) if os.path.isabs(source.path) else source.path


def _finding(made: Checkpoint, source: Checkpoint, odd: Odd, either: bool) -> Finding:
    """`either`: it may be the other file that was made from this one."""
    theirs = _beside(made, source)
    others = f"{odd.usual} of {odd.of} of its kind"
    what = {"form": f"is {odd.source} of {theirs} {odd.got}, where {others} are so {odd.expected}",
            "source": f"is {odd.got} of {theirs}, and by {others} it should be {odd.source}",
            "lost": f"is {odd.got} from {odd.source} of {theirs}, and {others} are made from it exactly"}[odd.kind]
    turned = "; which of the two was made from the other, the values do not say" if either else ""
    return RULE.finding(
        f"{odd.name} of {made.path} {what}{turned}", Location(file=made.path, module=odd.name), made.path,
        bearing=Bearing.CAUSE, measured={"kind": odd.kind, "name": odd.name, "source": odd.source, "usual": odd.usual,
                                         "of": odd.of})
