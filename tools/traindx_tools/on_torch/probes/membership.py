"""Whom parameters belong to, what reaches them, and the mode their modules are in (T301, T302, T305, T307 to T310)."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.once import Once
from traindx_tools.on_torch.measures.usage import Usage
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t301_in_no_optimizer,
    t302_no_gradient,
    t305_tied_apart,
    t307_optimizer_of_others,
    t308_trained_in_eval_mode,
    t309_evaluated_in_train_mode,
    t310_steps_without_gradients,
    t312_frozen_at_initialisation,
)
from traindx_tools.on_torch.rules.membership import SOURCE, Member, Membership
from traindx_tools.on_torch.rules.modes import ModeCourse
from traindx_tools.on_torch.rules.t305_tied_apart import Pair
from traindx_tools.on_weights.initialisers import FEWEST, Drawn, bounded_draw

LISTENED = 3
"""Forward passes with gradients, of each model, in which every module is listened to."""
FEW_LOOKS = 3
"""Of a parameter whose model was called at fewer looks (one of many that follow each other) nothing is said."""
JUDGED_AT = 200
"""Optimizer steps after which a first judgement is written, in case the program is killed later."""
COMPARED = 4096
"""Values of an embedding that are compared with an output layer's."""
_NORMS = torch.nn.modules.batchnorm._BatchNorm
_DROPOUTS = torch.nn.modules.dropout._DropoutNd


@dataclass
class _Modes:
    """How one model was called."""

    model: torch.nn.Module
    layers: list[torch.nn.Module]
    pending: bool | None = None
    """The mode of a call with gradients for which no backward pass came yet: whether all layers were in eval mode."""
    in_train: int = 0
    in_eval: int = 0
    last: int = 0
    first_eval_step: int = 0
    run: int = 0
    longest: int = 0
    evaluated_train: int = 0
    evaluated_eval: int = 0
    counted: list[int] = field(default_factory=list)

    def called(self, grad: bool) -> None:
        modes = [layer.training for layer in self.layers]
        if grad:
            self.pending = not self.model.training and not any(modes)
            return
        if any(modes) and self.model.training:
            self.run += 1
        else:
            self.evaluated_eval += 1

    def end_run(self) -> None:
        """A backward pass came: what was a run of calls without gradients is over."""
        if self.run >= 2:
            self.evaluated_train += self.run
            self.longest = max(self.longest, self.run)
        self.run = 0

    def trained(self, step: int) -> None:
        """A backward pass followed the call."""
        if self.pending is None:
            return
        if self.pending:
            self.in_eval += 1
            self.first_eval_step = step if self.last == 0 else self.first_eval_step
            self.last += 1
        else:
            self.in_train += 1
            self.last = 0
        self.pending = None


