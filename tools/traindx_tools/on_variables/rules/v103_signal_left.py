"""A noise schedule leaves a part of the signal at its last step, where sampling begins with pure noise.

Betas from 0.0001 to 0.02 belong to 1,000 steps; with 100 a third of the signal's variance is left. The network then has
never seen pure noise at that step, and samples keep the mean that the noise pretends to have. Usual schedules leave
below 0.005 (0.00004 of DDPM's, 0.0047 of latent diffusion's).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.filling import line_that_makes
from traindx_tools.on_variables.noise_schedule import NoiseSchedule
from traindx_tools.rules import Rule, Threshold

LEFT, USUAL = 0.05, 0.005
SOURCE = "variables of the running program"

RULE = Rule(
    id="V103",
    name="signal-left",
    title="The noise schedule does not end in noise",
    severity=Severity.MEDIUM,
    sees="arrays of which one is the running product of what the other leaves, named as noise schedules are",
    matters="sampling begins with inputs that the network has never seen at the last step",
    alike=("sampling that begins with noised data on purpose (editing, partial noise)",
           "survival curves and discounts: they are called otherwise"),
    confirm=("print(alphas_cumprod[-1])", "compare mean and spread of samples with those of the data"),
    thresholds={"left": Threshold(LEFT, "of the signal's variance at the last step", "ten times the usual schedules'")},
)


def check(seen: Iterable[NoiseSchedule], rank: int = 0) -> Iterator[Finding]:
    """One finding for each schedule that leaves so much; at most two."""
    told = 0
    for one in seen:
        if not LEFT <= one.left < 1 or told == 2:
            continue
        told += 1
        needed = round(one.steps * math.log(USUAL) / math.log(one.left), -1)
        name = one.path.split(".")[0].split("[")[0]
        yield RULE.finding(
            f"`{one.path}` ends at {one.left:.3g} after {one.steps} steps (noise of {one.first:.3g} to {one.last:.3g} "
            f"a step): {100 * one.left:.0f} % of the signal's variance is left at the last step, where sampling from "
            f"pure noise begins; noise of this size needs about {needed:,.0f} steps",
            Location(file=one.file, line=line_that_makes(one.file, "", name), rank=rank), SOURCE,
            bearing=Bearing.CAUSE,
            measured={"variable": one.path, "left": one.left, "steps": one.steps, "kind": "schedule"})
