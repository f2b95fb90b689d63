"""What makes runs repeatable: seeds, no workers, one thread, deterministic kernels. Each is tried as an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions import prepare_all
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.parting.compare import Origin
from traindx_tools.experiments.place import Prepared
from traindx_tools.live.digests import STEPS

PROBE = "digests"


@dataclass(frozen=True)
class Remedy:
    """One way to take chance out of a run."""

    name: str
    about: str
    changes: tuple[Change, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    likely: frozenset[Origin] = frozenset()
    """Partings of this origin usually go with it: it is tried first there."""


_ONE = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
REMEDIES = (
    Remedy("seeds", "random states of Python, NumPy and the framework, and the seed of hashes, are set at the start",
           (Change("seed", {"by": 0}),), {"PYTHONHASHSEED": "0"}, frozenset({"initial", "random", "order", "rows"})),
    Remedy("no workers", "batches are made in the training's own process", (Change("no-workers"),), {},
           frozenset({"order", "values", "rows"})),
    Remedy("one thread", "numerical libraries use one thread", (), dict.fromkeys(_ONE, "1"),
           frozenset({"kernel", "backward", "between", "loss"})),
    Remedy("deterministic", "kernels that give the same result twice, where there are any", (Change("deterministic"),),
           {}, frozenset({"kernel", "backward", "optimizer"})),
)


def recorded(part: Items, command: str, workspace: Path, steps: int = STEPS) -> Prepared:
    """The run with these remedies (by their number), recording digests of so many steps."""
    chosen = [REMEDIES[i] for i in sorted(part)]
    made = prepare_all([c for r in chosen for c in r.changes], command, workspace)
    environment = {**made.environment, **{k: v for r in chosen for k, v in r.environment.items()}}
    return replace(made, environment=environment, probes=(*made.probes, PROBE),
                   options={**made.options, PROBE: {"steps": steps}})


def order_for(origin: Origin) -> tuple[int, ...]:
    """The remedies, those first that usually help."""
    return tuple(sorted(range(len(REMEDIES)), key=lambda i: origin not in REMEDIES[i].likely))
