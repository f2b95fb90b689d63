"""An adapter was merged into some tensors more or less often than into the others, or twice into all of them.

A low-rank adapter (LoRA) is merged by adding `scale * B A` to its weight. How often it is in there can be read without
the weights from before: the product is a direction that weights have nothing of by themselves, so that the projection
on it gives the scale, the more exactly the larger the matrix. The adapter is the file laid beside, or one that lies
beside the checkpoint and is called so. With the base as the second file the projection of the difference is exact.
What the scale should be the adapter's configuration says; twice that in all tensors alike is a model that was merged,
loaded with the adapter and merged again; as many times as the rank, alpha was taken as the scale and never divided.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import TraindxError
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.adapters import configuration_of, pairs
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.formats.reading import read_checkpoint
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_FEWEST = 4
_APART = 0.4
_EXACT = 0.05
_ERROR = 0.12
_MOST_BYTES = 2**27
_MOST_ADAPTER = 2**30
_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".npz")

RULE = Rule(
    id="W132",
    name="merged-times",
    title="An adapter was merged into some tensors otherwise than into the others",
    severity=Severity.HIGH,
    sees="the projection of each weight, or of its difference to the base, on the product of its adapter's matrices",
    matters="These layers are twice as far from the base as they were trained to be, lack the adapter, or have it "
            "the other way round.",
    alike=("a rank or a scale of its own for some layers: told as a remark where the adapter's matrices differ in rank",
           "an adapter that is not merged: the projection is zero everywhere",
           "adapters of several kinds that were added with weights of their own: seldom two or three exactly",
           "alpha over the root of the rank (rslora) for ranks 4 and 9, where it is twice or three times as large"),
    confirm=("subtract the named multiple and evaluate", "merge again from the base, each shard once"),
    thresholds={
        "apart": Threshold(_APART, "of the usual scale", "that a tensor's is off by"),
        "error": Threshold(_ERROR, "of the usual scale", "at most, that chance makes of a projection"),
        "exact": Threshold(_EXACT, "of two, three or rank times the stated scale", "that all are off at most"),
        "tensors": Threshold(_FEWEST, "tensors", "with an adapter"),
    },
)


@dataclass(frozen=True)
class _Merged:
    stats: Stats
    scale: float
    error: float
    rank: int
    turned: float = 0.0
    """The scale of the transposed product, where the matrix is square."""


def check(seen: Seen) -> Iterator[Finding]:
    """A finding for each number of times that is not the usual one."""
    if not seen.main or pairs(seen.part.tensors):
        return
    for adapter in _adapters(seen):
        made = list(_merged(seen, pairs({t.name: t for t in adapter.tensors})))
        if len(made) >= _FEWEST:
            yield from _judged(seen, adapter, made)
            return


def _adapters(seen: Seen) -> Iterator[Checkpoint]:
    """The second file, or what lies beside the first and is called an adapter."""
    if seen.other is not None and pairs(seen.other.part.tensors):
        yield seen.other.checkpoint
        return
    home = Path(seen.path) if os.path.isdir(seen.path) else Path(seen.path).parent
    for folder in (home, home.parent):
        try:
            here = sorted(folder.iterdir())[:200]
            inside = [p for d in here if d.is_dir() and _called(d.name) for p in sorted(d.iterdir())[:20]]
        except OSError:
            continue
        for path in [*(p for p in here if _called(p.stem)), *inside]:
            if path.suffix in _ENDINGS and path.is_file() and path.stat().st_size <= _MOST_ADAPTER:
                try:
                    found = read_checkpoint(str(path))
                except TraindxError:
                    continue
                if pairs({t.name: t for t in found.tensors}):
                    yield found


def _called(name: str) -> bool:
    return "adapter" in name.lower() or "lora" in name.lower()


def _merged(seen: Seen, pairs: Mapping[str, tuple[Tensor, Tensor]]) -> Iterator[_Merged]:
    by_module = {n.rpartition(".")[0]: s for n, s in seen.stats.items() if n.endswith(".weight") and s.tensor.matrix}
    for module, (down, up) in pairs.items():
        pieces = module.split(".")
        stats = next((by_module[m] for i in range(len(pieces)) if (m := ".".join(pieces[i:])) in by_module), None)
        if stats is None or stats.tensor.shape != (up.shape[0], down.shape[1]) or stats.tensor.nbytes > _MOST_BYTES:
            continue
        base = seen.other.stats.get(stats.name) if seen.other is not None else None
        weight = stats.tensor.load().astype(np.float64)
        if base is not None and base.tensor.shape == stats.tensor.shape:
            weight = weight - base.tensor.load().astype(np.float64)
        product = up.load().astype(np.float64) @ down.load().astype(np.float64)
        size = float((product**2).sum())
        if size > 0 and np.isfinite(weight).all():
            scale = float((weight * product).sum()) / size
            left = float(np.linalg.norm(weight - scale * product)) / math.sqrt(weight.size)
            turned = float((weight * product.T).sum()) / size if product.shape[0] == product.shape[1] else 0.0
            yield _Merged(stats, scale, left / math.sqrt(size), down.shape[0], turned)


def _said(adapter: Checkpoint) -> float | None:
    """The scale that the configuration beside an adapter says: alpha over its rank, or over its root."""
    config = configuration_of(adapter.path)
    try:
        alpha, rank = float(config["lora_alpha"]), float(config["r"])
        return alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        return None


def _by_file(made: Sequence[_Merged]) -> list[_Merged]:
    """All tensors of a file as one, each with the weight of its exactness."""
    files: dict[str, list[_Merged]] = {}
    for one in made:
        files.setdefault(one.stats.tensor.file, []).append(one)
    out = []
    for same in files.values():
        weights = np.array([1 / max(m.error, 1e-12) ** 2 for m in same])
        scale = float((weights * [m.scale for m in same]).sum() / weights.sum())
        out.append(_Merged(same[0].stats, scale, float(weights.sum()) ** -0.5, same[0].rank))
    return out


def _throughout(seen: Seen, adapter: Checkpoint, sure: Sequence[_Merged], said: float) -> Iterator[Finding]:
    """All tensors hold the adapter two or three times, or rank times, as its configuration scales it."""
    scales = np.array([m.scale for m in sure])
    times = round(float(np.median(scales)) / said) if said > 0 else 0
    bound = [max(_EXACT * times * said, 3 * m.error) for m in sure]
    undivided = times > 3 and all(m.rank == times for m in sure)
    if not (2 <= times <= 3 or undivided) or len(sure) < _FEWEST or (np.abs(scales - times * said) > bound).any():
        return
    if abs(float(np.median(scales)) - times * said) > _EXACT * times * said or any(m.rank == times**2 for m in sure):
        return
    why = "alpha was not divided by the rank" if undivided else "it was merged into weights that held it already"
    yield RULE.finding(
        f"the adapter of {os.path.basename(adapter.path)} is {times} times in each of {len(sure)} tensors "
        f"({sure[0].stats.name} and others, {seen.path}): a scale of {float(np.median(scales)):.3g} where its "
        f"configuration says {said:.3g}: {why}",
        seen.where(sure[0].stats.name), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "throughout", "name": sure[0].stats.name, "times": float(times), "tensors": len(sure),
                  "of": len(sure), "scale": round(said, 5)})


def _judged(seen: Seen, adapter: Checkpoint, made: Sequence[_Merged]) -> Iterator[Finding]:
    """By tensor where each is exact enough, else by file."""
    said = _said(adapter)
    middle = float(np.median([m.scale for m in made]))
    known = said is not None and said > 0 and any(abs(m.scale / said - 1) < _APART / 2 for m in made)
    usual = said if known and said is not None else middle
    if float(np.median([m.error for m in made])) > _ERROR * usual:
        made = _by_file(made)
    sure = [m for m in made if m.error <= _ERROR * usual]
    if usual <= 0 or len(sure) < 2:
        return  # not merged, or drowned in the weights
    if said is not None and not known:
        yield from _throughout(seen, adapter, sure, said)
    odd = [m for m in sure if abs(m.scale - usual) > max(_APART * usual, 5 * m.error)]
    if not odd or (2 * len(odd) >= len(sure) and not known) or len(odd) == len(sure):
        return
    times: NDArray[np.float64] = np.array([m.scale / usual for m in odd])
    files = sorted({m.stats.tensor.file for m in odd})
    whole = len(files) == 1 < len({m.stats.tensor.file for m in sure}) and all(
        m in odd for m in sure if m.stats.tensor.file == files[0])
    where = f" (all that are in {os.path.basename(files[0])})" if whole else ""
    own_rank = {m.rank for m in odd}.isdisjoint({m.rank for m in sure if m not in odd})
    turned = all(abs(m.turned - usual) <= max(_APART / 2 * usual, 5 * m.error) and abs(m.scale) < _APART * usual
                 for m in odd)
    scales = f"a scale of {np.median(times) * usual:.3g} against {usual:.3g}"
    how = (f"was merged transposed into {len(odd)} of {len(sure)} tensors{where} ({scales}; of the transposed product "
           f"{np.median([m.turned for m in odd]):.3g})" if turned else
           f"is {np.median(times):.2g} times as often in {len(odd)} of {len(sure)} tensors{where} as in the others "
           f"({scales})")
    yield RULE.finding(
        f"the adapter of {os.path.basename(adapter.path)} {how}: "
        f"{', '.join(m.stats.name for m in odd[:3])} ({seen.path})",
        seen.where(odd[0].stats.name), seen.path, bearing=Bearing.CAUSE,
        severity=Severity.INFO if own_rank else None,
        measured={"kind": "turned" if turned else "merged", "name": odd[0].stats.name,
                  "times": round(float(np.median(times)), 3), "tensors": len(odd), "of": len(sure),
                  "scale": round(usual, 5)})
