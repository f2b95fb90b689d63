"""The layers that a module keeps are registered with it.

A module registers what is assigned to it directly or held in `nn.ModuleList`, `nn.ModuleDict` or `nn.Sequential`.
Layers in a Python list run in the forward pass, but `parameters()`, `to(device)`, `state_dict()`, `train()` and
`eval()` do not see them: they are never trained, moved or saved. The same holds of layers inside an object whose class
is no module, of a tensor that is meant to learn and is no Parameter (arithmetic on a Parameter gives a plain tensor),
and of a layer that each forward pass makes anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.entities import Collection
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("ownership", ("C143",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every list or dict of layers that a module keeps."""
    for kept in program.collections:
        if kept.kind != "container":
            yield Breach("C143", _said(kept), kept.at, measured={"kind": kept.kind.partition(" ")[0],
                                                                "attribute": kept.attribute})
        elif not kept.registered:
            yield Breach(
                "C143",
                f"{kept.layer} layers are kept in the plain container self.{kept.attribute} at {kept.at}, which the "
                "module does not register: parameters() leaves them out and the optimizer never updates them",
                kept.at, measured={"kind": "unregistered", "attribute": kept.attribute},
                remedy=Remedy("register", Act(Moment.PARAMETERS, kept.at, origin=kept.origin)))


def _said(kept: Collection) -> str:
    """What is wrong with what is no list of layers."""
    if kept.kind == "pass":
        return (f"{kept.layer} is made at {kept.at} in each forward pass: it has new random weights every time, and no "
                "optimizer holds them")
    never = "parameters() leaves it out and no optimizer updates it"
    if kept.kind == "tensor":
        return f"self.{kept.attribute} at {kept.at} is {kept.layer} and no parameter of the module: {never}"
    if kept.kind == "closure":
        return (f"self.{kept.attribute} at {kept.at} is a function that keeps {kept.layer} in its closure, which is no "
                f"parameter of the module: {never}")
    return (f"self.{kept.attribute} at {kept.at} is an {kept.kind}, which is no module, and holds layers "
            f"({kept.layer}): parameters() leaves them out and no optimizer updates them")
