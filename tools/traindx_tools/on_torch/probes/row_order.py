"""Always on: does the loss need its rows in an order that the loader does not keep (T730)? Asked of the copied step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.row_order import row_order
from traindx_tools.on_torch.captured.step import StepCopy
from traindx_tools.on_torch.drawn import Draw
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.rules import t730_row_order


def loader_of(draw: Draw) -> str:
    """In words."""
    return f"the loader of {type(draw.whole).__name__}"


def asked(step: StepCopy, scene: Scene) -> Iterator[Finding]:
    """What is told of one step; where the loader keeps an order, or has one of its own, that the loss needs one is a
    remark."""
    draw: Draw | None = scene.draw
    if draw is None:
        return
    found: Any = None
    with contextlib.suppress(NotKept):
        found = row_order(step, scene.batch, len(draw.index))
    if found is None:
        return
    if draw.by_chance:
        yield from t730_row_order.check(found, loader_of(draw), scene.step, scene.recorder.rank)
    else:
        scene.program.remarks.append(
            f"the loss of a batch depends on the order of its rows ({found.loss:.4g}, in other orders "
            f"{found.others[0]:.4g}); {loader_of(draw)} has an order of its own: shuffling would change what is "
            "trained")
