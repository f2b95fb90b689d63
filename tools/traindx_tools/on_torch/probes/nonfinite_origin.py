"""In a pass with tracing: arms the tracer around the step that goes wrong and names the operation (T101)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_torch.nonfinite.eager import EagerCompile
from traindx_tools.on_torch.nonfinite.events import BATCH, BUFFER, OUTSIDE, PARAMETER, Event, culprit, joined
from traindx_tools.on_torch.nonfinite.named import named_parts
from traindx_tools.on_torch.nonfinite.reasons import reason_of
from traindx_tools.on_torch.nonfinite.statistics import all_finite, readable, span
from traindx_tools.on_torch.nonfinite.tracer import Tracer
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t101_nonfinite_origin, t102_nonfinite_seen, t103_from_another_rank
from traindx_tools.on_torch.world import world_size


class NonfiniteOrigin(TorchProbe):
    """Traces every operation from a backward pass on (option `arm`) until a value is not finite; runs alone."""

    name = "nonfinite-origin"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.backwards = 0
        self._arm_at = int(scene.options.get("arm", 0))
        self._phase = "forward"
        self._modules: list[str] = []
        self._handles: list[Any] = []
        self._done = self._announced = False
        self.tracer: Tracer | None = None
        self._compile = EagerCompile()
        if self._arm_at == 0:
            self._arm()

    # ---- the moments

    def model_found(self, model: torch.nn.Module) -> None:
        """Knows its parameters and buffers by name."""
        if self.tracer is not None:
            self._name(self.tracer)

    def batch_given(self, batch: Any) -> None:
        """Looks whether the data itself is finite."""
        self._phase = "forward"
        self._met(batch, "batch")

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Looks at the arguments where nobody saw them being made."""
        self._phase = "forward"
        self._met((*args, *kwargs.values()), "an argument", OUTSIDE)

    def before_backward(self, loss: torch.Tensor) -> None:
        """Judges the loss."""
        if self._done or self.scene.loss is None:
            return
        if self.tracer is not None and not self._announced:
            self._announced = True  # now the rank is known, and the runner knows for whom to wait
            self.scene.recorder.mark("armed", backward=self.backwards)
        self._judge([("the loss", self.scene.loss)])
        self._phase = "backward"

    def after_backward(self, loss: torch.Tensor) -> None:
        """Counts, and arms the tracer when its time has come."""
        self.backwards += 1
        self._phase = "gradients"
        if self.backwards == self._arm_at and not self._done:
            self._arm()
        elif self.scene.options.get("scaled_gradients"):
            self._judge(self._gradients())

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Judges the gradients."""
        self._judge(self._gradients())
        self._phase = "optimizer"

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Judges the parameters."""
        self._phase = "forward"
        if self.tracer is not None:
            self._judge((f"the parameter `{path}`", p) for path, p in self._parameters())

    def finish(self) -> Iterable[Finding]:
        """Takes the mode off the stack."""
        self._disarm()
        self._compile.undo()
        return ()

    def let_go(self) -> None:
        """As at the end."""
        self._disarm()
        self._compile.undo()

    # ---- arming

    def _arm(self) -> None:
        self.tracer = Tracer(lambda: self._modules[-1] if self._modules else None, lambda: self._phase)
        self._name(self.tracer)
        hooks = (torch_module.register_module_forward_pre_hook(self._enter),
                 torch_module.register_module_forward_hook(self._leave, always_call=True))
        self._handles = list(hooks)
        self.tracer.__enter__()  # type: ignore[no-untyped-call]

    def _disarm(self) -> None:
        self._done = True
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self.tracer is not None:
            self.tracer.leave()

    def _name(self, tracer: Tracer) -> None:
        for model in self.scene.models:
            held = [(self.scene.parameter_paths.get(id(p), n), v) for n, p in model.named_parameters()
                    for v in [readable(p)] if v is not None]
            tracer.sources.name(held, PARAMETER)
            tracer.sources.name(((n, b) for n, b in model.named_buffers() if readable(b) is not None), BUFFER)
            for _, values in held:
                tracer.met(values, PARAMETER)

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        self._modules.append(self.scene.module_paths.get(id(module)) or type(module).__name__)

    def _leave(self, *_: Any) -> None:
        if self._modules:
            self._modules.pop()

    # ---- judging

    def _met(self, value: Any, name: str, kind: str = BATCH) -> None:
        if self.tracer is None or self._done:
            return
        for path, tensor in named_parts(value, name):
            self.tracer.met(tensor, kind, path)

    def _parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        for optimizer in self.scene.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    yield self.scene.parameter_paths.get(id(parameter), "?"), parameter

    def _gradients(self) -> Iterator[tuple[str, torch.Tensor]]:
        if self.tracer is not None:
            for path, parameter in self._parameters():
                if parameter.grad is not None:
                    yield f"the gradient of `{path}`", parameter.grad

    def _judge(self, watched: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Blames the origin of the first of these that is not finite; others of the same kind may know more."""
        if self._done:
            return
        bad = [(name, values) for name, tensor in watched for values in [readable(tensor)]
               if values is not None and not all_finite(span(values))]
        if bad:
            self._blame(bad)

    def _blame(self, bad: list[tuple[str, torch.Tensor]]) -> None:
        recorder, step = self.scene.recorder, self.scene.step + 1 - (bad[0][0].startswith("the parameter"))
        if self.tracer is None or self.tracer.off:
            self._too_early(bad[0][0], step)
            return
        events = [e for _, values in bad for e in [self.tracer.sources.of(values)] if e is not None]
        event = culprit(events)
        world = world_size()
        if event is not None and event.kind in (PARAMETER, BUFFER) and self._arm_at > 0:
            self._too_early(f"{event.kind} {event.name}", step)  # it happened before: from the start the next time
            return
        arrived = event is None or (event.kind == OUTSIDE and event.phase == "backward")
        if arrived and world > 1:
            findings = t103_from_another_rank.check(bad[0][0], step, recorder.rank, world)
        else:
            event = event or self.tracer.met(bad[0][1], OUTSIDE) or Event(0, OUTSIDE)
            findings = t101_nonfinite_origin.check(t101_nonfinite_origin.Origin(
                event, reason_of(event), bad[0][0], step, self.backwards, recorder.rank, len(joined(events)) - 1,
                self._compile.asked))
        for finding in findings:
            recorder.finding(finding)
            say(finding.statement)
        self._disarm()

    def _too_early(self, what: str, step: int) -> None:
        """It went wrong before tracing was armed: this run takes another course, or the place was seen too late."""
        for finding in t102_nonfinite_seen.check(what.removeprefix("the "), float("nan"), step, self.backwards, None,
                                                 self.scene.recorder.rank, "the second pass"):
            self.scene.recorder.finding(finding)
        self._disarm()
