"""Members of a stack among which a matrix beside them chooses: experts and their router, whatever they are called.

A router has one line for each member. Members that are copies of each other and whose lines differ get other tokens,
and other gradients with the first step: copies that are still the same after steps were counted were never trained
apart, or one was written over the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.on_weights.trained import steps_of

MOST_BYTES = 2**26
_APART = 0.2
"""Of their norm, by which two lines of a router differ at least."""


def routed_copies(seen: Seen, pattern: str, indexes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> str:
    """The router that sends other inputs to the members of each pair, which counted steps should have told apart.

    "" where there is none, or where all members are copies of one, as they are made from a dense layer.
    """
    if len({b for _, b in pairs}) >= len(indexes) - 1 or not steps_of(seen.checkpoint):
        return ""
    router = _router(seen, pattern, len(indexes))
    if router is None or list(indexes) != list(range(len(indexes))):
        return ""
    lines = router.load(MOST_BYTES).astype(np.float64)
    lines = lines if lines.shape[0] == len(indexes) else lines.T
    sizes = np.linalg.norm(lines, axis=1)
    apart = [float(np.linalg.norm(lines[a] - lines[b])) > _APART * max(sizes[a], sizes[b]) for a, b in pairs]
    return router.name if all(apart) else ""


def _router(seen: Seen, pattern: str, members: int) -> Tensor | None:
    """The only matrix with one line a member under the nearest module that holds the stack."""
    head = pattern.partition("*")[0].rstrip("./")
    while head:
        head = head.rpartition(".")[0]
        found = [t for n, t in seen.part.tensors.items() if n.startswith(f"{head}." if head else "") and t.floating
                 and len(t.shape) == 2 and members in t.shape and t.shape[0] != t.shape[1] and t.nbytes <= MOST_BYTES]
        if found:
            return found[0] if len(found) == 1 else None
    return None
