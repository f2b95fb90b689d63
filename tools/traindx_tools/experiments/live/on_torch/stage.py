"""The places of a torch program where changes take hold: each is patched once, and only where a change asks for it.

Who listens is told at a place and may replace what passes there. A listener that raises is off, with its change; the
program gets what it would have got without it. Other threads and compilation go straight through.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import optimizer as torch_optimizer
from torch.utils.data import DataLoader
from torch.utils.data import dataloader as torch_dataloader

from traindx_tools.experiments.live.intervening import Intervening
from traindx_tools.experiments.live.patches import Patches
from traindx_tools.on_torch.structure import holds_tensors, unwrapped

Listener = tuple[Intervening, Callable[..., Any]]
PLACES = ("batch", "entered", "before_forward", "after_forward", "ended_forward", "model_found", "before_backward",
          "after_backward", "optimizer_made", "before_step", "after_step")
"""What can be listened to; see `Stage.listen`."""


class Stage:
    """The patches that the changes of one process share, and what they need to know of the program."""

    def __init__(self) -> None:
        self.patches = Patches()
        self.models: list[torch.nn.Module] = []
        """Outermost modules without their wrappers, in the order of their first call."""
        self.optimizers: list[torch.optim.Optimizer] = []
        """In the order in which they were made; while somebody listens to `optimizer_made`."""
        self.in_backward = False
        self.loader: DataLoader[Any] | None = None
        """The one that gave the last batch."""
        self._listeners: dict[str, list[Listener]] = {p: [] for p in PLACES}
        self._patched: set[str] = set()
        self._outermost: dict[int, torch.nn.Module] = {}
        self._loaders: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._training_loaders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._mode: bool | None = None
        self._here = threading.local()

    # ---- listening

    def listen(self, who: Intervening, place: str, call: Callable[..., Any]) -> None:
        """Tells `call` what passes at the place:

        - `batch(loader, batch)`: a DataLoader gives a batch; what is returned is given instead (None: as it is);
        - `entered(loader)`: a DataLoader is about to be iterated;
        - `model_found(model)`: an outermost module, unwrapped, before its first call;
        - `before_forward(module, args, kwargs)`: an outermost call; returns (args, kwargs) instead, or None;
        - `after_forward(module, output)`; `ended_forward(module)`, also where it raised;
        - `before_backward(tensors)`; `after_backward(tensors)`;
        - `optimizer_made(optimizer)`; `before_step(optimizer)`; `after_step(optimizer)`.
        """
        self._listeners[place].append((who, call))
        self._need({"batch": "loaders", "entered": "loaders", "optimizer_made": "optimizers", "before_step": "steps",
                    "after_step": "steps", "before_backward": "backward", "after_backward": "backward"}
                   .get(place, "modules"))

    def _need(self, what: str) -> None:
        if what in self._patched:
            return
        self._patched.add(what)
        if what == "loaders":
            for also in ("modules", "backward"):  # by which a training is told from an evaluation
                self._need(also)
            self.patches.replace(torch_dataloader._BaseDataLoaderIter, "__init__", self._iterator_made)
            self.patches.replace(torch_dataloader._BaseDataLoaderIter, "__next__", self._next)
            self.patches.replace(DataLoader, "__iter__", self._iterated)
        elif what == "modules":
            self.patches.replace(torch.nn.Module, "__call__", self._called)
            self.patches.replace(torch.nn.Module, "train", self._mode_set)
            self._need("backward")
        elif what == "backward":
            self.patches.replace(torch.autograd, "backward", self._backward)
        elif what == "optimizers":
            self.patches.replace(torch.optim.Optimizer, "__init__", self._optimizer_made)
        elif what == "steps":
            self.patches.later(torch_optimizer.register_optimizer_step_pre_hook(
                lambda optimizer, *_: self._tell("before_step", optimizer)).remove)
            self.patches.later(torch_optimizer.register_optimizer_step_post_hook(
                lambda optimizer, *_: self._tell("after_step", optimizer)).remove)

    def _tell(self, place: str, *what: Any) -> Any:
        answer = None
        for who, call in self._listeners[place]:
            given = who.guarded(call, *what)
            if given is not None:
                answer = given
                what = (*what[:-len(given)], *given) if place == "before_forward" else (*what[:-1], given)
        return answer

    # ---- what is going on

    def training(self, loader: Any = None) -> bool:
        """Whether what happens now belongs to the training, not to an evaluation.

        Gradients are on, and either a backward pass followed a batch of this loader before, or the models (before the
        first call of one: the last call of `train` or `eval`) are in training mode.
        """
        if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
            return False
        if loader is not None and loader in self._training_loaders:
            return True
        trained = [m for m in self.models if any(p.requires_grad for p in m.parameters())]
        if trained:
            return any(m.training for m in trained)
        return self._mode is not False

    def wrappers_of(self, model: torch.nn.Module) -> list[torch.nn.Module]:
        """The outermost modules that were called and have this one inside, itself included."""
        return [m for m in self._outermost.values() if unwrapped(m) is model]

    # ---- patches

    def _iterator_made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def made(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> Any:
            self._loaders[iterator] = loader
            return original(iterator, loader, *args, **kwargs)

        return made

    def _next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def following(iterator: Any) -> Any:
            batch = original(iterator)
            loader = self._loaders.get(iterator)
            self.loader = loader
            changed = self._tell("batch", loader, batch)
            return batch if changed is None else changed

        return following

    def _iterated(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def iterated(loader: Any) -> Any:
            self._tell("entered", loader)
            return original(loader)

        return iterated

    def _mode_set(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def train(module: torch.nn.Module, mode: bool = True) -> Any:
            if getattr(self._here, "setting", False):
                return original(module, mode)
            self._here.setting = True
            try:
                self._mode = mode
                return original(module, mode)
            finally:
                self._here.setting = False

        return train

    def _called(self, original: Callable[..., Any]) -> Callable[..., Any]:
        stage = self

        def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or getattr(stage._here, "inside", False) or stage.in_backward:
                return original(self, *args, **kwargs)
            return stage._outer(original, self, args, kwargs)

        return call

    def _outer(self, original: Callable[..., Any], module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread() and self.models:
            return original(module, *args, **kwargs)
        self._here.inside = True
        try:
            if id(module) not in self._outermost:
                self._found(module)
            changed = self._tell("before_forward", module, args, kwargs)
            args, kwargs = (args, kwargs) if changed is None else changed
            output = original(module, *args, **kwargs)
            self._tell("after_forward", module, output)
            return output
        finally:
            self._here.inside = False
            self._tell("ended_forward", module)

    def _found(self, module: torch.nn.Module) -> None:
        try:
            model = unwrapped(module)
            if not holds_tensors(model):  # a loss, a pooling: some programs make a new one in each step
                return
        except Exception:  # noqa: BLE001 - an odd module (one that computes its children) is none of ours
            return
        self._outermost[id(module)] = module
        if not any(m is model for m in self.models):
            self.models.append(model)
            self._tell("model_found", model)

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self.in_backward:
                return original(tensors, *args, **kwargs)
            if self.loader is not None:
                self._training_loaders.add(self.loader)
            self._tell("before_backward", tensors)
            self.in_backward = True
            try:
                result = original(tensors, *args, **kwargs)
            finally:
                self.in_backward = False
            self._tell("after_backward", tensors)
            return result

        return backward

    def _optimizer_made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def made(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self.optimizers.append(optimizer)
            self._tell("optimizer_made", optimizer)

        return made


_stage: list[Stage] = []


def stage() -> Stage:
    """The one of this process."""
    if not _stage:
        _stage.append(Stage())
    return _stage[0]


def close() -> None:
    """Takes its patches out."""
    while _stage:
        _stage.pop().patches.undo()


class OnTorch(Intervening):
    """A change in a torch program."""

    @property
    def stage(self) -> Stage:
        """What the changes of this process share."""
        return stage()

    def listen(self, place: str, call: Callable[..., Any]) -> None:
        """See `Stage.listen`."""
        self.stage.listen(self, place, call)
