"""An output layer that is made here is trained.

Freezing by `model.parameters()` after the head was replaced, or by `self.parameters()` in a method, also freezes the
head, which was made here and holds random numbers. What still trains (a norm, a temperature, a bias) cannot change
which class is the largest. Where weights are loaded from a file, the layer may have been trained before.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.entities import OutputLayer
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("ownership", ("C153",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every output layer of a model that an optimizer was given."""
    made = [a for run in program.runs for a, _ in run.acts(Moment.MADE)] + program.before
    trained = frozenset(i for a in made for o in a.optimizers for g in o.given for i in g.inside)
    for layer in program.output_layers:
        if layer.frozen is not None and layer.module in trained and not layer.loaded and not _had_steps(program, layer):
            yield Breach(
                "C153",
                f"The output layer {layer.kind} made at {layer.made} is frozen at {layer.frozen} together with the "
                "rest of its model: it stays at its random initialisation",
                layer.frozen, measured={"kind": "head"},
                remedy=Remedy("thaw", Act(Moment.PARAMETERS, layer.frozen, origin=layer.origin)))


def _had_steps(program: Program, layer: OutputLayer) -> bool:
    """Whether an optimizer steps before the layer is frozen: what was trained may rest."""
    for run in program.runs:
        stepped = False
        for act, _ in run.acts(Moment.STEP, Moment.PARAMETERS):
            stepped |= act.moment is Moment.STEP
            if stepped and act.moment is Moment.PARAMETERS and str(act.at) == str(layer.frozen):
                return True
    return False
