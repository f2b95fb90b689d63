"""Calls the probes of a process at each moment; one that raises is switched off and never called again."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.registry import made_for

MOMENTS = ("replicated", "reduced", "file_read", "file_written", "state_loaded", "state_given", "scheduled", "watched",
           "cleared", "clipped", "loss_computed", "looked_up", "model_found", "optimizer_found", "before_batch",
           "rows_asked", "rows_read", "collated", "rows_collated", "converted", "batch_given",
           "before_forward", "after_forward", "before_backward", "after_backward", "before_step", "after_step",
           "scaler_updated")  # fmt: skip

IN_A_STEP = frozenset(MOMENTS[-7:-1])
"""Those that a resting probe is spared."""
REST = 16
"""Steps between two looks for probes that are done or begin to rest."""
Calls = dict[str, list[tuple[TorchProbe, Callable[..., None]]]]


class Moments:
    """The probes that are still on, and for each moment those that do something there.

    Once the training is settled, most probes look at one step in a hundred: between two looks the moments of a step are
    told only to those that want every one, so that a short step does not pay for a dozen calls that do nothing.
    """

    def __init__(self, probes: Sequence[TorchProbe], scene: Scene) -> None:
        self.probes, self._scene = list(probes), scene
        self.thread = threading.get_ident()
        """The one whose moments are told."""
        self.busy = False
        """A probe is at work: what it calls itself is no moment of the training."""
        self._switched_off: list[type[TorchProbe]] = []
        self._all: Calls = {}
        self._calls: Calls = {}
        """What is told now."""
        self._until = 0
        """The step after which it is seen anew who rests."""
        self._sort()

    def wanted(self, moment: str) -> bool:
        """Whether any probe does something at this moment."""
        return bool(self._all[moment])

    def tell(self, moment: str, *args: Any) -> None:
        """Calls every probe that listens to the moment, in order."""
        if self.busy or threading.get_ident() != self.thread:
            return
        calls = self._calls[moment]
        if calls:
            self.busy = True
            try:
                for probe, call in calls:
                    try:
                        call(*args)
                    except Exception as error:  # noqa: BLE001 - a fault of a probe must not become the training's
                        self._switch_off(probe, moment, error)
            finally:
                self.busy = False
        if moment == "after_step" and self._scene.step >= self._until:
            self._rest()

    def wake(self) -> None:
        """Until the next step ends, every probe is told every moment: an evaluation is no step to rest in."""
        self._calls, self._until = self._all, 0

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
        self._switched_off.append(type(probe))
        self._sort()
        with contextlib.suppress(Exception):  # a fault of a probe must not become the training's
            probe.let_go()

    def revived(self) -> list[TorchProbe]:
        """New ones in place of the probes that raised, told every moment from here on."""
        kinds, self._switched_off = self._switched_off, []
        made = made_for(self._scene, kinds)
        self.probes += made
        if made:
            self._sort()
        return made

    def tell_one(self, probe: TorchProbe, moment: str, *args: Any) -> None:
        """Calls one probe alone: it came later than the others and missed this."""
        if threading.get_ident() != self.thread:
            return
        self.busy = True
        try:
            getattr(probe, moment)(*args)
        except Exception as error:  # noqa: BLE001 - a fault of a probe must not become the training's
            self._switch_off(probe, moment, error)
        finally:
            self.busy = False

    def off(self) -> None:
        """Calls no probe any more, not even at the end."""
        gone, self.probes = self.probes, []
        self._sort()
        for probe in gone if threading.get_ident() == self.thread else ():  # modes and hooks belong to their thread
            with contextlib.suppress(Exception):  # see `_switch_off`
                probe.let_go()

    def _sort(self) -> None:
        self._all = {m: [(p, getattr(p, m)) for p in self.probes
                         if not p.done and getattr(type(p), m) is not getattr(TorchProbe, m)]
                     for m in MOMENTS}
        self.wake()

    def _rest(self) -> None:
        """Who has nothing to do in the next steps is not called in them."""
        if any(p.done for p, _ in self._all["after_step"]):
            self._sort()
        step, resting = self._scene.step, set()
        self._calls, self._until = self._all, step + REST
        if not self._scene.settled:
            return
        for probe in tuple(self.probes):
            following = self._next_look(probe)
            if following:
                self._until = min(self._until, max(following, step + 1))
            if following > step:
                resting.add(id(probe))
        self._calls = {m: [c for c in calls if id(c[0]) not in resting] if m in IN_A_STEP else calls
                       for m, calls in self._all.items()}

    def _next_look(self, probe: TorchProbe) -> int:
        try:
            return probe.next_look()
        except Exception as error:  # noqa: BLE001 - see above
            self._switch_off(probe, "next_look", error)
            return 0


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "?"
    code = trace.tb_frame.f_code
    return f"{sys.intern(code.co_filename).rpartition('/')[2]}:{trace.tb_lineno}"
