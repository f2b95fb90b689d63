"""Training and sampling must agree: the log-probability ratio before the first update, and why logits differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.rules import t952_log_prob_ratio


def check_log_prob_ratio(sampled: torch.Tensor, recomputed: torch.Tensor, mask: torch.Tensor | None = None, *,
                         step: int = 0, source: str = "log-prob ratio check") -> tuple[Finding, ...]:
    """T952 where exp(recomputed - sampled) is not 1 before the first update.

    `sampled`, `recomputed`: log-probabilities of the same tokens, same shape, natural logarithm; `mask`: true where a
    token counts. Raises ValueError for different shapes or a mask that leaves nothing.
    """
    if sampled.shape != recomputed.shape:
        raise ValueError(f"expected two tensors of one shape, got {tuple(sampled.shape)} and {tuple(recomputed.shape)}")
    counts = torch.ones_like(sampled, dtype=torch.bool) if mask is None else mask.bool().expand_as(sampled)
    if not bool(counts.any()):
        raise ValueError("the mask leaves no token: give one that is true for the sampled tokens")
    gap = (recomputed.detach().double() - sampled.detach().double())[counts].cpu()
    coarse = any(t.dtype in (torch.bfloat16, torch.float16) for t in (sampled, recomputed))
    return tuple(t952_log_prob_ratio.check(_Gap.of(gap, coarse), step, source))


@dataclass(frozen=True)
class _Gap:
    """What T952 judges: over counted tokens, the mean and largest |log ratio|, its mean, how many are not finite."""

    tokens: int
    mean_abs: float
    largest: float
    mean: float
    not_finite: int
    coarse: bool

    @classmethod
    def of(cls, gap: torch.Tensor, coarse: bool) -> _Gap:
        finite = gap[torch.isfinite(gap)]
        if not len(finite):
            return cls(len(gap), float("inf"), float("inf"), float("nan"), len(gap), coarse)
        return cls(len(gap), float(finite.abs().mean()), float(finite.abs().max()), float(finite.mean()),
                   len(gap) - len(finite), coarse)


@dataclass(frozen=True)
class LogitsDifference:
    """Why two sets of logits for the same positions differ. `why`: "same", "temperature", "shifted", "truncated",
    "rounding" or "unexplained"; `value` is the temperature, the shift in positions or the share that was cut."""

    why: str
    value: float
    residual: float
    """Relative difference that stays after the explanation."""


def explain_logits(a: torch.Tensor, b: torch.Tensor) -> LogitsDifference:
    """Compares two (..., positions, vocabulary) tensors up to a constant for each position, as softmax does.

    Tried in order: equal; `b` cut to top-k or top-p (-inf); `b = a / temperature`; one shifted by one position;
    rounding of a coarser dtype. Raises ValueError for different shapes.
    """
    if a.shape != b.shape or a.dim() < 2:
        raise ValueError(f"expected two tensors (..., positions, vocabulary) of one shape, got {tuple(a.shape)} "
                         f"and {tuple(b.shape)}")
    return next(_explanations(a.detach().double().cpu(), b.detach().double().cpu(), _eps(a, b)))


def _eps(a: torch.Tensor, b: torch.Tensor) -> float:
    return max(torch.finfo(t.dtype).eps for t in (a, b))


def _explanations(a: torch.Tensor, b: torch.Tensor, eps: float) -> Iterator[LogitsDifference]:
    cut = torch.isneginf(b) & ~torch.isneginf(a)
    kept = torch.isfinite(a) & torch.isfinite(b)
    one, other = _centred(a, kept), _centred(b, kept)
    gap = _gap(one, other)
    if bool(cut.any()) and gap <= 64 * eps:
        yield LogitsDifference("truncated", float(cut.double().mean()), gap)
    if gap <= 8 * eps:
        yield LogitsDifference("same", 0.0, gap)
    slope = float((one * other).sum() / (one * one).sum().clamp_min(1e-300))
    if slope > 0 and abs(slope - 1) > 0.01 and (left := _gap(one * slope, other)) <= max(0.02 * gap, 64 * eps):
        yield LogitsDifference("temperature", 1 / slope, left)
    for shift in (1, -1):
        if a.shape[-2] > 2 and (left := _shifted(a, b, shift)) <= max(0.02 * gap, 64 * eps):
            yield LogitsDifference("shifted", float(shift), left)
    if gap <= 64 * eps:
        yield LogitsDifference("rounding", 0.0, gap)
    yield LogitsDifference("unexplained", 0.0, gap)


def _centred(x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    count = kept.sum(-1, keepdim=True).clamp_min(1)
    mean = torch.where(kept, x, 0.0).sum(-1, keepdim=True) / count
    return torch.where(kept, x - mean, 0.0)


def _gap(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(a - b) / torch.linalg.vector_norm(a).clamp_min(1e-300))


def _shifted(a: torch.Tensor, b: torch.Tensor, shift: int) -> float:
    one, other = (a[..., :-1, :], b[..., 1:, :]) if shift == 1 else (a[..., 1:, :], b[..., :-1, :])
    kept = torch.isfinite(one) & torch.isfinite(other)
    return _gap(_centred(one, kept), _centred(other, kept))