class MembershipProbe(TorchProbe):
    """Parameters in no optimizer, without gradients, untied; optimizers of other models; train and eval mode."""

    name = "membership"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._once = Once()
        self._cadence = Cadence(12, 25, thins=True)
        self._usage = Usage()
        self._listened: dict[int, int] = {}
        self._modes: dict[int, _Modes] = {}
        self._had_gradient: set[int] = set()
        self._looked: Counter[int] = Counter()
        self._called: set[int] = set()
        """Models that were called with gradients since the last backward pass."""
        self._wanted: set[int] = set()
        """Parameters that required a gradient at a backward pass that was looked at, of all that were there."""
        self._backwards = 0
        self._steps = self._empty = 0
        self._ties: list[tuple[torch.nn.Module, str, str]] = []
        self._copies: list[tuple[torch.nn.Module, str, str]] = []
        self._start: dict[int, float] = {}

    def next_look(self) -> int:
        """The next step whose gradients are looked at; with layers that know a mode, every call counts."""
        heard = all(self._listened.get(id(m), 0) >= LISTENED for m in self.scene.models)
        if not heard or any(modes.layers for modes in self._modes.values()):
            return 0
        return self._cadence.next_due(self.scene.step)

    # ---- the moments

    def model_found(self, model: torch.nn.Module) -> None:
        """Its layers that know a mode, and its weights that are one."""
        layers: list[torch.nn.Module] = [
            m for m in model.modules() if (isinstance(m, _NORMS) and m.track_running_stats)
            or (isinstance(m, _DROPOUTS) and m.p > 0)]
        self._modes[id(model)] = _Modes(model, layers)
        self._ties += [(model, a, b) for a, b in _tied(model)]
        self._copies += [(model, a, b) for a, b in _copied(model)]

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Notes the mode; listens to the modules in the first passes."""
        modes, grad = self._modes.get(id(model)), torch.is_grad_enabled()
        if grad:
            self._called.add(id(model))
        if modes is not None and modes.layers and (not grad or any(p.requires_grad for p in model.parameters())):
            modes.called(grad)  # a teacher that is frozen by now is asked, neither trained nor evaluated
        heard = self._listened.get(id(model), 0)
        if heard < LISTENED:
            self._listened[id(model)] = heard + grad
            if self._usage.called not in self.scene.inner:
                self.scene.inner.append(self._usage.called)

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """Stops to listen."""
        if self._usage.called in self.scene.inner:
            self.scene.inner.remove(self._usage.called)

    def before_backward(self, loss: torch.Tensor) -> None:
        """What was called with gradients since the last backward pass is being trained."""
        for modes in self._modes.values():
            modes.end_run()
            modes.trained(self.scene.step)

    def after_backward(self, loss: torch.Tensor) -> None:
        """Whom the gradients reach."""
        self._backwards += 1
        self._usage.forget()
        called, self._called = self._called, set()
        if self.scene.due(self._cadence, self._backwards - 1):
            resting = {id(p) for m in self.scene.models if id(m) not in called for p in m.parameters()}
            for p in self._parameters():
                self._looked[id(p)] += id(p) not in resting
                if p.grad is not None:
                    self._had_gradient.add(id(p))
                if p.requires_grad:
                    self._wanted.add(id(p))

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Remembers a value of each parameter, to know later whether anything changes it."""
        if len(self._start) < len(self._had_gradient) and self.scene.step < LISTENED:
            held = self._held()
            for p in self._parameters():
                if id(p) not in held and id(p) not in self._start and p.numel() and p.device.type == "cpu":
                    self._start[id(p)] = _mark(p)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """A first judgement; whether anything was there to step with, until the first backward pass."""
        self._steps += 1
        if not self._backwards and self._empty == self._steps - 1:
            held = (p for group in optimizer.param_groups for p in group["params"])
            self._empty += all(p.grad is None for p in held)
        if self.scene.step == JUDGED_AT and optimizer is self.scene.optimizers[0]:
            for finding in self._once.new(self._findings()):
                self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for modes in self._modes.values():
            modes.end_run()
        yield from self._once.new(self._findings())
        yield from t312_frozen_at_initialisation.check(list(self._frozen()))

    # ---- what was seen

    def _frozen(self) -> Iterator[t312_frozen_at_initialisation.Frozen]:
        """The frozen part of each model that has a trained one. At the end only: reads the device."""
        for model in self.scene.models:
            own = [(n, p) for n, p in model.named_parameters() if p.numel()]
            trained = sum(p.numel() for _, p in own if id(p) in self._had_gradient)
            frozen = [(n, p) for n, p in own if p.ndim >= 2 and p.numel() >= FEWEST and not p.requires_grad
                      and not self._wants(p) and id(p) not in self._had_gradient]
            if not trained or not frozen:
                continue
            drawn = tuple((n, p.numel(), told.name) for n, p in frozen if (told := _draw(p)) is not None)
            yield t312_frozen_at_initialisation.Frozen(
                self.scene.module_paths.get(id(model)) or type(model).__name__, drawn,
                sum(p.numel() for _, p in frozen), trained, sum(p.numel() for _, p in own), self.scene.step,
                self.scene.recorder.rank)

    def _findings(self) -> Iterator[Finding]:
        seen = self.membership()
        for rule in (t301_in_no_optimizer, t302_no_gradient, t307_optimizer_of_others):
            yield from rule.check(seen)
        yield from t310_steps_without_gradients.check(self._empty, self._steps, SOURCE, self.scene.recorder.rank)
        yield from t305_tied_apart.check(list(self._pairs()))
        for modes in self._modes.values():
            if modes.layers:
                course = self._course(modes)
                yield from t308_trained_in_eval_mode.check(course)
                yield from t309_evaluated_in_train_mode.check(course)

    def membership(self) -> Membership:
        """Every parameter of a called module: who holds it, what reached it, how its module was used."""
        held, owners = self._held(), self._owners()
        orphans = any(k in self._had_gradient and k not in held for k in owners)
        waiting = self._waiting() if orphans else {}
        first = next((i for i, m in self._usage.with_gradients.items() if next(m.parameters(recurse=False), None)
                      is not None), None)
        members = []
        rested = self._backwards > self._cadence.first
        for order, (p, (path, module, registered)) in enumerate(owners.values()):
            if rested and id(p) not in self._had_gradient and self._looked[id(p)] < FEW_LOOKS:
                continue
            changed = id(p) in self._start and self._start[id(p)] != _mark(p)
            members.append(Member(
                path=path, module=path.rpartition(".")[0] or path, numel=p.numel(), wants_gradient=self._wants(p),
                had_gradient=id(p) in self._had_gradient, held=id(p) in held or changed,
                waiting=waiting.get(id(p)), use=self._use(module, first), registered=registered, order=order))
        return Membership(tuple(members), self.scene.step, self._backwards, tuple(self._strangers(owners, held)),
                          self.scene.recorder.rank)

    def _wants(self, p: torch.nn.Parameter) -> bool:
        """Whether it required a gradient while it was watched; what it requires by now may be another thing."""
        return id(p) in self._wanted if id(p) in self._looked else p.requires_grad

    def _owners(self) -> dict[int, tuple[torch.nn.Parameter, tuple[str, torch.nn.Module, bool]]]:
        """Parameters of models and of modules called inside them: path, module, whether it is a registered part."""
        found: dict[int, tuple[torch.nn.Parameter, tuple[str, torch.nn.Module, bool]]] = {}
        known = {id(m) for model in self.scene.models for m in model.modules()}
        for model in self.scene.models:
            for _, module in model.named_modules():
                for name, p in module.named_parameters(recurse=False):
                    path = self.scene.parameter_paths.get(id(p), name)
                    found.setdefault(id(p), (p, (path, module, True)))
        for number, (key, module) in enumerate(self._usage.with_gradients.items()):
            if key not in known:
                for name, p in module.named_parameters(recurse=False):
                    path = f"{type(module).__name__} (unregistered, call {number + 1}).{name}"
                    found.setdefault(id(p), (p, (path, module, False)))
                    if p.grad is not None:
                        self._had_gradient.add(id(p))
        return found

    def _use(self, module: torch.nn.Module, first: int | None) -> str:
        key = id(module)
        if key in self._usage.with_gradients:
            return "first" if key == first else "cut" if key in self._usage.consumed else "called"
        if key in self._usage.without_gradients:
            return "without-gradients"
        return "not-called" if self._usage.with_gradients else "unknown"

    def _parameters(self) -> Iterator[torch.nn.Parameter]:
        for model in self.scene.models:
            yield from model.parameters()
        for optimizer in self.scene.optimizers:
            for group in optimizer.param_groups:
                yield from group["params"]

    def _held(self) -> set[int]:
        return {id(p) for optimizer in self.scene.optimizers for group in optimizer.param_groups
                for p in group["params"]}

    def _waiting(self) -> dict[int, str]:
        """Parameters of optimizers that exist and never stepped, with the optimizer's class."""
        stepped = {id(o) for o in self.scene.optimizers}
        asleep = [o for o in gc.get_objects() if issubclass(type(o), torch.optim.Optimizer) and id(o) not in stepped]
        return {id(p): type(o).__name__ for o in asleep for group in o.param_groups for p in group["params"]}

    def _strangers(self, owners: dict[int, Any], held: set[int]) -> Iterator[tuple[str, int, int]]:
        unheld = {tuple(p.shape) for key, (p, _) in owners.items() if key not in held and key in self._had_gradient}
        for optimizer in self.scene.optimizers:
            own = [p for group in optimizer.param_groups for p in group["params"]]
            if not any(id(p) in owners or id(p) in self._had_gradient for p in own):
                yield type(optimizer).__name__, len(own), sum(tuple(p.shape) in unheld for p in own)

    def _pairs(self) -> Iterator[Pair]:
        step, rank = self.scene.step, self.scene.recorder.rank
        for model, a, b in self._ties:
            now = dict(model.named_parameters(remove_duplicate=False))
            if a in now and b in now and now[a] is not now[b] and not _share(now[a], now[b]):
                yield Pair("came-apart", a, b, step, rank)
        for model, a, b in self._copies:
            now = dict(model.named_parameters(remove_duplicate=False))
            if a in now and b in now and now[a].requires_grad and now[b].requires_grad and not torch.equal(
                    _first_values(now[a]), _first_values(now[b])):
                yield Pair("not-tied" if _wants_tie(model) else "copied", a, b, step, rank)

    def _course(self, modes: _Modes) -> ModeCourse:
        paths, model = self.scene.module_paths, modes.model
        norms = [m for m in modes.layers if isinstance(m, _NORMS)]
        unmeasured = next((m for m in norms if not m.training and m.num_batches_tracked is not None
                           and m.weight is not None and id(m.weight) in self._had_gradient
                           and _untouched(m)), None)
        return ModeCourse(
            path=paths.get(id(model), type(model).__name__),
            layers=tuple(paths.get(id(m), type(m).__name__) for m in modes.layers), batch_norms=len(norms),
            trained_in_train=modes.in_train, trained_in_eval=modes.in_eval, last_in_eval=modes.last,
            first_eval_step=modes.first_eval_step,
            unmeasured=None if unmeasured is None else paths.get(id(unmeasured), "BatchNorm"),
            evaluated_in_train=modes.evaluated_train, longest_run=modes.longest, evaluated_in_eval=modes.evaluated_eval,
            step=self.scene.step, rank=self.scene.recorder.rank)


