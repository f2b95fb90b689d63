"""Always on: what steps report by `measures.report`, written as metrics; codebooks that stay collapsed (J801)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax.measures.memory import in_process
from traindx_tools.on_jax.measures.reporting import TRACED, WAITING, Report
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j801_codebook_collapse

PERPLEXITY, SIZE = "codebook_perplexity", "codebook_size"


class Reports(JaxProbe):
    """Empties the queue of reports after a call; costs one comparison where there is none."""

    name = "reports"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._low: dict[str, int] = {}
        """Reports in a row in which a codebook was collapsed, by the end of its name."""
        WAITING.clear()
        TRACED.clear()

    def after_call(self, call: Call) -> None:
        """Writes what has arrived."""
        while WAITING and _ready(WAITING[0]):
            self._write(*_numbers(WAITING.popleft()))

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        self.scene.recorder.metrics(step, {**values, **in_process()})
        for name, perplexity in values.items():
            if name.startswith(PERPLEXITY) and math.isfinite(perplexity):
                which = name[len(PERPLEXITY):]
                self._judge(which, perplexity, values.get(SIZE + which, 0.0), step)

    def _judge(self, which: str, perplexity: float, size: float, step: int) -> None:
        low = perplexity < j801_codebook_collapse.SHARE * size
        self._low[which] = self._low.get(which, 0) + 1 if low else 0
        for finding in j801_codebook_collapse.check(f"codebook{which}", perplexity, size, step, self._low[which]):
            self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        """Waits for what is on its way and writes it."""
        import jax

        if TRACED:
            wait: Any = jax.effects_barrier
            wait()
        while WAITING:
            self._write(*_numbers(WAITING.popleft()))
        return ()


def _ready(report: Report) -> bool:
    """Whether its numbers can be read without waiting (NumPy arrays always can)."""
    return all(getattr(array, "is_ready", lambda: True)() for array in report[1:])


def _numbers(report: Report) -> tuple[int, dict[str, float]]:
    names, at, numbers = report
    return int(at), dict(zip(names, map(float, numbers), strict=True))
