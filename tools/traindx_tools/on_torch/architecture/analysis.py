"""Parameter counts and where they lie: by top-level part, by kind of layer, trainable or frozen, tied or not."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.architecture.counts import Counts
from traindx_tools.on_torch.rules import t901_embedding_heavy

KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("embedding", ("Embedding", "EmbeddingBag")),
    ("normalisation", ("Norm",)),
    ("attention", ("MultiheadAttention", "Attention")),
    ("convolution", ("Conv",)),
    ("recurrent", ("LSTM", "GRU", "RNN")),
    ("linear", ("Linear", "Conv1D")),
)
"""Kind of a layer by what its class name contains; the first that fits."""


@dataclass(frozen=True)
class Architecture(Counts):
    """A model's counts, and what they say."""

    def findings(self, source: str = "architecture") -> tuple[Finding, ...]:
        """T901 where embeddings hold most of the parameters and the trunk few."""
        return tuple(t901_embedding_heavy.check(self, source))


def analyze_architecture(model: torch.nn.Module, batch: Any = None) -> Architecture:
    """Counts a model's parameters; with a batch, also the FLOPs of one forward pass.

    `batch`: a tensor, a tuple of arguments or a dict of keywords for `model`, run on a copy in evaluation mode without
    gradients. Counting changes nothing and copies nothing. FLOPs follow `torch.utils.flop_counter`: two a multiply-add
    of matrix products, convolutions and attention; None without a batch.
    """
    owners: dict[int, str] = {}
    tied, sizes = [], []
    by_part: dict[str, int] = {}
    by_kind: dict[str, int] = {}
    for path, p in model.named_parameters(remove_duplicate=False):
        if id(p) in owners:
            tied.append((owners[id(p)], path))
            continue
        owners[id(p)] = path
        sizes.append((path, tuple(p.shape), p.numel()))
        part = path.split(".")[0] if "." in path else "(root)"
        kind = _kind(model, path)
        by_part[part] = by_part.get(part, 0) + p.numel()
        by_kind[kind] = by_kind.get(kind, 0) + p.numel()
    unique = list(model.parameters())
    return Architecture(
        sum(n for *_, n in sizes), sum(p.numel() for p in unique if p.requires_grad),
        sum(p.numel() * p.element_size() for p in unique), by_part,
        dict(sorted(by_kind.items(), key=lambda item: -item[1])), tuple(tied),
        sum(1 for m in model.modules() if next(m.parameters(recurse=False), None) is not None),
        tuple(sorted(sizes, key=lambda s: -s[2])[:10]), None if batch is None else count_flops(model, batch))


def _kind(model: torch.nn.Module, path: str) -> str:
    owner = path.rpartition(".")[0]
    name = type(model.get_submodule(owner)).__name__ if owner else type(model).__name__
    return next((kind for kind, words in KINDS if any(w in name for w in words)), "other")


def count_flops(model: torch.nn.Module, batch: Any) -> int:
    """FLOPs of one forward pass on a copy of the model in evaluation mode."""
    from torch.utils.flop_counter import FlopCounterMode

    from traindx_tools.on_torch.comparison.compare import call

    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        call(copy.deepcopy(model).eval(), batch)
    return int(counter.get_total_flops())