def _mark(p: torch.Tensor) -> float:
    """A number that changes when the parameter does; CPU only, where reading costs no synchronisation."""
    return float(p.detach().reshape(-1)[:: max(1, p.numel() // 64)].double().sum())


def _draw(p: torch.Tensor) -> Drawn | None:
    """The initialiser of which a parameter is still a draw."""
    values = p.detach()
    if not values.is_floating_point() or not bool(torch.isfinite(values).all()):
        return None
    low, high = (float(v) for v in torch.aminmax(values))
    return bounded_draw(tuple(values.shape), str(values.dtype).removeprefix("torch."), low, high,
                        float(values.double().square().mean().sqrt()))


def _untouched(norm: Any) -> bool:
    """At the end only: reads the device."""
    return int(norm.num_batches_tracked) == 0 and bool((norm.running_mean == 0).all()) and bool(
        (norm.running_var == 1).all())


def _tied(model: torch.nn.Module) -> Iterator[tuple[str, str]]:
    names: dict[int, str] = {}
    for path, p in model.named_parameters(remove_duplicate=False):
        if id(p) in names:
            yield names[id(p)], path
        names.setdefault(id(p), path)


def _copied(model: torch.nn.Module) -> Iterator[tuple[str, str]]:
    """Embedding and output layer with the same values and not the same memory, on the CPU: no device is read."""
    tables = [(n, m) for n, m in model.named_modules() if isinstance(m, torch.nn.Embedding)]
    outputs = [(n, m) for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)]
    for name, table in tables:
        for other, linear in outputs:
            a, b = table.weight, linear.weight
            if a is b or a.shape != b.shape or a.device.type != "cpu" or b.device.type != "cpu" or _share(a, b):
                continue
            same = torch.equal(_first_values(a), _first_values(b)) and bool(_first_values(a).any())
            if same or _is_output(model, table, linear):
                yield f"{name}.weight", f"{other}.weight"


def _is_output(model: Any, table: torch.nn.Module, linear: torch.nn.Module) -> bool:
    """Input and output embedding of a model whose configuration asks for tied ones."""
    if not _wants_tie(model):
        return False
    try:
        return model.get_input_embeddings() is table and model.get_output_embeddings() is linear
    except Exception:  # noqa: BLE001 - a method of the user's model may do anything; without it nothing is said
        return False


def _wants_tie(model: Any) -> bool:
    return getattr(getattr(model, "config", None), "tie_word_embeddings", False) is True


def _share(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _first_values(p: torch.Tensor) -> torch.Tensor:
    return p.detach().reshape(-1)[:COMPARED]
