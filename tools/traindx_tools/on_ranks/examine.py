"""Everything that the records of all ranks say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_ranks.records import replica_of
from traindx_tools.on_ranks.replicas import jobs
from traindx_tools.on_ranks.rules import r101_gradients_differ, r102_parameters_differ


def compared(told: Iterable[Sequence[Mapping[str, Any]]]) -> list[Finding]:
    """Findings over the records of kind "replica" of each process of one run."""
    replicas = [r for r in map(replica_of, told) if r is not None]
    rules = (r101_gradients_differ, r102_parameters_differ)
    return [f for job in jobs(replicas) for rule in rules for f in rule.check(job)]
