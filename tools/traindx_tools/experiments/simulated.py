"""Runs whose truth is known, for the judge to be judged: how often it calls nothing an effect, how large one it sees.

A simulated run is a curve that falls to a level, or an event that comes or does not. What differs from seed to seed,
what one record scatters and what the change does are told. The runs go through the same engine as real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traindx_tools.experiments.arms import MOST_REPEATS
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.experiment import Engine, Result
from traindx_tools.experiments.outcome import Number, Outcome
from traindx_tools.experiments.place import Enough, Prepared
from traindx_tools.experiments.trace import LIVE, Applied, Curve, Trace

Draw = Callable[[np.random.Generator], float]
"""What a seed makes of a run, in units of the spread: mean 0, standard deviation 1."""
DRAWS: dict[str, Draw] = {
    "normal": lambda r: float(r.standard_normal()),
    "heavy tails (t, 3)": lambda r: float(r.standard_t(3) / np.sqrt(3)),
    "skewed (exponential)": lambda r: float(r.standard_exponential() - 1),
    "two basins": lambda r: float(r.choice((-1.0, 1.0)) + 0.1 * r.standard_normal()),
}
CHANGE = Change("simulated")
SECONDS_PER_STEP = 0.01
PARTS = 12
"""Looks that are taken at a run while it goes on."""


@dataclass(frozen=True)
class World:
    """One experiment's truth."""

    number: int = 0
    """Makes this world's random numbers its own."""
    effect: float = 0.0
    """What the change does to the level, in units of the spread between seeds; of an event to its chance."""
    level: float = 1.0
    spread: float = 0.05
    """Standard deviation of the level from seed to seed, as a share of it."""
    noise: float = 0.02
    """Of one record."""
    steps: int = 120
    start: float = 2.0
    """How far above its level the curve begins: hardly at all where nothing is learned."""
    draw: Draw = DRAWS["normal"]
    chance: float | None = None
    """Of an event: how probable it is in a run; None for a curve without one."""


@dataclass
class SimulatedPlace:
    """Runs of a world. What was run is counted."""

    world: World
    runs: int = 0
    steps: int = 0

    workspace = Path("simulated")
    fingerprint = "simulated"

    def run(self, prepared: Prepared, enough: Enough, *, seconds: float) -> Trace:
        """One run from its start to its end or to `enough`."""
        changed, seed = bool(prepared.inside), int(prepared.options.get("seed", 0))
        self.runs += 1
        told = {str(c): Applied(1, "simulated") for c in prepared.inside}
        for steps, values in self._curve(changed, seed):
            known = {f"{LIVE}loss": Curve(steps, values)}
            done = len(steps) >= self.world.steps
            trace = Trace(Path("."), known, ended=done, exit_code=0 if done else None,
                          seconds=len(steps) * SECONDS_PER_STEP, changes=told)
            stop = not done and enough(trace)
            if done or stop:
                self.steps += len(steps)
                return trace if done else Trace(Path("."), known, stopped="decided", seconds=trace.seconds,
                                                changes=told)
        raise AssertionError("a simulated run has a last step")

    def _curve(self, changed: bool, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        world = self.world
        rng = np.random.default_rng([world.number, changed, seed])
        level = world.level * (1 + world.spread * (world.draw(rng) + (world.effect if changed else 0.0)))
        steps = np.arange(1.0, world.steps + 1)
        above = world.start * np.exp(-steps / (world.steps / 20))
        values = level + above + world.noise * rng.standard_normal(world.steps)
        if world.chance is not None and rng.random() < world.chance + (world.effect if changed else 0.0):
            values[int(rng.integers(5, world.steps // 4)):] = np.nan
        for count in (world.steps * part // PARTS for part in range(1, PARTS + 1)):
            yield steps[:count], values[:count]


def simulate(world: World, *, repeats: int = MOST_REPEATS, kind: Number = "level") -> tuple[Result, SimulatedPlace]:
    """One experiment in this world, through the engine. `kind`: what is measured of a curve."""
    place = SimulatedPlace(world)

    def prepare(change: Change, seed: int) -> Prepared:
        return Prepared("simulated", inside=() if change.is_control else (change,), options={"seed": seed})

    outcome = Outcome("nonfinite" if world.chance is not None else kind)
    return Engine(place, prepare).experiment(CHANGE, outcome, repeats=repeats), place
