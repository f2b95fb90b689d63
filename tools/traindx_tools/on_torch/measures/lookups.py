"""Rows of one table that are looked up together: pairs of indices, of training from the graph behind a loss and of
evaluation from the calls themselves, which leave no graph.

A pair is an index of two columns (or two rows), two indices of a square matrix, or two indices of one length into the
same tensor, one after the other.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from traindx_tools.on_torch.lagged import capturing
from traindx_tools.on_torch.measures.loss_graph import nodes
from traindx_tools.on_torch.nonfinite.places import INNER, USER, Place, owner
from traindx_tools.on_torch.patches import Function, Patches

MOST_NODES = 500
MOST_ROWS = 2**15
"""Pairs of one call that are read; of more, every k-th, beginning at another one each time."""
FEWEST_ROWS = 4
MOST_LOOKUPS = 12
"""Indices into one tensor, of one step."""
DEEPEST, FRAMES = 40, 3
WHOLE = (torch.int64, torch.int32)


@dataclass(frozen=True, eq=False)
class IndexPairs:
    """Two columns of indices into a table of `table` rows, float64 shape (rows, 2), a copy on its own device."""

    table: int
    order: tuple[int, ...]
    columns: torch.Tensor
    rows: int
    """Before it was thinned."""


def pair_columns(index: torch.Tensor) -> torch.Tensor | None:
    """Shape (rows, 2) of an index of two columns or, as an edge index, two rows; None for any other tensor."""
    if index.dtype not in WHOLE or index.ndim != 2 or max(index.shape) < FEWEST_ROWS:
        return None
    if index.shape[1] == 2:
        return index
    return index.T if index.shape[0] == 2 else None


def thinned(columns: torch.Tensor, turn: int) -> torch.Tensor:
    """A copy of the columns, shape (rows, 2), as float64: exact for ids up to 2**53."""
    stride = -(-len(columns) // MOST_ROWS)
    return columns.detach()[turn % stride::stride].to(torch.float64, copy=True)


def joined(left: torch.Tensor, right: torch.Tensor, turn: int) -> torch.Tensor:
    """The same of two indices of one length."""
    stride = -(-len(left) // MOST_ROWS)
    part = slice(turn % stride, None, stride)
    return torch.stack([left.detach()[part], right.detach()[part]], 1).to(torch.float64)


# ---- training


def trained_pairs(loss: torch.Tensor, turn: int) -> Iterator[IndexPairs]:
    """Pairs that the graph of a loss looks up. Read before the backward pass frees it."""
    found: dict[Any, list[tuple[int, int, Sequence[torch.Tensor]]]] = {}
    for node in nodes(loss, MOST_NODES):
        one = _looked_up(node)
        if one is not None and len(node.next_functions):
            found.setdefault(node.next_functions[0], []).append((node._sequence_nr(), *one))
    ordered = sorted((sorted(v, key=lambda x: x[0]) for v in found.values()), key=lambda v: v[0][0])
    for source, several in enumerate(ordered):
        yield from _of_one(source, several[:MOST_LOOKUPS], turn)


def _looked_up(node: Any) -> tuple[int, Sequence[torch.Tensor]] | None:
    """Rows of the table and the indices of one node, None where it looks nothing up."""
    kind = node.name()
    try:
        if kind.startswith("IndexBackward"):
            shape, indices = node._saved_self_sym_sizes, [i for i in node._saved_indices if i is not None]
            if node._saved_indices[0] is None or (len(indices) == 2 and tuple(shape[:2]) != (shape[0], shape[0])):
                return None
            return int(shape[0]), indices[:3]
        if kind.startswith("IndexSelectBackward") and node._saved_dim in (0, -len(node._saved_self_sym_sizes)):
            return int(node._saved_self_sym_sizes[0]), [node._saved_index]
        if kind.startswith("EmbeddingBackward"):
            return int(node._saved_weight_sym_argsize_0), [node._saved_indices]
    except (RuntimeError, AttributeError, IndexError, TypeError):  # freed, or another version of torch
        pass
    return None


def _of_one(source: int, several: list[tuple[int, int, Sequence[torch.Tensor]]], turn: int) -> Iterator[IndexPairs]:
    for k, (_, table, indices) in enumerate(several):
        if len(indices) == 2 and _alike(indices[0], indices[1]):
            yield IndexPairs(table, (source, k), joined(indices[0], indices[1], turn), len(indices[0]))
        if len(indices) != 1:
            continue
        columns = pair_columns(indices[0])
        if columns is not None:
            yield IndexPairs(table, (source, k), thinned(columns, turn), len(columns))
        other = several[k + 1][2] if k + 1 < len(several) else ()
        if len(other) == 1 and _alike(indices[0], other[0]):
            yield IndexPairs(table, (source, k, k + 1), joined(indices[0], other[0], turn), len(other[0]))


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (one.ndim == other.ndim == 1 and len(one) == len(other) >= FEWEST_ROWS and one.device == other.device
            and one.dtype in WHOLE and other.dtype in WHOLE)


# ---- evaluation


@dataclass(frozen=True)
class Spot:
    """Where in the program a call is made: the same loop body gives the same `key`."""

    key: int
    places: tuple[Place, ...]
    """Lines of the user's code, the innermost first."""


