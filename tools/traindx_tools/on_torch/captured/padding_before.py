"""Whether what stands before a sequence as padding changes what the model says of it: the same sequence without it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from traindx_tools.on_torch.captured.call import KeptCall
from traindx_tools.on_torch.captured.trial import Trial, change_of
from traindx_tools.on_torch.measures.batch import SIDE

LEAST, SHORTEST = 2, 4
"""Padded positions, in at least so many rows; places of a row."""


@dataclass(frozen=True)
class Before:
    """One sequence of `length` real positions, run with `padded` ones before it and without.

    `largest`: the largest change of its output, in standard deviations; `told`: another argument had the same form.
    """

    argument: str
    token: int
    length: int
    padded: int
    largest: float
    told: bool


def begins_of(ids: torch.Tensor) -> tuple[int, torch.Tensor] | None:
    """The id with which rows, shape (B, T), are filled up before their content, and where the content begins; None
    where they are not. The id stands nowhere else, and rows have different lengths."""
    token = int(ids[:, 0].mode().values)
    starts = (ids != token).to(torch.int64).argmax(1)
    inside = (ids == token) & (torch.arange(ids.shape[1], device=ids.device)[None] >= starts[:, None])
    filled = starts >= LEAST
    if int(filled.sum()) < LEAST or bool((ids == token).all(1).any()) or bool(inside.any()):
        return None
    return (token, starts) if int(starts.min()) < int(starts.max()) else None


def is_ids(name: str, tensor: torch.Tensor) -> bool:
    """Whether an argument can hold ids of positions in rows."""
    return (tensor.ndim == 2 and tensor.shape[1] >= SHORTEST and tensor.dtype in (torch.int64, torch.int32)
            and not any(word in name.lower() for word in SIDE))


def begins_in(call: KeptCall) -> tuple[str, int, torch.Tensor] | None:
    """The argument whose rows are filled up before their content, with the id and where each row begins."""
    for name, t in call.tensors.items():
        found = begins_of(t) if is_ids(name, t) and t.shape[0] > 1 else None
        if found is not None:
            return name, *found
    return None


def padding_before(trial: Trial) -> Before | None:
    """What cutting the padding off changes; None where no row has any, or where the forms do not fit."""
    found = begins_in(trial.call)
    index = trial.main_index
    if found is None or index is None:
        return None
    name, token, starts = found
    shape, row = trial.call.tensors[name].shape, int(starts.argmax())
    begin, width = int(starts[row]), shape[1]
    if width - begin < LEAST:
        return None

    def alone(_: str, t: torch.Tensor) -> torch.Tensor:
        return t[row:row + 1] if t.ndim and t.shape[0] == trial.rows else t

    def cut(called: str, t: torch.Tensor) -> torch.Tensor:
        part = alone(called, t)
        return part[:, begin:] if t.ndim >= 2 and t.shape[:2] == shape else part

    whole, short = (trial.ask(trial.call.with_tensors(change))[index] for change in (alone, cut))
    if whole.ndim >= 2 and whole.shape[1] == width:
        whole = whole[:, begin:]
    if whole.shape != short.shape or not bool(change_of(whole, short).any()):
        return None
    scale = float(trial.base[index].float().std()) or 1.0
    told = any(n != name and t.shape == shape for n, t in trial.call.tensors.items())
    return Before(name, token, width - begin, begin, float((whole.float() - short.float()).abs().max()) / scale, told)
