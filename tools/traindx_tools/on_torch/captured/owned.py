"""Samples that lie one behind the other in the rows of a call: graphs of a batch, packed sequences.

Which sample a row belongs to stands among the arguments: a number for each row that rises from 0 (`batch` of graphs),
or the places where samples begin and end (`cu_seqlens`, `ptr`). An edge whose offset is that of another sample, an
attention over the whole pack or a sum by the wrong numbers lets one sample read another's rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch

from traindx_tools.on_torch.captured.call import KeptCall, NotKept
from traindx_tools.on_torch.captured.questions import Mixed, normalises_alone
from traindx_tools.on_torch.captured.trial import Trial, change_of

FEWEST, ASKED = 3, 6
"""Samples of a call, and how many of them are asked about."""


def owners_of(tensors: Iterable[torch.Tensor]) -> torch.Tensor | None:
    """The sample of each row, int64 shape (rows,), rising; None where rows are samples or nothing tells.

    Arguments with rows of another kind (queries beside a support set) make it a comparison, unless they are edges.
    Where no argument has numbers of its own for a row, two lists of whole numbers of one length (kinds, owners) do.
    """
    given = [t for t in tensors if t.ndim]
    sizes = {t.shape[0] for t in given if t.is_floating_point()}
    if not sizes:
        lengths = Counter(len(t) for t in given if t.ndim == 1 and t.dtype != torch.bool)
        sizes = {n for n, times in lengths.most_common(1) if times > 1}
    edges = {t.shape[1] for t in given if not t.is_floating_point() and t.ndim == 2 and t.shape[0] == 2}
    for t in given:
        if t.ndim != 1 or t.is_floating_point() or t.dtype == torch.bool or len(t) <= FEWEST or t.is_cuda:
            continue
        owner = _numbered(t) if len(t) in sizes else _between(t, sizes)
        if owner is not None and sizes - {len(owner)} <= edges:
            return owner
    return None


def _numbered(t: torch.Tensor) -> torch.Tensor | None:
    steps = t[1:] - t[:-1]
    rising = int(t[0]) == 0 and bool(((steps == 0) | (steps == 1)).all())
    return t.long() if rising and FEWEST <= int(t[-1]) + 1 < len(t) else None


def _between(t: torch.Tensor, sizes: set[int]) -> torch.Tensor | None:
    lengths = t[1:] - t[:-1]
    if int(t[0]) or int(t[-1]) not in sizes or not bool((lengths > 0).all()) or len(lengths) >= int(t[-1]):
        return None
    return torch.repeat_interleave(torch.arange(len(lengths)), lengths.long().cpu())


def samples_of_rows(trial: Trial) -> Mixed | None:
    """As `questions.samples`: one row takes the place of all rows of others, and one sample's output is looked at."""
    call: KeptCall = trial.call
    owner = call.owner
    if owner is None or not normalises_alone(trial.model):
        return None
    count, rows = int(owner[-1]) + 1, len(owner)
    index = next((i for size in (count, rows) for i, t in enumerate(trial.base) if t.ndim and t.shape[0] == size), None)
    if index is None:
        raise NotKept("its output has no row for each sample")
    before = trial.base[index]
    most = Mixed(count, 0.0)
    for sample in range(0, count, max(1, count // ASKED)):
        others = (owner != sample).nonzero().flatten()
        order = torch.arange(rows)
        order[others] = others[0]  # their order alone would not matter to an attention
        after = trial.ask(call.with_tensors(
            lambda _, t, to=order: t[to] if t.ndim and t.shape[0] == rows and not _tells(t, owner) else t))
        if len(after) <= index or after[index].shape != before.shape:
            raise NotKept("the output has another form than before")
        own = change_of(before, after[index])[sample if before.shape[0] == count else owner == sample]
        if float(own.max()) > most.largest:
            most = Mixed(count, float(own.max()), sample)
    return most if most.largest else None


def _tells(t: torch.Tensor, owner: torch.Tensor) -> bool:
    return t.shape == owner.shape and not t.is_floating_point() and torch.equal(t.long().cpu(), owner)
