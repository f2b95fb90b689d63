"""Always on: rows of embeddings that evaluations look up and training never changes (T347)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t347_untrained_rows_asked
from traindx_tools.on_torch.rules.t347_untrained_rows_asked import Asked

MOST_SIZE, MOST_TABLES, MOST_LOOKS, MOST_IDS = 2**17, 32, 64, 4096
TRAINED_AT = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Steps in which it is noted what training looks up: what it does look up and never changes is padding, say."""
FEWEST_MOVED = 2
ROUNDING = 1e-4
"""Of a row's norm: what products with a decay, one a step, leave over."""
_Marks = NDArray[np.float64]


@dataclass(eq=False)
class _Table:
    """One embedding. `first`: the marks of its rows at first; `asked`: ids that were looked up without gradients."""

    path: str
    module: torch.nn.Embedding
    first: _Marks | None = None
    looks: int = 0
    asked: Counter[int] = field(default_factory=Counter)
    trained: set[int] = field(default_factory=set)
    """Ids that were looked up with gradients, in the steps that were looked at."""
    in_order: Counter[int] = field(default_factory=Counter)
    """Ids of look-ups of the first rows in their order: positions, or a whole catalogue that is ranked."""


class TableRowsProbe(TorchProbe):
    """Takes three sums of each row at the first call and at the end; listens to embeddings in some evaluations."""

    name = "table-rows"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._tables: dict[int, _Table] = {}
        self._owners: set[int] = set()
        self._late: Late[tuple[_Table, str]] = Late()
        self._loaded = False

    def next_look(self) -> int:
        """The next step whose look-ups are noted; calls without gradients are told anyway."""
        return next((k for k in TRAINED_AT if k >= self.scene.step), self.NEVER)

    def model_found(self, model: torch.nn.Module) -> None:
        """Its tables, and the first marks of their rows."""
        for path, module in model.named_modules():
            if id(module) in self._tables or len(self._tables) >= MOST_TABLES or not _plain(module):
                continue
            name = self.scene.module_paths.get(id(module), path)
            table = self._tables[id(module)] = _Table(name, module)
            self._owners.add(id(model))
            self._late.send((table, "first"), _marks(table.module))
            self._read(wait=False)

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """Weights of a file."""
        self._loaded = self._loaded or kind == "model"

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Listens to the modules of an evaluation, and of some training calls."""
        if id(model) not in self._owners:
            return
        evaluated = self.scene.step and not torch.is_grad_enabled() and any(
            t.looks < MOST_LOOKS for t in self._tables.values())
        if evaluated or (torch.is_grad_enabled() and self.scene.step in TRAINED_AT):
            self.scene.inner.append(self._called)

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """Stops to listen."""
        if self._called in self.scene.inner:
            self.scene.inner.remove(self._called)
            self._read(wait=False)

    def _called(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        table = self._tables.get(id(module))
        trains = torch.is_grad_enabled()
        if table is None or (not trains and table.looks >= MOST_LOOKS) or not args \
                or type(args[0]) is not torch.Tensor:
            return
        table.looks += not trains
        self._late.send((table, "trained" if trains else "asked"),
                        args[0].detach().reshape(-1)[:MOST_IDS].to(torch.float64))

    def finish(self) -> Iterable[Finding]:
        """Judges. Reads the device."""
        self._read(wait=True)
        yield from t347_untrained_rows_asked.check(list(self._asked()), self.scene.step, self.scene.recorder.rank)

    def _asked(self) -> Iterator[Asked]:
        for table in self._tables.values():
            if table.first is None or not _plain(table.module):
                continue
            last = np.asarray(_marks(table.module).cpu().numpy(), np.float64)
            still = unchanged(table.first, last)
            still[[i for i in table.trained if 0 <= i < len(still)]] = False
            moved = np.flatnonzero(~still)
            if len(moved) < FEWEST_MOVED or not still.any():
                continue
            padding = table.module.padding_idx
            beyond = np.flatnonzero(still)[0] > moved[-1]  # of positions; a catalogue has gaps
            both = table.asked + table.in_order if beyond else table.asked
            asked = {i: n for i, n in both.items() if i != padding and 0 <= i < len(still)}
            empty = {i: n for i, n in asked.items() if still[i]}
            yield Asked(table.path, sum(empty.values()), sum(asked.values()),
                        (min(empty, default=0), max(empty, default=0)), len(empty), (int(moved[0]), int(moved[-1])),
                        len(moved), len(still), self._loaded)

    def _read(self, *, wait: bool) -> None:
        for (table, what), values in self._late.arrived(wait=wait):
            if what == "first":
                table.first = values
            elif what == "trained":
                table.trained.update(values.astype(np.int64).tolist())
            else:
                ids = values.astype(np.int64)
                kept = table.in_order if np.array_equal(ids, np.arange(len(ids))) else table.asked
                kept.update(ids.tolist())


def unchanged(first: _Marks, last: _Marks) -> NDArray[np.bool_]:
    """The rows, of marks with shape (rows, 3), that stayed or were only made smaller as a whole, by a decay."""
    if first.shape != last.shape:
        return np.zeros(len(first), bool)
    norm = np.sqrt(first[:, 2])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(norm > 0, np.sqrt(last[:, 2]) / np.where(norm > 0, norm, 1.0), 1.0)
    near = np.abs(last[:, :2] - ratio[:, None] * first[:, :2]) <= ROUNDING * np.maximum(norm, 1e-30)[:, None]
    same = (first == last).all(1)
    return np.asarray(same | (near.all(1) & (ratio <= 1 + 1e-6) & (norm > 0)), bool)


def _plain(module: Any) -> bool:
    if not isinstance(module, torch.nn.Embedding):
        return False
    weight = module.weight
    return (type(weight) is torch.nn.Parameter and weight.requires_grad and weight.ndim == 2
            and 4 <= len(weight) <= MOST_SIZE and weight.shape[1] >= 2 and weight.device.type != "meta")


def _marks(module: torch.nn.Embedding) -> torch.Tensor:
    """For each row, shape (rows, 3): its sum, one with weights, and the sum of its squares, as float64."""
    wide = module.weight.detach().to(torch.float64)
    weights = torch.cos(torch.arange(wide.shape[1], dtype=torch.float64, device=wide.device))
    return torch.stack([wide.sum(1), wide @ weights, wide.square().sum(1)], 1)
