"""The codes probe: use and movement of every codebook, summed on the device and read at intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.codes.codebooks import Codebook, find_codebooks, indices_in, nearest, spread_ratio
from traindx_tools.on_torch.codes.motion import CodebookMotion
from traindx_tools.on_torch.codes.usage import Usage, code_usage, histogram
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t601_codebook_collapse,
    t602_codebook_still,
    t603_revival_undone,
    t604_codes_of_other_scale,
)

SOURCE = "codes probe"
METRIC_INTERVAL = 50
NEAREST_INTERVAL = 10
"""Steps between two looks where indices must be computed because the quantiser does not give them."""


class _Watch:
    """One codebook: its histogram since the last reading, the last usage with enough samples, its movement."""

    def __init__(self, book: Codebook) -> None:
        self.book = book
        self.counts: torch.Tensor | None = None
        self.usage: Usage | None = None
        table = book.table
        self.motion = CodebookMotion(table) if table is not None else None
        self.seen_in_training = False
        self.first: torch.Tensor | None = None
        """The codes' spread over that of what they quantise, at the first batch, and at the last look."""
        self.last: torch.Tensor | None = None

    def measure(self, z: torch.Tensor, table: torch.Tensor) -> None:
        """Keeps how far the codes reach beside the encoder's outputs; nothing is read from the device."""
        ratio = spread_ratio(z, table)
        if ratio is not None:
            self.first, self.last = self.first if self.first is not None else ratio, ratio

    @property
    def ratios(self) -> tuple[float, float] | None:
        """What was measured, None where nothing was or a number is not finite."""
        if self.first is None or self.last is None:
            return None
        found = float(self.first), float(self.last)
        return found if all(0 < r < math.inf for r in found) else None

    def add(self, indices: torch.Tensor) -> None:
        counts = histogram(indices, self.book.size)
        self.counts = counts if self.counts is None else self.counts + counts

    def read(self) -> Usage | None:
        """The usage so far; starts a new window once there are enough assignments."""
        if self.counts is None:
            return None
        usage = code_usage(self.counts)
        if usage.samples >= t601_codebook_collapse.PER_CODE * usage.size:
            self.usage, self.counts = usage, None
        return usage


class CodesProbe(TorchProbe):
    """Hooks quantisers only: a model without one pays nothing. Runs in training mode of the quantiser alone."""

    name = "codes"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._watches: list[_Watch] = []

    def next_look(self) -> int:
        """Never without a codebook."""
        return 0 if self._watches else self.NEVER

    def model_found(self, model: torch.nn.Module) -> None:
        known = {id(w.book.module) for w in self._watches}
        for book in find_codebooks(model):
            if id(book.module) not in known:
                watch = _Watch(book)
                self._watches.append(watch)
                book.module.register_forward_hook(self._hook(watch))
                if book.lookup is not None:
                    book.lookup.register_forward_hook(self._lookup_hook(watch))

    def _lookup_hook(self, watch: _Watch) -> Any:
        def hook(_: torch.nn.Module, args: tuple[Any, ...], __: Any) -> None:
            if watch.book.module.training and args and isinstance(args[0], torch.Tensor):
                watch.seen_in_training = True
                watch.add(args[0])

        return hook

    def _hook(self, watch: _Watch) -> Any:
        def hook(module: torch.nn.Module, args: tuple[Any, ...], output: Any) -> None:
            if not module.training or torch.compiler.is_compiling():
                return
            watch.seen_in_training = True
            indices = indices_in(output, watch.book.size)
            table = watch.book.table
            given = next((a for a in args if isinstance(a, torch.Tensor)), None)
            if given is not None and table is not None and (
                    watch.first is None or self.scene.step % METRIC_INTERVAL == 0):
                watch.measure(given, table)
            if indices is not None and watch.book.lookup is None:
                watch.add(indices)
            elif watch.book.lookup is None and table is not None and self.scene.step % NEAREST_INTERVAL == 0:
                z = next((a for a in args if isinstance(a, torch.Tensor)), None)
                found = None if z is None else nearest(z, table)
                if found is not None:
                    watch.add(found)

        return hook

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        if not self._watches:
            return
        for watch in self._watches:
            table = watch.book.table
            if watch.motion is not None and table is not None and watch.seen_in_training:
                watch.motion.step(table)
        if self.scene.step % METRIC_INTERVAL == 0:
            for watch in self._watches:
                self._record(watch)

    def _record(self, watch: _Watch) -> None:
        usage = watch.read()
        if usage is not None and usage.samples:
            name = "" if len(self._watches) == 1 else f"/{watch.book.path}"
            self.scene.recorder.metrics(self.scene.step, {
                f"codebook_perplexity{name}": usage.perplexity, f"codebook_used{name}": usage.used,
                f"codebook_size{name}": usage.size})

    def finish(self) -> Iterable[Finding]:
        step, rank = self.scene.step, self.scene.recorder.rank
        for watch in self._watches:
            latest, path = watch.read() or watch.usage, watch.book.path or type(watch.book.module).__name__
            usage = watch.usage or latest
            if usage is not None:
                yield from t601_codebook_collapse.check(path, usage, step, SOURCE, rank)
                if (ratios := watch.ratios) is not None:
                    yield from t604_codes_of_other_scale.check(path, usage, ratios, step, SOURCE, rank)
            if watch.motion is not None and watch.seen_in_training:
                motion = watch.motion.read()
                yield from t602_codebook_still.check(path, motion.moved, motion.steps, SOURCE, rank)
                yield from t603_revival_undone.check(path, motion, SOURCE, rank)
