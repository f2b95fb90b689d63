"""The layers that a module keeps are registered with it.

A module registers what is assigned to it directly or held in `nn.ModuleList`, `nn.ModuleDict` or `nn.Sequential`.
Layers in a Python list run in the forward pass, but `parameters()`, `to(device)`, `state_dict()`, `train()` and
`eval()` do not see them: they are never trained, moved or saved.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy
from traindx_tools.invariants.pages import pages
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("ownership", ("C143",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every list or dict of layers that a module keeps."""
    for kept in program.collections:
        if not kept.registered:
            yield Breach(
                "C143",
                f"{kept.layer} layers are kept in the plain container self.{kept.attribute} at {kept.at}, which the "
                "module does not register: parameters() leaves them out and the optimizer never updates them",
                kept.at, measured={"kind": "unregistered", "attribute": kept.attribute},
                remedy=Remedy("register", Act(Moment.PARAMETERS, kept.at, origin=kept.origin)))
