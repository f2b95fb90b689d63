"""Save, load, step against step: what an optimizer keeps and its `state_dict` leaves out.

Three copies over copies of the parameters take one step with the same gradients: one as the optimizer is, one that was
made anew (its attributes are those of before its first step) and took its `state_dict`, and one more as it is, to know
that it repeats.
"""

from __future__ import annotations

import contextlib
import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import optimizer as torch_optimizer

from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.sandbox import unnoticed
from traindx_tools.on_torch.snapshot.state import RandomState

MOST_BYTES = 2**28
MOST_ASKED = 6
_APART = ("param_groups", "state", "step")


@dataclass(frozen=True)
class Lost:
    """What differs after one step: names of attributes, () where the state itself is saved in part."""

    attributes: tuple[str, ...]
    largest: float
    """The largest difference of a parameter over the size of the step."""


def extra_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Copies of the attributes that its class adds to what every optimizer has. Raises NotKept for what is no number,
    text, tensor or container of them (another optimizer, a model)."""
    own = _own(optimizer)
    found = {}
    for name, value in vars(optimizer).items():
        if name not in _APART and not _of_torch(name):
            found[name] = _mapped(value, lambda t: t if id(t) in own else t.detach().clone())
    return found


def saved_optimizer(optimizer: torch.optim.Optimizer, initial: Mapping[str, Any]) -> Lost | None:
    """None where the step after loading is the same. Raises NotKept where that cannot be asked."""
    if sum(p.numel() * p.element_size() for p in _own(optimizer).values()) > MOST_BYTES:
        raise NotKept("it holds too much to be copied")
    with unnoticed(torch.nn.Module()), _without_global_hooks():
        return _asked(optimizer, initial)


def _asked(optimizer: torch.optim.Optimizer, initial: Mapping[str, Any]) -> Lost | None:
    before = RandomState.now()
    try:
        now = extra_of(optimizer)
        stepped, again = (_stepped(optimizer, now, before) for _ in range(2))
        if not _equal(stepped, again):
            raise NotKept("its step does not repeat")
        if _equal(stepped, _stepped(optimizer, initial, before, load=True)):
            return None
        names = [n for n in now if n not in initial or not _alike(now[n], initial[n])][:MOST_ASKED]
        guilty = []
        for name in names:
            other = {**now, name: initial[name]} if name in initial else {k: v for k, v in now.items() if k != name}
            if not _equal(stepped, _stepped(optimizer, other, before, strict=False)):
                guilty.append(name)
        return Lost(tuple(guilty), _difference(optimizer, stepped, _stepped(optimizer, initial, before, load=True)))
    except NotKept:
        raise
    except Exception as error:
        raise NotKept(f"{type(error).__name__}: {str(error)[:120]}") from error


@contextlib.contextmanager
def _without_global_hooks() -> Iterator[None]:
    """What the program wants to know of every optimizer's step is not told of these."""
    held = [(d, d.copy()) for n in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
            for d in [getattr(torch_optimizer, n)]]
    try:
        for hooks, _ in held:
            hooks.clear()
        yield
    finally:
        for hooks, before in held:
            hooks.clear()
            hooks.update(before)


def _stepped(optimizer: torch.optim.Optimizer, extra: Mapping[str, Any], random: RandomState, *, load: bool = False,
             strict: bool = True) -> list[torch.Tensor] | None:
    """The parameters of a copy after one step; None where it fails and need not be strict."""
    random.restore()
    copies = {k: _copy(p) for k, p in _own(optimizer).items()}

    def placed(t: torch.Tensor) -> torch.Tensor:
        return copies[id(t)] if id(t) in copies else t.detach().clone()

    def made(attributes: Mapping[str, Any], state: Any) -> Any:
        one: Any = type(optimizer).__new__(type(optimizer))
        for name, value in vars(optimizer).items():
            if _of_torch(name) and name not in _APART:
                one.__dict__[name] = OrderedDict() if "hooks" in name else copy.copy(value)
        for name, value in attributes.items():
            one.__dict__[name] = _mapped(value, placed)
        one.param_groups = [_mapped(dict(g), placed) for g in optimizer.param_groups]
        one.state = state
        return one

    full = made(extra if not load else extra_of(optimizer), defaultdict(dict, _mapped(dict(optimizer.state), placed)))
    one = full
    if load:
        state = copy.deepcopy(full.state_dict())
        one = made(extra, defaultdict(dict))
        one.load_state_dict(state)
    try:
        one.step()
    except Exception:  # the program's optimizer may raise anything where its state lacks an entry
        if strict:
            raise
        return None
    return [copies[k].detach() for k in _own(optimizer)]


def _copy(p: torch.Tensor) -> torch.Tensor:
    made = torch.nn.Parameter(p.detach().clone(), p.requires_grad)
    made.grad = p.grad.detach().clone() if p.grad is not None else None
    return made


def _own(optimizer: torch.optim.Optimizer) -> dict[int, torch.Tensor]:
    return {id(p): p for g in optimizer.param_groups for p in g["params"]}


def _of_torch(name: str) -> bool:
    return name in _COMMON


_COMMON = frozenset({"defaults", "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks",
                     "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
                     "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
                     "_zero_grad_profile_name", "_warned_capturable_if_run_uncaptured", "_opt_called",
                     "_step_count", "_need_device_dtype_check_for_fused", "_step_supports_amp_scaling"})
"""What torch itself, its schedulers and its scaler put on every optimizer."""


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor], depth: int = 6) -> Any:
    """With tensors changed, also those that are keys. Raises NotKept for anything else that could be shared."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if value is None or isinstance(value, (bool, int, float, complex, str, torch.dtype, torch.device)):
        return value
    if not depth:
        raise NotKept("it holds too deep a container")
    if type(value) in (dict, defaultdict, OrderedDict):
        made = value.copy()
        made.clear()
        made.update((change(k) if isinstance(k, torch.Tensor) else k, _mapped(v, change, depth - 1))
                    for k, v in value.items())
        return made
    if type(value) in (list, tuple, set):
        return type(value)(_mapped(v, change, depth - 1) for v in value)
    raise NotKept(f"it holds a {type(value).__name__}")


def _equal(a: list[torch.Tensor] | None, b: list[torch.Tensor] | None) -> bool:
    return a is not None and b is not None and all(map(torch.equal, a, b))


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(_alike(x, y) for x, y in zip(a.values(), b.values(), strict=True))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_alike(x, y) for x, y in zip(a, b, strict=True))
    return bool(type(a) is type(b) and a == b)


def _difference(optimizer: torch.optim.Optimizer, a: list[torch.Tensor] | None, b: list[torch.Tensor] | None) -> float:
    if a is None or b is None:
        return float("inf")
    start = [p.detach() for p in _own(optimizer).values()]
    size = max((float((x - s).abs().max()) for x, s in zip(a, start, strict=True) if x.numel()), default=0.0)
    gap = max((float((x - y).abs().max()) for x, y in zip(a, b, strict=True) if x.numel()), default=0.0)
    return gap / size if size else float("inf")
