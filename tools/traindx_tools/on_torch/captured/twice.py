"""One batch twice: does the same call repeat, and what does a call write beyond the statistics of norms?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.trial import Trial, change_of
from traindx_tools.on_torch.captured.unsaved import MOST_VALUES

_NORMS = torch.nn.modules.batchnorm._NormBase


@dataclass(frozen=True)
class Twice:
    """What a second call with the same samples and random numbers shows."""

    kind: str
    """"evaluation": in evaluation mode it gives another output, because the first call wrote what it reads;
    "not-repeatable": in training mode it gives another output although everything was set back; "writes": in training
    mode it writes state, which is a fact. A counter is no state that evaluation changes."""
    written: tuple[str, ...]
    largest: float = 0.0


def twice(trial: Trial) -> Twice | None:
    """None where a call leaves nothing behind but the statistics of norm layers, and repeats."""
    trial.ask(trial.call)
    before = state_of(trial.model)
    after = trial.ask(trial.call, set_back=False)
    state = state_of(trial.model)
    tensors = tuple(n for n in _written(before, state, trial) if isinstance(state[n], torch.Tensor))
    if tensors and _largest(trial.base, after) > 0:
        return Twice("evaluation", tensors, _largest(trial.base, after))
    first, again = (trial.ask(trial.call, train=True) for _ in range(2))
    if _largest(first, again) > 0:
        return Twice("not-repeatable", (), _largest(first, again))
    before = state_of(trial.model)
    trial.ask(trial.call, train=True, set_back=False)
    written = _written(before, state_of(trial.model), trial)
    return Twice("writes", written) if written else None


def state_of(model: torch.nn.Module) -> dict[str, Any]:
    """Copies of parameters, of buffers other than those of norm layers, and of tensors and numbers on modules."""
    found: dict[str, Any] = {}
    for path, module in model.named_modules():
        own = {} if isinstance(module, _NORMS) else module._buffers
        plain = {n: v for n, v in vars(module).items() if isinstance(v, torch.Tensor) or type(v) in (int, float)}
        for name, value in (*module._parameters.items(), *own.items(), *plain.items()):
            if isinstance(value, torch.Tensor) and value.numel() <= MOST_VALUES:
                found[f"{path}.{name}".lstrip(".")] = value.detach().clone()
            elif type(value) in (int, float):
                found[f"{path}.{name}".lstrip(".")] = value
    return found


def _written(before: dict[str, Any], after: dict[str, Any], trial: Trial) -> tuple[str, ...]:
    """Names of what differs. A hidden state has a row for each sample, and is carried on purpose."""
    changed = [n for n, v in after.items() if n in before and not equal(before[n], v)]
    rows = {trial.rows, trial.full_rows}
    hidden = [n for n in changed if isinstance(after[n], torch.Tensor) and after[n].ndim >= 2
              and rows & set(after[n].shape[:2]) and n not in dict(trial.model.named_parameters())]
    return () if hidden else tuple(changed)


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
    return bool(type(a) is type(b) and (a == b or a != a))


def _largest(a: list[torch.Tensor], b: list[torch.Tensor]) -> float:
    if len(a) != len(b) or any(x.shape != y.shape for x, y in zip(a, b, strict=True)):
        raise NotKept("its output has another form each time")
    return max((float(change_of(x, y).max()) for x, y in zip(a, b, strict=True) if x.numel()), default=0.0)
