"""Finds model, optimizer, loss and batches of any torch program and calls the probes at the moments of a step.

Four places are patched, each with a function that calls the original and is transparent to `torch.compile`:
`nn.Module.__call__` (only the outermost call is a moment), `torch.autograd.backward` (`Tensor.backward` goes through
it), `DataLoader` iteration and `GradScaler`; optimizers have global hooks of their own. What happens beside the step
(losses, files, states, schedules) is told by `calls.py`. Nothing is patched twice.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.optim import optimizer as torch_optimizer
from torch.utils.data import _utils as data_utils
from torch.utils.data import dataloader as torch_dataloader

from traindx_tools.live.notice import say
from traindx_tools.live.session import Session, current_session
from traindx_tools.on_torch import fetched
from traindx_tools.on_torch.calls import Calls
from traindx_tools.on_torch.collated import Collated
from traindx_tools.on_torch.drawn import Drawn
from traindx_tools.on_torch.measures.lookups import Lookups
from traindx_tools.on_torch.moments import Moments
from traindx_tools.on_torch.patches import Patches
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.registry import probes_for
from traindx_tools.on_torch.structure import add_model, add_optimizer, holds_tensors, replicas_of, unwrapped

_attached: list[Attachment] = []


def attach(session: Session | None = None) -> Attachment | None:
    """Attaches the probes that the session asks for; None where there is no session. A second call changes nothing."""
    if _attached:
        return _attached[0]
    session = session or current_session()
    if session is None:
        return None
    scene = Scene(session.recorder, options=dict(session.settings.options))
    probes = probes_for(scene, session.settings.probes, session.settings.mode)
    made = Attachment(scene, Moments(probes, scene), session)
    session.at_error.append(made.failed)
    session.at_end.append(made.finish)
    made.patch()
    _attached.append(made)
    return made


def detach() -> None:
    """Takes every patch out again."""
    while _attached:
        _attached.pop().unpatch()


def attached() -> Attachment | None:
    """The attachment of this process, None where there is none."""
    return _attached[0] if _attached else None


class Attachment:
    """The patches of one process and what they have seen."""

    def __init__(self, scene: Scene, moments: Moments, session: Session) -> None:
        self.scene, self.moments, self.session = scene, moments, session
        self.inside = False
        """An outermost module is running."""
        self.in_backward = self.in_step = False
        self._steps: dict[int, int] = {}
        self._models: dict[int, torch.nn.Module] = {}
        self._scaled: tuple[torch.Tensor, torch.Tensor] | None = None
        self._from_loader = False
        self._patches = Patches()
        self._drawn = Drawn()
        self._finished = self._looks_up = False
        self._thread = moments.thread
        """The one thread that is watched: that of the attachment, or the first one that trains."""
        self._trains = False

    # ---- patches

    def patch(self) -> None:
        """Puts the patches in, once."""
        if self._patches:
            return
        patches = self._patches
        patches.replace(torch.nn.Module, "__call__", self._module_call)
        patches.replace(torch.autograd, "backward", self._backward)
        patches.replace(torch_dataloader._BaseDataLoaderIter, "__next__", self._next_batch)
        patches.replace(torch_dataloader._BaseDataLoaderIter, "_next_index", self._drawn.next_index)
        patches.replace(torch_dataloader._BaseDataLoaderIter, "_reset", self._drawn.reset)
        collated = Collated(functools.partial(self.moments.tell, "collated"), self._quiet,
                            functools.partial(self.moments.tell, "rows_collated"))
        patches.replace(data_utils.fetch._BaseDatasetFetcher, "__init__", collated.made)
        patches.replace(data_utils.fetch._MapDatasetFetcher, "fetch",
                        functools.partial(fetched.told, tell=self.moments.tell, quiet=self._quiet))
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        patches.replace(scaler, "scale", self._scale)
        patches.replace(scaler, "update", self._update_scaler)
        for handle in (torch_optimizer.register_optimizer_step_pre_hook(self._before_step),
                       torch_optimizer.register_optimizer_step_post_hook(self._after_step)):
            patches.at_end(handle.remove)
        self._guarded(Calls(self.moments, self._quiet).patch, patches)
        self.scene.watch_lookups = self._watch_lookups

    def _watch_lookups(self) -> None:
        """Indexing is patched in programs that look up pairs, and in no other: it is called often."""
        if not self._patches or self._looks_up:
            return
        self._looks_up = True
        Lookups(self._looked_up, self._quiet).patch(self._patches)

    def _looked_up(self, source: torch.Tensor, indices: Sequence[torch.Tensor]) -> None:
        if not self.in_backward and not self.in_step:
            self.moments.tell("looked_up", source, indices)

    def unpatch(self) -> None:
        """Takes the patches out again; what was patched over ours by others stays."""
        self._patches.undo()

    # ---- moments

    def _take_over(self) -> None:
        """Who calls backward first is watched. Reading what another thread changes meanwhile would end the program."""
        here = threading.get_ident()
        if here == self._thread:
            self._trains = True
            return
        ended = all(t.ident != self._thread for t in threading.enumerate())
        if ended or (not self._trains and not self.scene.models):
            self._thread = self.moments.thread = here
            self._trains = True
        elif not self._trains:
            say("the instruments are off: one thread calls models and another one trains; the training goes on")
            self.moments.off()

    def _quiet(self) -> bool:
        """Whether what happens now is no moment: a probe's own call, compilation, another thread's, a worker's."""
        if threading.get_ident() != self._thread or self.moments.busy:
            return True
        if torch.compiler.is_compiling() or data_utils.worker._worker_info is not None:
            return True
        if self.session.asleep:
            self.session.wake()
        return False

    def _module_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        here = self

        @functools.wraps(original)
        def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(self, *args, **kwargs)
            if here.inside and here.scene.inner and not here.moments.busy and threading.get_ident() == here._thread:
                return here.observed(original, self, args, kwargs)
            if here.inside or here.in_backward or here._quiet():
                return original(self, *args, **kwargs)
            return here.outermost(original, self, args, kwargs)

        return call

    def outermost(self, original: Callable[..., Any], module: torch.nn.Module, args: tuple[Any, ...],
                  kwargs: dict[str, Any]) -> Any:
        """The call of an outermost module, with the moments around it. The call that gives lazy layers their shapes is
        none: before it there is nothing to look at."""
        if id(module) not in self._models and _is_lazy(module):
            self.inside = True
            try:
                return original(module, *args, **kwargs)
            finally:
                self.inside = False
        model = self._models.get(id(module)) or self._found(module)
        if not self._from_loader:
            self.scene.batch = tuple(_without_graph(a) for a in args)
        if not torch.is_grad_enabled():
            self.moments.wake()
        self.scene.called = module
        self.moments.tell("before_forward", model, args, kwargs)
        self.inside = True
        try:
            output = self.observed(original, module, args, kwargs)
        finally:
            self.inside = False
        self.moments.tell("after_forward", model, output)
        return output

    def observed(self, original: Callable[..., Any], module: torch.nn.Module, args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        """The call of a module, shown to those who asked for it; one who raises is never asked again."""
        output = original(module, *args, **kwargs)
        for listen in tuple(self.scene.inner):
            try:
                listen(module, args, kwargs, output)
            except Exception as error:  # noqa: BLE001 - a fault of a probe must not become the training's
                self.scene.inner.remove(listen)
                say(f"a probe no longer looks into modules: {type(error).__name__}: {error}; the training goes on")
        return output

    def _found(self, module: torch.nn.Module) -> torch.nn.Module:
        self._models[id(module)] = module
        self._guarded(self._enter, module)
        return self._models[id(module)]

    def _enter(self, module: torch.nn.Module) -> None:
        if threading.get_ident() != self._thread:  # another one has taken over meanwhile
            return
        model = unwrapped(module)
        self._models[id(module)] = model
        if holds_tensors(model) and not any(m is model for m in self.scene.models):
            self._guarded(add_model, self.scene, model)
            self._guarded(self._note_replicas, module)
            self.moments.wake()
            self.moments.tell("model_found", model)

    def _note_replicas(self, module: torch.nn.Module) -> None:
        count = replicas_of(module)
        self.scene.replicas = max(self.scene.replicas, count)
        self.scene.sharded = self.scene.sharded or count == 0

    def introduce(self, model: torch.nn.Module | None, optimizer: torch.optim.Optimizer | None) -> None:
        """Enters a model and an optimizer that the caller names before they show themselves."""
        if model is not None and id(model) not in self._models and not _is_lazy(model):
            self._found(model)
        if optimizer is not None and id(optimizer) not in self._steps:
            self._found_optimizer(optimizer)

    def revive(self) -> None:
        """Probes that had switched themselves off begin anew: what they failed on was another part of the program."""
        for probe in self.moments.revived():
            for model in self.scene.models:
                self.moments.tell_one(probe, "model_found", model)
            for optimizer in self.scene.optimizers:
                self.moments.tell_one(probe, "optimizer_found", optimizer)

    def _found_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self._steps[id(optimizer)] = 0
        self._guarded(add_optimizer, self.scene, optimizer)
        self.moments.wake()
        self.moments.tell("optimizer_found", optimizer)

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self.in_backward:
                return original(tensors, *args, **kwargs)
            self._take_over()
            if self._quiet():
                return original(tensors, *args, **kwargs)
            loss = _first(tensors)
            if loss is None:
                return original(tensors, *args, **kwargs)
            self._loss(loss)
            self.moments.tell("before_backward", loss)
            self.in_backward = True
            try:
                result = original(tensors, *args, **kwargs)
            finally:
                self.in_backward = False
            self.moments.tell("after_backward", loss)
            if self.session.at_step and not self._steps:  # weights that no optimizer moves: by hand, or not yet
                self.session.stepped()
            return result

        return backward

    def _loss(self, loss: torch.Tensor) -> None:
        """What backward is called on; where a GradScaler multiplied it, the loss before that."""
        scaled = self._scaled
        self.scene.loss = (scaled[1] if scaled is not None and scaled[0] is loss else loss).detach()
        self._scaled = None

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            if isinstance(outputs, torch.Tensor) and isinstance(scaled, torch.Tensor):
                self._scaled = (scaled, outputs.detach())
            return scaled

        return scale

    def _update_scaler(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(scaler, *args, **kwargs)
            if not self._quiet():
                self.moments.tell("scaler_updated", scaler)
            return result

        return update

    def _next_batch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def following(iterator: Any) -> Any:
            if not self._quiet():
                self.moments.tell("before_batch")
            batch = original(iterator)
            if not self._quiet():
                self.scene.batch, self._from_loader = batch, True
                drawn = self.scene.drawn = self._drawn.of(iterator)
                self.scene.draw = None if drawn is not None and drawn.single else drawn
                self.moments.tell("batch_given", batch)
            return batch

        return following

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._quiet():
            return
        if id(optimizer) not in self._steps:
            self._found_optimizer(optimizer)
        self.moments.tell("before_step", optimizer)
        self.in_step = True

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._quiet() or id(optimizer) not in self._steps:
            return
        self.in_step = False
        self._steps[id(optimizer)] += 1
        self.scene.step = max(self._steps.values())
        if self.scene.step == 1 and self._steps[id(optimizer)] == 1:
            self.session.note_files()
        self.moments.tell("after_step", optimizer)
        if self.session.at_step:
            self.session.stepped()

    # ---- the end

    def failed(self, error: BaseException) -> None:
        """The program ends with this error: writes what the probes know about it."""
        for finding in self.moments.findings_of("failed", error):
            self.scene.recorder.finding(finding)

    def finish(self) -> None:
        """The program ends: writes what the probes have not written yet."""
        if self._finished:
            return
        self._finished = True
        if self.scene.step:
            self.session.note_files()
        for finding in self.moments.findings_of("finish"):
            self.scene.recorder.finding(finding)

    def _guarded(self, call: Callable[..., None], *args: Any) -> None:
        try:
            call(*args)
        except Exception as error:  # noqa: BLE001 - an odd module (one that computes its children) costs names only
            say(f"names of modules are incomplete: {type(error).__name__}: {error}")


def _first(tensors: Any) -> torch.Tensor | None:
    if isinstance(tensors, torch.Tensor):
        return tensors
    several = tensors if isinstance(tensors, (tuple, list)) else ()
    return next((t for t in several if isinstance(t, torch.Tensor)), None)


def _without_graph(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) and value.requires_grad else value


def _is_lazy(module: torch.nn.Module) -> bool:
    """Whether some of its parameters or buffers wait for a first call to get a shape."""
    return any(torch.nn.parameter.is_lazy(t) for t in (*module.parameters(), *module.buffers()))
