"""All kernels of a port have height and width exchanged, or all recurrent layers kept the other library's gates.

A converter that reverses the axes of a kernel (`weight.T`, `transpose(3, 2, 1, 0)`) puts its channels where the other
library wants them, and its width where the height belongs. Small kernels are square, so that everything loads; the
network sees each pattern mirrored at the diagonal. That all kernels agree is no comfort: no library asks for it. Gates
are the other way round: Keras reads update, reset, new, torch reads reset, update, new, and a matrix that was
transposed and nothing else has them in the order of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import PurePath

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.conversions import KNOWN, pair
from traindx_tools.on_weights.origins import CLOSE
from traindx_tools.on_weights.whole_ports import FEWEST, Exchanged, flipped, gates_kept, places_exchanged
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W176",
    name="places-exchanged",
    title="All layers of a port are in a form that its library does not read",
    severity=Severity.HIGH,
    sees="the order of all axes of each kernel, and of the gates of recurrent layers, beside the file which they were "
         "converted from",
    matters="Every filter looks for its pattern mirrored at the diagonal; gates do each other's work.",
    alike=("kernels of one place, or that are equal to their own transposes: nothing is said",
           "a model that is fed with transposed pictures on purpose", "kernels that were put in the order of the other "
           "library: height stays before width"),
    confirm=("transpose the last two axes of each kernel in a copy and compare the outputs of both models",
             "evaluate before the first step"),
    thresholds={
        "known": Threshold(KNOWN, "of the matrices, at least, whose origin is found", "else it is another model"),
        "kernels": Threshold(FEWEST, "kernels", "that show it by their values, and none that does not"),
        "close": Threshold(CLOSE, "of the norm, that a way leaves at most", "eight bits leave 0.01"),
    },
)


def check_files(read: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Every pair of files of which one was made from the other. Raises UnreadableInput."""
    for one, other in combinations(read, 2):
        if not all(map(_is_asked, (one, other))):
            continue
        for made, source in ((one, other), (other, one)):
            found = pair(made, source)
            if found is None:
                continue
            told = [t for t in (places_exchanged(found[0]), *flipped(*found), gates_kept(found[0])) if t is not None]
            yield from (_finding(made, source, t) for t in told)
            if told:
                break


def _is_asked(one: Checkpoint) -> bool:
    """Whether it has kernels, or a recurrent layer."""
    return any(len(t.shape) > 2 or "weight_hh" in n or "recurrent_kernel" in n for n, t in one.weights.tensors.items())


def _gates(made: Checkpoint, source: Checkpoint, found: Exchanged) -> Finding:
    count, (name, *_) = len(found.names), found.names
    return RULE.finding(
        f"{name} of {made.path} is {found.source} of {PurePath(source.path).name}"
        f"{f' and {count - 1} more are so too' if count > 1 else ''}, transposed and nothing else: its gates stand in "
        f"the order {found.kind.removeprefix('gates as ')}: the blocks of gates were not put into the other order",
        Location(file=made.path, module=name), made.path,
        bearing=Bearing.CAUSE, measured={"kind": "gates", "name": name, "names": found.names[:20],
                                         "source": found.source, "form": "gates in the order of the other library"})


def _finding(made: Checkpoint, source: Checkpoint, found: Exchanged) -> Finding:
    if found.kind.startswith("gates"):
        return _gates(made, source, found)
    count = len(found.names)
    theirs = PurePath(source.path).name
    how = (f"those of {theirs} with their axes in the order {list(found.axes)} ({found.source}): height and width are "
           "exchanged in all of them, where libraries differ in the place of the channels alone"
           if found.kind == "exchanged" else
           f"those of {theirs} {found.kind}, axes in the order {list(found.axes)}: they are read "
           "from the other end, as no library stores them but one that convolves and does not correlate")
    return RULE.finding(
        f"{count} kernels of {made.path} ({', '.join(found.names[:3])}{', ...' if count > 3 else ''}) are {how}; which "
        "of the two files was made from the other, the values do not say",
        Location(file=made.path, module=found.names[0]), made.path,
        bearing=Bearing.CAUSE if found.kind == "exchanged" else Bearing.SIGN,
        severity=None if found.kind == "exchanged" else Severity.MEDIUM,
        measured={"kind": "axes" if found.kind == "exchanged" else "flipped", "name": found.names[0], "names":
                  found.names[:20], "source": found.source, "form": "height and width exchanged"
                  if found.kind == "exchanged" else "flipped"})
