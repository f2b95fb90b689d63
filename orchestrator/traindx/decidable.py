"""What could be decided by experiments on a run: the changes of the catalog that have something to take hold of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from traindx_tools.catalog.decisions import load_decisions
from traindx_tools.experiments.interventions import intervention
from traindx_tools.experiments.interventions.intervention import ANY, JAX, TORCH
from traindx_tools.experiments.plan import Decision

if TYPE_CHECKING:
    from traindx.diagnose import Report

_FRAMEWORKS = {
    TORCH: r"^\s*(?:import|from)\s+(?:torch|lightning|pytorch_lightning|transformers|accelerate|peft|diffusers|timm)\b",
    JAX: r"^\s*(?:import|from)\s+(?:jax|flax|optax|equinox|haiku)\b",
}
"""What a program imports where the changes of a framework can take hold."""

MOST_READ = 2 * 2**20
"""Characters of the run's code that are looked through for what a change needs."""


def fitting_decisions(report: Report) -> Iterator[Decision]:
    """The decisions of the catalog whose change has something to take hold of in this run's code."""
    text = _code(report)
    here = {name for name, pattern in _FRAMEWORKS.items() if re.search(pattern, text, re.MULTILINE)} | {ANY}
    for decision in load_decisions():
        held = here.intersection(intervention(decision.change.name).frameworks)
        if held and (not decision.needs or re.search(decision.needs, text)):
            yield decision


def commands(report: Report, modes: Sequence[str], training: str, target: str) -> Iterator[str]:
    """Commands of the experiments that decide these modes and were not made yet, those of the first mode first.

    `training`: the command that trains, quoted; `target`: the path that is diagnosed, quoted.
    """
    from traindx.diagnose import typed

    made = {str(f.measured.get("change")) for f in report.seen.findings if f.rule[0] == "X"}
    decisions = list(fitting_decisions(report))
    for mode in modes:
        for decision in decisions:
            if mode in decision.removes and str(decision.change) not in made:
                yield f"traindx experiment {target} --run {training} --change {typed([str(decision.change)])}"


def _code(report: Report) -> str:
    """The text of the run's own Python files, bounded."""
    out: list[str] = []
    left = MOST_READ
    for path in _files(report):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")[:left]
        except OSError:
            continue
        out.append(text)
        left -= len(text)
        if left <= 0:
            break
    return "\n".join(out)


def _files(report: Report) -> Iterable[Path]:
    return (Path(c) for c in report.seen.code if str(c).endswith((".py", ".yaml", ".yml", ".toml", ".json")))
