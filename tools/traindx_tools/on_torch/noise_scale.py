"""The gradient noise scale on request: of one model at its current weights, from batches given for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from traindx_tools.errors import BadUsage
from traindx_tools.on_torch.measures.noise_scale import NoiseScale, combined, from_norms

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

FEWEST = 2


def gradient_noise_scale(model: torch.nn.Module, loss: Callable[[torch.nn.Module, Any], torch.Tensor],
                         batches: Iterable[Any], size: int | None = None) -> NoiseScale:
    """The simple noise scale B_simple = tr(Sigma) / |G|^2 in samples; one forward and backward pass for each batch.

    `loss(model, batch)`: the mean loss over the samples of a batch, a scalar. `batches`: two or more of one size b,
    drawn independently. `size`: b, where the first dimension of a batch's first tensor is not its number of samples
    (for a language model, tokens). With n batches, the gradients g_i and their mean g,

        |G|^2 ~ (n |g|^2 - mean |g_i|^2) / (n - 1),    tr(Sigma) ~ b n (mean |g_i|^2 - |g|^2) / (n - 1)

    are unbiased (McCandlish et al. 2018, arXiv:1812.06162, A.2 with b and n b samples). Around eight batches and more
    make it steady. Changes no `.grad`, buffer, mode or random number; needs memory for one more gradient. Raises
    BadUsage where batches are fewer than two or of several sizes, or where the loss is no scalar with a graph.
    """
    import torch

    wanted = [p for p in model.parameters() if p.requires_grad]
    total: list[torch.Tensor | None] = [None] * len(wanted)
    squares: list[float] = []
    sizes: set[int] = set()
    with _unchanged(model), torch.enable_grad():
        for batch in batches:
            sizes.add(size if size is not None else _rows(batch))
            value = loss(model, batch)
            if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
                raise BadUsage("loss(model, batch) must return one number with a graph: the mean over "
                               "the batch's samples")
            gradients = torch.autograd.grad(value.sum(), wanted, allow_unused=True)
            squares.append(sum(_square(g) for g in gradients if g is not None))
            for i, g in enumerate(gradients):
                before = total[i]
                total[i] = before if g is None else g.detach().clone() if before is None else before.add_(g)
    if len(squares) < FEWEST or len(sizes) != 1 or min(sizes) < 1:
        raise BadUsage(f"the noise scale needs two or more batches of one size; got {len(squares)} of sizes "
                       f"{sorted(sizes)[:5]}. Leave out the last, shorter batch, or say what a batch holds as size=")
    n, rows = len(squares), sizes.pop()
    mean = sum(_square(t) for t in total if t is not None) / n**2
    return combined([from_norms(sum(squares) / n, mean, rows, n * rows)], batch=rows)


def _square(tensor: torch.Tensor) -> float:
    return float(tensor.detach().double().square().sum())


def _rows(batch: Any) -> int:
    """First dimension of a batch's first tensor; 0 where there is none."""
    from traindx_tools.on_torch.measures.batch import named_tensors

    return next((int(t.shape[0]) for _, t in named_tensors(batch) if t.ndim), 0)


@contextmanager
def _unchanged(model: torch.nn.Module) -> Iterator[None]:
    """Buffers (running statistics) and random numbers are afterwards what they were."""
    import torch

    kept = [(b, b.detach().clone()) for b in model.buffers()]
    devices = sorted({t.device.index or 0 for t in model.parameters() if t.is_cuda})
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        with torch.no_grad():
            for buffer, before in kept:
                buffer.copy_(before)
