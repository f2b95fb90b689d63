"""On request: keeps each step, and runs one that goes wrong again at once.

Once with every operation traced, which names the origin of what is not finite (T101), and with one change at a time,
which tells what takes part in it (X301, X302).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_torch.nonfinite.events import BUFFER, OUTSIDE, PARAMETER, Event, culprit
from traindx_tools.on_torch.nonfinite.places import Place, here
from traindx_tools.on_torch.nonfinite.reasons import reason_of
from traindx_tools.on_torch.nonfinite.statistics import all_finite, readable, span
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes.nonfinite_sentinel import plain, witnesses
from traindx_tools.on_torch.replaying.kept import Scenario
from traindx_tools.on_torch.replaying.replays import Replays
from traindx_tools.on_torch.rules import t101_nonfinite_origin, t102_nonfinite_seen
from traindx_tools.on_torch.snapshot.replay import KeptStep, Replay, Replayed
from traindx_tools.on_torch.snapshot.state import Copies
from traindx_tools.on_torch.snapshot.tape import Tape
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile
from traindx_tools.on_torch.stored.modules import Met
from traindx_tools.on_torch.world import world_size


class SnapshotProbe(TorchProbe):
    """Copies parameters and optimizer state before each step, and keeps its calls, to run it again if it goes wrong.

    It looks at every loss, gradient and parameter in the step itself, which waits for a device.
    """

    name = "snapshot"
    on_request = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.backwards = 0
        self._tape = Tape()
        self._returned: Callable[[Any], None] | None = None
        self._root: torch.Tensor | None = None
        self._batch_place: Place | None = None
        self._skipped = 0
        self._copies: dict[int, tuple[KeptStep, Copies]] = {}
        self._done = self._told = False
        self._met = Met()
        self._replays = Replays(scene, self._tape, self._met)
        watch_compile(self._tape.close)

    # ---- what is kept

    def before_batch(self) -> None:
        """A new step; what a DataLoader computes in this process is none of it."""
        self._tape.close()
        self._tape.clear()
        self._replays.keeper.cleared()

    def batch_given(self, batch: Any) -> None:
        """From here the loop's own operations are noted."""
        self._batch_place = here()
        self._note()

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The call is noted as a whole."""
        self._met.met(model)
        self._tape.close()
        self._returned = None if self._done else self._tape.called(model, args, kwargs)

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """So is what it returned."""
        if self._returned is not None:
            self._returned(output)
            self._returned = None
        self._note()

    def before_backward(self, loss: torch.Tensor) -> None:
        """Judges the loss."""
        self._tape.close()
        if self._done or self.scene.loss is None:
            return
        self._root = loss
        scenario = self._replays.loss(loss) if world_size() == 1 else None
        if not _finite([self.scene.loss]):
            self._search(lambda r: r.forward(self._tape, loss), scenario=scenario)

    def after_backward(self, loss: torch.Tensor) -> None:
        """Counts. Gradients are judged where the optimizer takes them: a scaler, or the program, may discard them."""
        self.backwards += 1

    def clipped(self) -> None:
        """Gradients were made smaller by the program."""
        self._replays.keeper.clipped()

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Judges the gradients, and keeps parameters and state."""
        self._tape.close()
        held = [p for group in optimizer.param_groups for p in group["params"]]
        self._judge_gradients(held)
        if not self._done and world_size() == 1:
            self._keep(optimizer, held)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Judges the parameters. A new step begins."""
        kept = self._copies.get(id(optimizer))
        if kept is not None and not self._done and not _finite(kept[0].parameters):
            self._search(lambda r: r.step(kept[0]), before=-1, scenario=self._replays.seen("parameters"))
        self._skipped = 0
        self._end_of_step()

    def scaler_updated(self, scaler: Any) -> None:
        """The step has ended, also where the scaler skipped it: once too often, and the gradients are to blame."""
        self._skipped += 1
        root = self._root
        if self._skipped > t102_nonfinite_seen.SKIPPED and root is not None and not self._done:
            self._search(lambda r: r.backward(self._tape, root), scenario=self._replays.seen("gradient"))
        self._end_of_step()

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """What waits to be said of a jump is said: the run did not go on from it."""
        self._replays.finish(failed=True)
        return ()

    def finish(self) -> Iterable[Finding]:
        """Takes the mode off the stack."""
        self._replays.finish(failed=False)
        self._stop()
        return ()

    def _end_of_step(self) -> None:
        self._root = None
        self._replays.keeper.stepped()
        self._tape.clear()
        self._note()

    def _note(self) -> None:
        if not self._done and world_size() == 1 and not compiles():
            self._tape.open()

    def _keep(self, optimizer: torch.optim.Optimizer, held: Sequence[torch.Tensor]) -> None:
        copies = self._copies[id(optimizer)][1] if id(optimizer) in self._copies else Copies()
        state = [dict(optimizer.state.get(p, {})) for p in held]
        places = [(i, k) for i, s in enumerate(state) for k, v in s.items() if isinstance(v, torch.Tensor)]
        taken = copies.take([*held, *(state[i][k] for i, k in places)])
        for (index, key), value in zip(places, taken[len(held):], strict=True):
            state[index][key] = value
        groups = [dict(g) for g in optimizer.param_groups]
        kept = KeptStep(optimizer, groups, held, taken[: len(held)], state)
        self._copies[id(optimizer)] = kept, copies
        self._replays.keeper.kept(kept)
        if not self._told and self.scene.step == 1:
            self._told = True
            held_bytes = sum(c.bytes for _, c in self._copies.values()) + self._replays.keeper.bytes
            self.scene.recorder.mark("snapshot", bytes=held_bytes,
                                     parameters=sum(p.numel() * p.element_size() for p in held))

    # ---- what went wrong

    def _judge_gradients(self, parameters: Iterable[torch.Tensor]) -> None:
        root = self._root
        if self._done or root is None:
            return
        held = [p.grad for p in parameters if p.grad is not None]
        scenario = self._replays.gradients([plain(g.detach()) for g in held]) if world_size() == 1 else None
        if not _finite(held):
            self._search(lambda r: r.backward(self._tape, root), scenario=scenario)

    def _search(self, attempt: Callable[[Replay], Replayed], before: int = 0, scenario: Scenario | None = None) -> None:
        """Names the origin, or says why the step cannot be run again; in either case this was the only time."""
        try:
            if world_size() > 1:
                raise NotReplayable("it is one of several processes, which wait for each other")
            found = attempt(Replay(self.scene, self._batch_place))
            event = culprit(found.events)
            if event is None:
                raise NotReplayable("where the values came from was not seen")
            if self.scene.options.get("searched") and self._was_there(event):
                raise NotReplayable("the value was there before it; a second pass sees where it came from")
            origin = t101_nonfinite_origin.Origin(
                event, reason_of(event), found.seen_in, self.scene.step + 1 + before, self.backwards,
                self.scene.recorder.rank, found.others, compiles() and not before)
            for finding in t101_nonfinite_origin.check(origin):
                self.scene.recorder.finding(finding)
                say(finding.statement)
        except NotReplayable as why:
            self.scene.recorder.mark("snapshot", failed=str(why)[:400])
            say(f"step {self.scene.step + 1 + before} cannot be run again from its snapshot: {why}")
        finally:
            self._stop()
        self._replays.study(scenario)

    def _was_there(self, event: Event) -> bool:
        return event.kind in (PARAMETER, BUFFER) or (event.kind == OUTSIDE and self.scene.step == 0)

    def let_go(self) -> None:
        """Keeps nothing of the step any more."""
        self._stop()

    def _stop(self) -> None:
        self._done = True
        self._tape.close()
        self._tape.clear()
        self._copies.clear()
        self._replays.keeper.let_go()
        self._root = self._returned = None


def _finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether every value is; waits for the device. A sum that overflows is looked at more closely."""
    held = [plain(t.detach()) for t in tensors]
    with torch.no_grad():
        if all(bool(torch.isfinite(w)) for w in witnesses(t for t in held if t.is_floating_point())):
            return True
    return all(all_finite(span(v)) for t in held for v in [readable(t)] if v is not None)
