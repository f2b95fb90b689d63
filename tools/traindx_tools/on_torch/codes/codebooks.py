"""Codebooks of a model, found by structure: a table of codes inside a module that quantises.

A module counts as a quantiser when its class says so (VectorQuantizer, VQ, RVQ, FSQ, LFQ, Codebook, ...). Its table is
the parameter, buffer or embedding of shape (codes, width) directly in it or one level below; finite scalar and
lookup-free quantisers have none, and their size is read from their own attributes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

_QUANTISER = re.compile(r"quanti[sz]e|quanti[sz]er|(^|[a-z])VQ|^VQ|RVQ|FSQ|LFQ|BSQ|codebook", re.IGNORECASE)
_NOT = re.compile(r"quantstub|fakequant|observer|linear|int8|fp8|bnb|gptq|awq", re.IGNORECASE)
"""Quantisation of weights is something else."""
_TABLE = re.compile(r"^(embed|embedding|embeddings|codebook|codebooks|codes|weight|codes_weight|centroids|dictionary)$")
_SIZE = ("codebook_size", "n_codes", "num_codes", "num_embeddings", "n_embed", "n_e", "K", "num_embed")


@dataclass(frozen=True)
class Codebook:
    """One codebook: the quantiser's path, the module itself, the table or None, and how many codes there are."""

    path: str
    module: torch.nn.Module
    table_path: str | None
    size: int
    lookup: torch.nn.Module | None
    """The embedding whose input are the indices, where there is one."""

    @property
    def table(self) -> torch.Tensor | None:
        """The (codes, width) table as it is now; None for quantisers without one."""
        if self.table_path is None:
            return None
        owner, _, name = self.table_path.rpartition(".")
        found = getattr(self.module.get_submodule(owner) if owner else self.module, name, None)
        return found if isinstance(found, torch.Tensor) else None


def find_codebooks(model: torch.nn.Module) -> tuple[Codebook, ...]:
    """The codebooks of a model, the innermost quantiser of each; () where there are none."""
    found = []
    for path, module in model.named_modules():
        if not _quantises(module) or any(_quantises(m) for m in module.modules() if m is not module):
            continue
        if (book := _codebook(path, module)) is not None:
            found.append(book)
    return tuple(found)


def _quantises(module: torch.nn.Module) -> bool:
    name = type(module).__name__
    return bool(_QUANTISER.search(name)) and not _NOT.search(name)


def _codebook(path: str, module: torch.nn.Module) -> Codebook | None:
    for name, table in _tables(module):
        owner = module.get_submodule(name.rpartition(".")[0]) if "." in name else module
        lookup = owner if isinstance(owner, torch.nn.Embedding) else None
        return Codebook(path, module, name, int(table.shape[0]), lookup)
    size = _declared_size(module)
    return Codebook(path, module, None, size, None) if size else None


def _tables(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    named = [*module.named_parameters(), *module.named_buffers()]
    size = _declared_size(module)
    for name, tensor in sorted(named, key=lambda item: item[0].count(".")):
        named_so = _TABLE.match(name.rpartition(".")[2]) is not None
        if name.count(".") <= 1 and tensor.dim() == 2 and tensor.shape[0] >= 4 and named_so and (
                size in (0, tensor.shape[0])):
            yield name, tensor


def _declared_size(module: torch.nn.Module) -> int:
    for name in _SIZE:
        value = getattr(module, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 2:
            return value
    levels: Any = getattr(module, "levels", None) or getattr(module, "_levels", None)
    if isinstance(levels, torch.Tensor):
        levels = levels.tolist()
    if isinstance(levels, (list, tuple)) and levels and all(isinstance(v, int) and v > 1 for v in levels):
        return math.prod(levels)
    return 0


def indices_in(output: Any, size: int) -> torch.Tensor | None:
    """The first integer tensor of an output that can hold code indices, or None."""
    if isinstance(output, torch.Tensor):
        return output if not output.is_floating_point() and output.dtype != torch.bool and output.dim() else None
    values = output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ()
    return next((t for v in values if (t := indices_in(v, size)) is not None), None)


def nearest(z: torch.Tensor, table: torch.Tensor, most: int = 4096) -> torch.Tensor | None:
    """Index of the nearest code for up to `most` vectors of `z`, along the axis that is as wide as the table.

    The last axis is preferred, then the second (channels first). None where no axis fits.
    """
    vectors = _vectors(z, table.shape[1], most)
    return None if vectors is None else torch.cdist(vectors, table.detach().float()).argmin(1)


def _vectors(z: torch.Tensor, width: int, most: int) -> torch.Tensor | None:
    """float32 shape (up to `most`, width): the vectors of `z` along the axis of that width; None where none has it."""
    if z.dim() < 2 or not z.is_floating_point():
        return None
    if z.shape[-1] == width:
        vectors = z.reshape(-1, width)
    elif z.dim() > 2 and z.shape[1] == width:
        vectors = z.movedim(1, -1).reshape(-1, width)
    else:
        return None
    return vectors[:: max(1, len(vectors) // most)][:most].detach().float()


def spread_ratio(z: torch.Tensor, table: torch.Tensor, most: int = 4096) -> torch.Tensor | None:
    """How far the codes lie from their mean over how far the vectors of `z` lie from theirs (root mean squares), as one
    number on the device; None where no axis of `z` is as wide as the table."""
    vectors = _vectors(z, table.shape[1], most)
    if vectors is None or len(vectors) < 2 or len(table) < 2:
        return None
    codes = table.detach().float()
    return codes.var(0).sum().sqrt() / vectors.var(0).sum().sqrt().clamp_min(1e-30)
