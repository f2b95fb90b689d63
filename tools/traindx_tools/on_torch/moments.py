"""Calls the probes of a process at each moment; one that raises is switched off and never called again."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_torch.probe import TorchProbe

MOMENTS = ("model_found", "optimizer_found", "before_batch", "batch_given", "before_forward", "after_forward",
           "before_backward", "after_backward", "before_step", "after_step", "scaler_updated")  # fmt: skip

REST = 16
"""Steps between two looks for probes that are done."""


class Moments:
    """The probes that are still on, and for each moment those that do something there."""

    def __init__(self, probes: Sequence[TorchProbe]) -> None:
        self.probes = list(probes)
        self.thread = threading.get_ident()
        """The one whose moments are told."""
        self.busy = False
        """A probe is at work: what it calls itself is no moment of the training."""
        self._steps = 0
        self._calls: dict[str, list[tuple[TorchProbe, Callable[..., None]]]] = {}
        self._sort()

    def wanted(self, moment: str) -> bool:
        """Whether any probe does something at this moment."""
        return bool(self._calls[moment])

    def tell(self, moment: str, *args: Any) -> None:
        """Calls every probe that listens to the moment, in order."""
        calls = self._calls[moment]
        if not calls or self.busy or threading.get_ident() != self.thread:
            return
        self.busy = True
        try:
            for probe, call in calls:
                try:
                    call(*args)
                except Exception as error:  # noqa: BLE001 - a fault of a probe must not become the training's
                    self._switch_off(probe, moment, error)
        finally:
            self.busy = False
        if moment == "after_step":
            self._steps += 1
            if self._steps % REST == 0 and any(p.done for p, _ in self._calls[moment]):
                self._sort()

    def findings_of(self, moment: str, *args: Any) -> Iterable[Finding]:
        """What the probes return at the end ("failed", "finish")."""
        for probe in tuple(self.probes):
            try:
                yield from getattr(probe, moment)(*args)
            except Exception as error:  # noqa: BLE001 - see above
                self._switch_off(probe, moment, error)

    def _switch_off(self, probe: TorchProbe, moment: str, error: Exception) -> None:
        say(f"the probe {probe.name or type(probe).__name__} is off from here on: {type(error).__name__} in {moment}: "
            f"{error} ({_place(error)}); the training goes on")
        self.probes = [p for p in self.probes if p is not probe]
        self._sort()

    def off(self) -> None:
        """Calls no probe any more, not even at the end."""
        self.probes = []
        self._sort()

    def _sort(self) -> None:
        self._calls = {m: [(p, getattr(p, m)) for p in self.probes
                           if not p.done and getattr(type(p), m) is not getattr(TorchProbe, m)]
                       for m in MOMENTS}


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "?"
    code = trace.tb_frame.f_code
    return f"{sys.intern(code.co_filename).rpartition('/')[2]}:{trace.tb_lineno}"
