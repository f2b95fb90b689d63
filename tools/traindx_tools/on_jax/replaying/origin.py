"""The equation that made the first value of a kept call that is not finite: the call evaluated, as J101 says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.finding import Finding
from traindx_tools.on_jax.nonfinite.marks import ARGUMENT
from traindx_tools.on_jax.nonfinite.origin import search
from traindx_tools.on_jax.replaying.kept import Scenario
from traindx_tools.on_jax.rules import j101_nonfinite_origin


def origin_of(scenario: Scenario, rank: int = 0) -> Iterator[Finding]:
    """J101, where the loss or the state became what it is in this call; an argument that was so before is none."""
    traced = replace(scenario.function.traced, values=scenario.now)
    wanted = [scenario.function.loss] if scenario.symptom.kind == "loss" else list(scenario.fed)
    found = search(traced, wanted)
    state = {traced.inputs[i] for i in scenario.state}
    if not found.origins:
        return
    first = found.origins[0]
    if first.candidate.kind == ARGUMENT and first.candidate.name in state:
        return  # the update before it made that
    yield from j101_nonfinite_origin.check(replace(first, step=scenario.symptom.step, rank=rank))