def spot() -> Spot:
    """Where the program is now."""
    frame: FrameType | None = sys._getframe(1)
    key: list[tuple[str, int, int]] = []
    places: list[Place] = []
    for _ in range(DEEPEST):
        if frame is None:
            break
        code = frame.f_code
        whose = owner(code.co_filename)
        if whose is not INNER:
            key.append((code.co_filename, code.co_firstlineno, frame.f_lasti))
        if whose is USER and len(places) < FRAMES:
            places.append(Place(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return Spot(hash(tuple(key)), tuple(places))


@dataclass(frozen=True, eq=False)
class _Asked:
    source: weakref.ref[torch.Tensor]
    index: torch.Tensor
    rows: int
    key: int


class AskedPairs:
    """The last index that was looked up without a graph, as a copy; the tensors themselves are not kept."""

    def __init__(self) -> None:
        self._last: _Asked | None = None

    def clear(self) -> None:
        """A training step comes between."""
        self._last = None

    def take(self, source: torch.Tensor, indices: Sequence[torch.Tensor], at: Spot,
             turn: int) -> Iterator[tuple[int, IndexPairs]]:
        """The pairs that this look-up completes, each with a key of its two places."""
        table = len(source)
        if len(indices) == 2:
            if source.ndim >= 2 and source.shape[1] == table and _alike(indices[0], indices[1]):
                yield at.key, IndexPairs(table, (), joined(indices[0], indices[1], turn), len(indices[0]))
            return
        index = indices[0]
        columns = pair_columns(index)
        if columns is not None:
            yield at.key, IndexPairs(table, (), thinned(columns, turn), len(columns))
        if index.ndim != 1 or not FEWEST_ROWS <= len(index) <= MOST_ROWS * 8 or index.dtype not in WHOLE:
            return
        copy, before = index.detach().clone(), self._last
        if before is not None and before.source() is source and _alike(before.index, copy):
            yield hash((before.key, at.key)), IndexPairs(table, (), joined(before.index, copy, turn), before.rows)
        self._last = _Asked(weakref.ref(source), copy, len(copy), at.key)


class Lookups:
    """Indexing that is told while gradients are off. Put in once a training has shown that it looks pairs up."""

    def __init__(self, tell: Callable[[torch.Tensor, Sequence[torch.Tensor]], None],
                 quiet: Callable[[], bool]) -> None:
        self._tell, self._quiet = tell, quiet

    def patch(self, patches: Patches) -> None:
        """Replaces `Tensor.__getitem__` and `Tensor.index_select`."""
        patches.replace(torch.Tensor, "__getitem__", self._get_item)
        patches.replace(torch.Tensor, "index_select", self._index_select)

    def _get_item(self, original: Function) -> Function:
        here = self

        def __getitem__(self: torch.Tensor, index: Any) -> Any:
            if not torch.is_grad_enabled() and type(index) in (torch.Tensor, tuple):
                here._told(self, _indices(index))
            return original(self, index)

        return __getitem__

    def _index_select(self, original: Function) -> Function:
        here = self

        def index_select(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not torch.is_grad_enabled():
                dim = args[0] if args else kwargs.get("dim")
                index = args[1] if len(args) > 1 else kwargs.get("index")
                if isinstance(index, torch.Tensor) and dim in (0, -self.ndim):
                    here._told(self, (index,))
            return original(self, *args, **kwargs)

        return index_select

    def _told(self, source: torch.Tensor, indices: Sequence[torch.Tensor]) -> None:
        if indices and plain(source, *indices) and not torch.compiler.is_compiling() and not self._quiet():
            self._tell(source, indices)


def _indices(index: Any) -> Sequence[torch.Tensor]:
    """The indices of the first dimension, or of the first two; nothing for slices and masks."""
    if isinstance(index, torch.Tensor):
        return (index,)
    if not index or type(index[0]) is not torch.Tensor:
        return ()
    if len(index) > 1 and type(index[1]) is torch.Tensor:
        return index[:2] if len(index) == 2 else ()
    return index[:1] if all(type(i) is slice or i is Ellipsis for i in index[1:]) else ()


def plain(*tensors: torch.Tensor) -> bool:
    """Whether these are tensors of values, outside of a transformation (`vmap`) and of a CUDA graph."""
    transformed = getattr(torch._C._functorch, "peek_interpreter_stack", lambda: None)() is not None
    return not transformed and all(
        type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided and t.ndim > 0
        and t.device.type != "meta" and not capturing(t.device) for t in tensors)
