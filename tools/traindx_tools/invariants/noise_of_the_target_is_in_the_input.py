"""The noise that a loss asks for is the noise in the input.

A denoiser predicts the noise that was added to its input. A function that adds noise often draws it itself where none
is passed (`q_sample(x, t, noise=None)`), or the loss asks for a fresh draw: the input holds one draw, the target is
another. The two are independent, the best prediction is 0, and the loss stays at the variance of the noise from the
first step to the last.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("recipes", ("C272",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every loss whose target is a draw."""
    for call in program.loss_calls:
        target = call.arguments.get("target")
        prediction = call.arguments.get("input")
        if target is None or prediction is None or not target.draw:
            continue
        others = sorted(prediction.mixed - {target.draw})
        if others and target.draw not in prediction.noise and call.trains:
            yield Breach(
                "C272",
                f"{target.text}, drawn at {target.draw}, only enters the loss at {call.at}: the input of the "
                "prediction is "
                f"made with another draw, at {others[0]}",
                call.at, Known.DERIVED, {"kind": "other draw", "target_drawn": target.draw, "input_drawn": others[0]})
