"""What generation begins from, against what training had at the same time step or noise level (T724)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.batch import arguments
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.conditioned import Seen, judged
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t724_generation_start

MOST_ROWS, MOST_COLUMNS = 256, 32
MOST_TRAINED = 40_000
MOST_CALLS = 2_000


class ConditionedProbe(TorchProbe):
    """Rows of training calls now and then; every call of a generation, as long as there is room."""

    name = "conditioned"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._cadence = Cadence.chosen(scene.options, "conditioned", 60, 10)
        self._late: Late[tuple[str, bool, int, int]] = Late()
        self._seen: dict[str, Seen] = {}
        self._calls: dict[str, int] = {}

    def next_look(self) -> int:
        """The next measured step; never again where no model takes such a value."""
        if not self._seen and self.scene.step > self._cadence.first:
            return self.NEVER
        return self.scene.step if self._late else self._cadence.next_due(self.scene.step)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Sends value and summary of the rows."""
        kind, training = type(model).__name__, torch.is_grad_enabled()
        if training:
            if self._calls.get(kind, 0) >= MOST_TRAINED // MOST_ROWS or not self.scene.due(
                    self._cadence, self._calls.get(kind, 0)):
                self._calls[kind] = self._calls.get(kind, 0) + 1
                return
            self._calls[kind] = self._calls.get(kind, 0) + 1
        elif kind not in self._seen or len(self._seen[kind].calls) >= MOST_CALLS:
            return
        pair = conditioned(arguments(model, args, kwargs))
        if pair is None:
            return
        self._seen.setdefault(kind, Seen())
        with torch.no_grad():
            packed = _packed(*pair)
        self._late.send((kind, training, packed.shape[1], self.scene.step), packed.reshape(-1))
        self._read(wait=False)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        found = [(kind, start) for kind, seen in self._seen.items() if (start := judged(seen)) is not None]
        yield from t724_generation_start.check(found, self.scene.recorder.rank)

    def _read(self, *, wait: bool) -> None:
        for (kind, training, width, step), flat in self._late.arrived(wait=wait):
            rows, seen = np.asarray(flat, np.float64).reshape(-1, width), self._seen[kind]
            value, square, features = rows[:, 0], rows[:, 1], rows[:, 2:]
            if not np.isfinite(rows).all():
                continue
            if not training:
                if np.ptp(value) == 0:
                    seen.calls.append((float(value[0]), features, square, step))
            elif np.ptp(value) > 0 and seen.rows < MOST_TRAINED and (
                    not seen.features or seen.features[0].shape[1] == features.shape[1]):
                seen.rows += len(rows)
                seen.values.append(value)
                seen.squares.append(square)
                seen.features.append(features)


def conditioned(named: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The largest floating tensor of two and more dimensions, and the first with one number for each of its rows."""
    inputs = [t for t in named.values() if t.is_floating_point() and t.ndim >= 2 and t.numel() > t.shape[0]]
    if not inputs:
        return None
    x = max(inputs, key=lambda t: t.numel())
    for value in named.values():
        if value is not x and value.numel() == x.shape[0] and value.ndim in (1, 2) and value.dtype != torch.bool \
                and value.shape[0] == x.shape[0] and x.shape[0] > 1 and not value.is_complex():
            return x, value
    return None


def _packed(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A row each: the value, the mean square, and columns or means of channels; (B, 2 + D), at most `MOST_ROWS`."""
    x, value = x.detach()[:MOST_ROWS], value.detach().reshape(-1)[:MOST_ROWS]
    wide = x.to(torch.float32)
    if x.ndim == 2:
        features = wide[:, :MOST_COLUMNS]
    elif x.ndim == 3 and x.shape[2] <= MOST_COLUMNS:
        features = wide.mean(1)
    elif x.ndim >= 4 and x.shape[1] <= MOST_COLUMNS:
        features = wide.flatten(2).mean(2)
    else:
        features = wide.flatten(1).mean(1, keepdim=True)
    square = wide.flatten(1).square().mean(1, keepdim=True)
    return torch.cat([value.to(torch.float32)[:, None], square, features], 1)
