"""Tries every change on one scenario of a torch program, on copies that the program cannot tell of afterwards."""

from __future__ import annotations

from traindx_tools.experiments.replaying.study import Study
from traindx_tools.experiments.replaying.trying import SECONDS, tried_on
from traindx_tools.on_torch.replaying.kept import Scenario
from traindx_tools.on_torch.replaying.quiet import unnoticed_by
from traindx_tools.on_torch.replaying.trials import Trials


def study(scenario: Scenario, rank: int = 0, seconds: float = SECONDS) -> Study | None:
    """What each change does to the symptom; None where a loss has risen and the last update has not raised it.

    Raises NotReplayable where the step is not the program's own when it is run again.
    """
    models = {id(m): m for p in (scenario.passes, scenario.update.passes if scenario.update else None)
              if p is not None for m in p.models()}
    with unnoticed_by(list(models.values())) as set_back:
        return tried_on(Trials(scenario, set_back), scenario.symptom, rank, seconds)
