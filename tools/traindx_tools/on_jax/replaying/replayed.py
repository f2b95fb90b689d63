"""A stored call in a process of its program: run as it is, with each change, and looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.experiments.replaying.study import Study
from traindx_tools.experiments.replaying.trying import NotReplayable, tried_on
from traindx_tools.finding import Finding
from traindx_tools.live.step_file import Stored
from traindx_tools.on_jax.paths.marked import norms_of_marked
from traindx_tools.on_jax.replaying.kept import Function, Scenario
from traindx_tools.on_jax.replaying.origin import origin_of
from traindx_tools.on_jax.replaying.stored import bring
from traindx_tools.on_jax.replaying.trials import JaxTrials

SHARE = 0.8
"""Of the time, for the changes."""
CLOSURE = ("; values that the function closes over are those of this start of the program: where they change while it "
           "trains, the step cannot be replayed")


@dataclass
class Outcome:
    """What a stored call came to. `why`: why it cannot be replayed, "" where it was."""

    why: str = ""
    study: Study | None = None
    origin: str = ""
    gradients: list[dict[str, Any]] = field(default_factory=list)
    """Norms by parameter, as {"parameter", "gradient"}."""
    findings: list[Finding] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """For a file, in the form that those of torch have too."""
        return {"why": self.why, "study": None if self.study is None else self.study.to_json(),
                "observed": {"outputs": [], "gradients": list(self.gradients)}, "origin": self.origin, "changed": [],
                "remarks": list(self.remarks)}


def replay(stored: Stored, function: Function, seconds: float, rank: int = 0) -> Outcome:
    """Everything that one call can tell. Raises NotThis where the function is another one."""
    import jax

    scenario: Scenario = bring(stored, function)
    made = Outcome()
    if stored.told["jax"] != jax.__version__:
        made.remarks.append(f"it was captured with jax {stored.told['jax']} and is replayed with {jax.__version__}")
    try:
        made.study = tried_on(JaxTrials(scenario), scenario.symptom, rank, SHARE * seconds)
        if made.study is None:
            made.why = "run again as it is, the step does not show what was seen of it"
    except NotReplayable as why:
        made.why = str(why) + (CLOSURE if "when it is run again" in str(why) and function.traced.jaxpr.consts else "")
    if made.study is not None:
        made.gradients = _gradients(scenario)
    if made.study is not None and not scenario.symptom.finite:
        try:
            made.findings += list(origin_of(scenario, rank))
        except Exception as error:  # noqa: BLE001 - what cannot be evaluated by itself costs the origin alone
            made.origin = f"not found: {type(error).__name__}: {error}"
    return made


def _gradients(scenario: Scenario) -> list[dict[str, Any]]:
    """The norm of each parameter's gradient in the call; a number that is not finite as text."""
    function = scenario.function
    if not function.gradients:
        return []
    norms = np.asarray(norms_of_marked(function.traced.jaxpr)(*scenario.now), dtype=np.float64)
    if len(norms) != len(function.gradients):
        return []
    return [{"parameter": n, "gradient": float(g) if math.isfinite(g) else str(float(g))}
            for n, g in zip(function.gradients, norms.tolist(), strict=True)]
