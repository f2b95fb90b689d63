"""Why a term of the loss is exactly 0: switched off by a weight, masked, alive all the same, or dead.

Only the algebra right behind the term is looked at: from the term backwards through operations with one differentiable
input. There a factor that no gradient flows through and that is 0 is the program's own decision. Where there is none,
the gradient of the term decides: a term can be 0 and pull (a difference from its own detached copy), or be 0 and not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

OFF, MASKED, ALIVE, DEAD, UNKNOWN = "off", "masked", "alive", "dead", "unknown"
LONGEST = 16
"""Operations behind a term that are looked at: a weight or a mask stands near the reduction."""
_FACTORS = {"Mul": ("_saved_self", "_saved_other"), "Where": ("_saved_condition",)}


def why_zero(term: torch.Tensor, parameters: Sequence[torch.nn.Parameter]) -> str:
    """One of `OFF`, `MASKED`, `ALIVE`, `DEAD`, `UNKNOWN` for a scalar with a graph whose value is 0.

    Costs a backward pass of this term where no factor explains the value. Changes no `.grad`.
    """
    try:
        chain = list(_chain(term.grad_fn))
        sizes = [f.numel() for node in chain for f in _zero_factors(node)]
        if sizes:
            return OFF if min(sizes) == 1 else MASKED
        return MASKED if any(_of_nothing(node) for node in chain) else _pull(term, parameters)
    except RuntimeError:  # a graph that was changed in place, or that cannot be walked twice
        return UNKNOWN


def _chain(node: Any) -> Iterator[Any]:
    """The operations from the term back to the first one with several inputs that have a gradient."""
    for _ in range(LONGEST):
        if node is None:
            return
        yield node
        following = [n for n, _ in node.next_functions if n is not None]
        node = following[0] if len(following) == 1 else None


def _zero_factors(node: Any) -> Iterator[torch.Tensor]:
    """Constant factors of an operation that are 0 everywhere."""
    for kind, names in _FACTORS.items():
        if node.name().startswith(f"{kind}Backward"):
            saved = (getattr(node, name, None) for name in names)
            yield from (s for s in saved if isinstance(s, torch.Tensor) and not s.requires_grad
                        and s.numel() and not bool(s.any()))


def _of_nothing(node: Any) -> bool:
    """Whether an operation gave no value at all: what was picked out by a mask is empty."""
    made: Any = getattr(node, "_input_metadata", None)
    return bool(made) and 0 in tuple(made[0].shape)


def _pull(term: torch.Tensor, parameters: Sequence[torch.nn.Parameter]) -> str:
    wanted = [p for p in parameters if p.requires_grad and type(p) is torch.nn.Parameter]
    if not wanted or (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return UNKNOWN  # wrappers that share parameters among ranks listen to every backward pass
    gradients = torch.autograd.grad(term, wanted, retain_graph=True, allow_unused=True)
    there = [g for g in gradients if g is not None]
    return UNKNOWN if not there else ALIVE if any(bool(g.any()) for g in there) else DEAD
