"""Whether padding at the end of a sequence changes what the model says of the rest: the same sequence without it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from traindx_tools.on_torch.captured.call import KeptCall
from traindx_tools.on_torch.captured.trial import Trial, change_of
from traindx_tools.on_torch.rules.dependence import PADDING_MATTERS

LEAST = 2
"""Padded positions, in at least so many rows."""


@dataclass(frozen=True)
class Padding:
    """One sequence of `length` real positions, run with `padded` more and without."""

    argument: str
    token: int
    length: int
    padded: int
    largest: float
    """The largest change of its output, in standard deviations."""
    mask: bool
    """The model was given a mask of the same shape."""
    by_position: bool
    """The output has a value for each position; else one for the whole sequence, such as a mean."""


def padding(trial: Trial) -> Padding | None:
    """None where padding changes nothing, or where nothing says what is padding."""
    found = _padded(trial)
    return None if found is None else cut_off(trial, *found)


def cut_off(trial: Trial, name: str, token: int, lengths: torch.Tensor) -> Padding | None:
    """What changes when what stands behind the `lengths` of the rows of an argument is cut off; None for nothing."""
    tensor, out = trial.call.tensors[name], trial.main(trial.base)
    width = tensor.shape[1]
    row = int(lengths.argmin())
    length = int(lengths[row])
    if length < LEAST or width - length < LEAST:
        return None
    shape = tensor.shape[:2]

    def cut(_: str, t: torch.Tensor) -> torch.Tensor:
        part = t[row:row + 1] if t.ndim and t.shape[0] == trial.rows else t
        return part[:, :length] if t.ndim >= 2 and t.shape[:2] == shape else part

    def alone(_: str, t: torch.Tensor) -> torch.Tensor:
        return t[row:row + 1] if t.ndim and t.shape[0] == trial.rows else t

    index = trial.main_index
    assert index is not None
    whole, short = (trial.ask(trial.call.with_tensors(change))[index] for change in (alone, cut))
    if out.ndim >= 2 and whole.ndim >= 2 and whole.shape[1] == width:
        whole = whole[:, :length]
    by_position = out.ndim >= 2 and out.shape[1] == width
    if whole.shape != short.shape:
        return None
    scale = float(out.float().std()) or 1.0
    largest = float((whole.float() - short.float()).abs().max()) / scale
    if largest < PADDING_MATTERS or not bool(change_of(whole, short).any()):
        return None
    masked = _has_mask(trial.call, name, tensor, lengths_of(tensor, token))
    return Padding(name, token, length, width - length, largest, masked, by_position)


def _padded(trial: Trial) -> tuple[str, int, torch.Tensor] | None:
    """An argument of ids whose rows end in runs of one id that occurs nowhere else, and which a table of the model, a
    mask or an ignored target names as padding."""
    for name, t in trial.call.tensors.items():
        if t.ndim != 2 or t.is_floating_point() or t.dtype == torch.bool or t.shape[0] != trial.rows or t.shape[1] < 4:
            continue
        token = int(t[:, -1].mode().values)
        lengths = lengths_of(t, token)
        rows = (t.shape[1] - lengths) >= LEAST
        inside = (t == token) & (torch.arange(t.shape[1], device=t.device)[None] < lengths[:, None])
        if int(rows.sum()) < LEAST or bool(rows.all() & (lengths == 0).all()) or bool(inside.any()):
            continue
        tables = any(m.padding_idx == token for m in trial.model.modules() if isinstance(m, torch.nn.Embedding)
                     and m.padding_idx is not None)
        if tables or _has_mask(trial.call, name, t, lengths):
            lengths = torch.where(rows, lengths, t.shape[1])
            return name, token, lengths
    return None


def lengths_of(t: torch.Tensor, token: int) -> torch.Tensor:
    """Of each row the elements up to the last one that is no padding."""
    real = t != token
    places = torch.arange(1, t.shape[1] + 1, device=t.device)[None]
    return (real * places).amax(1)


def _has_mask(call: KeptCall, name: str, ids: torch.Tensor, lengths: torch.Tensor) -> bool:
    """Another argument tells the same positions apart."""
    inside = torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]
    return any(n != name and t.shape == ids.shape and bool(((t != 0) == inside).all() | ((t != 0) == ~inside).all())
               for n, t in call.tensors.items())
