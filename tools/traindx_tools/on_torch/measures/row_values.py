"""The rows of what a model is given, as small matrices on their own device; nothing here waits for a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from traindx_tools.rows.profile import MOST_FEATURES, MOST_IDS

WIDTH = 128
"""Values of a row that are kept."""
MOST_VALUES = 2**20
"""Values of one tensor that are read at one look, 2**18 for features."""
SIDE = ("mask", "position", "timestep", "token_type", "cache", "bias")
"""Arguments beside the data."""
ANSWERS = ("label", "labels", "target", "targets")
"""Arguments of models that make their loss themselves."""


def inputs_of(named: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The arguments that hold data: those with the rows of the largest one, without masks and positions."""
    able = {n: t for n, t in named.items() if t.ndim and t.numel() and not t.is_complex()
            and not any(word in n.lower() for word in SIDE)}
    able = {n: t for n, t in able.items() if n not in ANSWERS} or able
    if not able:
        return {}
    main = max(able.values(), key=lambda t: t.numel())
    return {n: t for n, t in able.items() if t.shape[0] == main.shape[0] and t.dtype != torch.bool}


def answer_in(named: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    """The labels among the arguments of a model that computes its own loss."""
    return next((t for n, t in named.items() if n in ANSWERS and not t.is_complex()), None)


def row_matrix(inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, bool]:
    """float32 shape (rows, 3 + values): mean, standard deviation and largest absolute value of the rows of the largest
    input, then evenly spaced values of each; and whether these are all values."""
    main = max(inputs, key=lambda t: t.numel())
    rows = len(main)
    flat = main.detach().reshape(rows, -1)
    step = max(1, -(-flat.numel() // MOST_VALUES))
    seen = flat[:, ::step].to(torch.float32)
    std = seen.std(1, unbiased=False) if seen.shape[1] > 1 else seen.new_zeros(rows)
    parts = [torch.stack([seen.mean(1), std, seen.abs().amax(1)], 1)]
    share, whole = max(1, WIDTH // len(inputs)), True
    for t in inputs[:WIDTH]:
        values = t.detach().reshape(rows, -1)
        stride = -(-values.shape[1] // share)
        whole &= stride == 1
        parts.append(values[:, ::stride].to(torch.float32))
    return torch.cat(parts, 1), whole


def is_ids(t: torch.Tensor) -> bool:
    """Whether these are token ids: whole numbers of shape (rows, T)."""
    return t.dtype in (torch.int64, torch.int32, torch.int16) and t.ndim == 2 and t.shape[1] > 1


def feature_axis(t: torch.Tensor) -> int:
    """The axis along which features lie: channels of pictures and of signals, columns of everything else."""
    if t.ndim >= 4:
        return t.ndim - 1 if t.shape[-1] in (1, 3, 4) and t.shape[1] not in (1, 3, 4) else 1
    return t.ndim - 1


def profile_vector(t: torch.Tensor) -> torch.Tensor:
    """What `rows.profile.Profile.of` takes, on the tensor's device."""
    t = t.detach()
    if t.numel() > MOST_VALUES // 4:
        t = t[:max(1, (MOST_VALUES // 4) // max(1, t[0].numel()))]
    x = t.to(torch.float32)
    head = [x.amin(), x.amax(), (x == x.round()).to(torch.float32).mean(), torch.isnan(x).to(torch.float32).mean(),
            x.mean(), x.std(unbiased=False) if x.numel() > 1 else x.new_zeros(())]
    if is_ids(t):
        ids = t.reshape(-1).clamp(0, MOST_IDS - 1).to(torch.int64)
        rest = [x.new_zeros(MOST_IDS).index_add_(0, ids, x.new_ones(len(ids)))]
    else:
        rest = list(_moments(x))
    return torch.cat([torch.stack(head), *rest])


def _moments(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if x.ndim < 2:
        flat = x.reshape(-1, 1)
    else:
        moved = x.movedim(feature_axis(x), -1)
        flat = moved.reshape(-1, moved.shape[-1])
        flat = flat[:, ::max(1, -(-flat.shape[1] // MOST_FEATURES))]
    return flat.mean(0), flat.std(0, unbiased=False)
