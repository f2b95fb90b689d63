"""The counts of steps that a checkpoint keeps: of the run, the optimizer, the schedule; and the one in its path."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.tensor import Tensor

_COUNTS = re.compile(r"(?i)^(?:global_?|gradient_|num_|opt(?:imizer)?_|train(?:ing)?_|inner_|outer_|_)?"
                     r"(?:count|steps?|step_count|iterations?|iters?|updates|num_updates)$|^last_epoch$")
"""Names of counts of steps. What counts parts of a step (`mini_step`) or rows (`total_count`) is called otherwise."""
_INTEGERS = frozenset({"int32", "int64", "uint32", "int16", "uint8", "uint64"})
_IN_PATH = re.compile(r"(?i)(?:^|[^a-z])(?:check_?point|ckpt|global_?step|steps?|iter(?:ation)?s?|it|update|state)"
                      r"[_.=\-]*(\d+)(?=[._\-]|$)")
MOST = 2**50


def counters_of(checkpoint: Checkpoint) -> dict[str, int]:
    """By the name in the file, the counts of steps; of the parameters of one optimizer the most frequent one."""
    found: dict[str, int] = {}
    for name, value in _scalars(checkpoint):
        if _COUNTS.match(name.rpartition(".")[2]) and 0 <= value <= MOST:
            found[name] = value
    for optimizer in checkpoint.optimizers:
        steps = Counter(s for state in optimizer.state.values() if isinstance(state, Mapping)
                        if (s := _whole(state.get("step"))) is not None)
        if steps:
            found[f"{optimizer.key}.step".lstrip(".")] = steps.most_common(1)[0][0]
    return found


def _scalars(checkpoint: Checkpoint) -> Iterator[tuple[str, int]]:
    for part in checkpoint.parts:
        for name, tensor in part.tensors.items():
            if tensor.size == 1 and tensor.dtype in _INTEGERS:
                value = _whole(tensor)
                if value is not None:
                    yield tensor.key or f"{part.key}.{name}".lstrip("."), value
    for key, said in checkpoint.values.items():
        value = _whole(said)
        if value is not None:
            yield key, value


def _whole(value: object) -> int | None:
    if isinstance(value, Tensor):
        if value.size != 1:
            return None
        value = value.load().reshape(-1)[0].item()
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else None


def named_step(path: str) -> int | None:
    """The step that the path of a checkpoint says: `global_step400`, `state_000350.msgpack`, a folder called `600`."""
    pieces = [p for p in os.path.abspath(path).split(os.sep) if p][-2:]
    for piece in reversed(pieces):
        if piece.isdigit():
            return int(piece)
        if (found := _IN_PATH.search(piece)) is not None:
            return int(found[1])
    return None
