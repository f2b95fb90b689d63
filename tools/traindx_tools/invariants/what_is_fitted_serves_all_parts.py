"""What is fitted on the training rows serves the held-out rows too.

A scaler, an encoder or a vocabulary that is fitted on the training data is part of the model: mean and deviation, the
numbers of labels, the axes of a PCA. Fitted once more on held-out data they are others: a level shift is taken out of
inputs that the model should see it in, and label 3 is another label. `{name: i for i, name in enumerate(sorted(set(
names)))}` and `ids.setdefault(name, len(ids))` number what occurs: in a function or data set that is given the training
rows and the held-out rows, each part gets a numbering of its own. Training is perfect, validation far off with a rising
loss, and it looks like overfitting.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.parts import PartFit
from traindx_tools.program.program import Program

RULES = pages("data", ("C274", "C286"))


def check(program: Program) -> Iterator[Breach]:
    """Look at all that is fitted on training rows and on held-out rows in one place."""
    groups: dict[str, list[PartFit]] = {}
    for one in program.part_fits:
        groups.setdefault(one.group, []).append(one)
    for same in groups.values():
        train = next((f for f in same if f.part == "train"), None)
        later = next((f for f in same if f.part == "held"), None)
        if train is None or later is None or (not later.kind and later.made == train.made):
            continue
        if later.kind:
            yield Breach("C274", f"{later.text} at {later.at} fits a {later.kind} on held-out data, although one was "
                         f"fitted on the training data at {train.at}: the two parts come in different units", later.at,
                         measured={"kind": "fitted twice" if train.at != later.at else "fitted in a function"})
        else:
            yield Breach("C286", f"{later.text} at {later.at} numbers the names of whatever is given, and is given the "
                         "held-out part as well: class ids are built separately per split, so the same id means "
                         "another class", later.at, measured={"kind": "function"})
