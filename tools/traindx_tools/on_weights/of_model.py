"""A model's names and shapes, laid beside a checkpoint: what a load by name would leave as it was initialised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, Part
from traindx_tools.on_weights.tensor import STORED, InMemory, Tensor


def model_as_checkpoint(name: str, tensors: Mapping[str, tuple[str, Sequence[int]]]) -> Checkpoint:
    """Names, types and shapes of a model's state as a checkpoint that holds no values.

    `tensors`: (dtype, shape) by name. Raises UnreadableInput for a model without tensors.
    """
    if not tensors:
        raise UnreadableInput(f"{name} has no parameters and no buffers: nothing can be matched by name")
    made = {n: Tensor(n, dtype if dtype in STORED else "float32", tuple(shape), InMemory(b""), name)
            for n, (dtype, shape) in tensors.items()}
    return Checkpoint(name, "model", (Part("", made),))
