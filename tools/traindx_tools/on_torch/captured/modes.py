"""Training against evaluation mode on one call, with everything random switched off: what remains, and who makes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.trial import SEED, Trial, change_of
from traindx_tools.on_torch.captured.twice import equal, state_of

MOST_MODULES = 12
_NORMS = torch.nn.modules.batchnorm._NormBase
_DROPOUTS = (torch.nn.modules.dropout._DropoutNd,)
_BY_CALL = frozenset({"dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "alpha_dropout_",
                      "feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"})


@dataclass(frozen=True)
class ModesDiffer:
    """The same samples in both modes, without dropout."""

    kind: str
    """"statistics": norm layers make all of it, or a module that keeps statistics of its own; "code": a module looks at
    `self.training`; "form": and returns an output of another form."""
    largest: float
    """The largest change of the output in standard deviations, inf for another form."""
    module: str
    """A module that looks at its mode, "" for statistics."""
    kind_of: str = ""
    """Its class."""
    file: str | None = None
    line: int | None = None


class _NoDropout(TorchFunctionMode):
    """Functional dropout keeps everything."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(func, "__name__", ""), dict(kwargs or {})
        if name in _BY_CALL:
            args, named = _with(args, named, 1, "p")
        elif name == "scaled_dot_product_attention":
            args, named = _with(args, named, 4, "dropout_p")
        return func(*args, **named)


def _with(args: Any, named: dict[str, Any], position: int, name: str) -> tuple[Any, dict[str, Any]]:
    if len(args) > position:
        return (*args[:position], 0.0, *args[position + 1:]), named
    return args, {**named, name: 0.0}


def modes_differ(trial: Trial) -> ModesDiffer | None:
    """None where the output is the same. Raises NotKept where something else is drawn in training mode: noise, a
    latent, a path that is dropped."""
    with _NoDropout():
        trained = trial.ask(trial.call, train=True, prepare=_still)
        again = trial.ask(trial.call, train=True, prepare=_still, seed=SEED + 1)
        if not _same(trained, again):
            raise NotKept("its training mode draws more than dropout")
        if _same(trained, trial.base):
            return None
        largest = _largest(trained, trial.base)
        norms = [m for m in trial.model.modules() if isinstance(m, _NORMS)]
        without = trial.ask(trial.call, train=True, prepare=_modes(norms))
        if norms and _same(without, trial.base):
            return ModesDiffer("statistics", largest, "")
        guilty = _who(trial, norms, without)
        if guilty is None:
            return None
        path, module = guilty
        if _writes(trial, module):
            return ModesDiffer("statistics", largest, path or type(module).__name__, type(module).__name__)
        file, line = _place(type(module))
        return ModesDiffer("form" if largest == float("inf") else "code", largest,
                           path or type(module).__name__, type(module).__name__, file, line)


def _who(trial: Trial, norms: Sequence[torch.nn.Module],
         without: list[torch.Tensor]) -> tuple[str, torch.nn.Module] | None:
    """The first module of the program's own classes whose mode alone changes the output."""
    able = [(p, m) for p, m in trial.model.named_modules() if not type(m).__module__.startswith("torch.")]
    for path, module in able[:MOST_MODULES]:
        if not _same(without, trial.ask(trial.call, train=True, prepare=_modes([*norms, module]))):
            return path, module
    return None


def _writes(trial: Trial, module: torch.nn.Module) -> bool:
    """Whether a training call changes a tensor that the module keeps: statistics of its own."""
    trial.ask(trial.call)
    before = state_of(module)
    trial.ask(trial.call, train=True, prepare=_still)
    after = state_of(module)
    return any(isinstance(v, torch.Tensor) and not equal(before.get(n), v) for n, v in after.items())


def _modes(in_evaluation: Sequence[torch.nn.Module]) -> Callable[[torch.nn.Module], None]:
    def prepare(model: torch.nn.Module) -> None:
        _still(model)
        for module in in_evaluation:
            module.training = False

    return prepare


def _still(model: torch.nn.Module) -> None:
    """Layers that drop out do not. Recurrent and attention layers hand a rate on, which the next question sets back."""
    for module in model.modules():
        if isinstance(module, _DROPOUTS):
            module.training = False
        elif isinstance(module, (torch.nn.RNNBase, torch.nn.MultiheadAttention)):
            vars(module)["dropout"] = 0.0


def _same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and _largest(a, b) == 0


def _largest(a: list[torch.Tensor], b: list[torch.Tensor]) -> float:
    if len(a) != len(b) or any(x.shape != y.shape for x, y in zip(a, b, strict=True)):
        return float("inf")
    return max((float(change_of(y, x).max()) for x, y in zip(a, b, strict=True) if x.numel()), default=0.0)


def _place(kind: type[torch.nn.Module]) -> tuple[str | None, int | None]:
    try:
        return inspect.getsourcefile(kind.forward), inspect.getsourcelines(kind.forward)[1]
    except (OSError, TypeError):
        return None, None
