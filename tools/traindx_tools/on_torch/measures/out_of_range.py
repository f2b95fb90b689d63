"""Which index was out of range: from the frames of the error, else from the batch as it was given out.

A device that stopped at an assert can no longer be read; the batch that a DataLoader gave out lies on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from numpy.typing import NDArray

from traindx_tools.live.batch_file import Check
from traindx_tools.on_torch.measures.batch import named_tensors
from traindx_tools.on_torch.measures.failure import call_of, user_line
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.rules.t701_index_beyond_table import BeyondTable
from traindx_tools.on_torch.rules.t702_label_beyond_classes import BeyondClasses

FUNCTIONAL = "torch/nn/functional.py"
Lookups = Mapping[int, tuple[torch.nn.Embedding, tuple[int, ...]]]
"""Embeddings by id, with the shape of the indices that they were last given."""


def lookup_of(error: BaseException, scene: Scene, lookups: Lookups) -> BeyondTable | None:
    """The lookup that failed; None where there is none that can be read."""
    call = call_of(error, "embedding", FUNCTIONAL)
    if call is not None and _readable(call.get("input")) and isinstance(call.get("weight"), torch.Tensor):
        weight = call["weight"]
        path = scene.parameter_paths.get(id(weight), "embedding.weight").rpartition(".")[0] or "embedding"
        return _beyond_table(scene, path, weight.shape[0], "the input of the embedding", call["input"], error)
    for name, tensor in named_tensors(scene.batch):
        for module, shape in _tables(scene, lookups):
            if _readable(tensor) and shape in (None, tuple(tensor.shape)):
                path = scene.module_paths.get(id(module), "embedding")
                found = _beyond_table(scene, path, module.num_embeddings, name, tensor, error)
                if found.bad:
                    return found
    return None


def _tables(scene: Scene, lookups: Lookups) -> Iterator[tuple[torch.nn.Embedding, tuple[int, ...] | None]]:
    """Embeddings with the shape of what they were given; one alone may have been given anything."""
    every = [m for model in scene.models for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    for module in every:
        if id(module) in lookups:
            yield module, lookups[id(module)][1]
        elif len(every) == 1:
            yield module, None


def labels_of(error: BaseException, scene: Scene, outputs: Sequence[tuple[int, ...]]) -> BeyondClasses | None:
    """The labels of the cross entropy that failed. `outputs`: shapes that the model returned, the latest last."""
    for function in ("cross_entropy", "nll_loss"):
        call = call_of(error, function, FUNCTIONAL)
        if call is not None and _readable(call.get("target")) and isinstance(call.get("input"), torch.Tensor):
            given = call["input"]
            classes = given.shape[1] if given.ndim > 1 else given.shape[0]
            return _beyond_classes(scene, "the target", classes, call["target"], int(call.get("ignore_index", -100)),
                                   error)
    if call_of(error, "embedding", FUNCTIONAL) is not None:
        return None  # it was a lookup that failed
    for name, tensor in named_tensors(scene.batch):
        for shape in reversed(outputs):
            for classes, rest in ((shape[-1], shape[:-1]), (shape[1], shape[:1] + shape[2:])):
                if _readable(tensor) and tuple(tensor.shape) == rest:
                    found = _beyond_classes(scene, name, classes, tensor, -100, error)
                    if found.bad:
                        return found
    return None


def held_on_the_cpu(error: BaseException, scene: Scene, lookups: Lookups,
                    outputs: Sequence[tuple[int, ...]]) -> tuple[dict[str, NDArray[Any]], list[Check]]:
    """The tensors of the batch and of the failing call that can be read, and what must hold of indices and labels."""
    arrays: dict[str, NDArray[Any]] = {}
    checks: list[Check] = []
    table, labels = lookup_of(error, scene, lookups), labels_of(error, scene, outputs)
    for function, given, check in (
        ("embedding", "input", table and Check("lookup", "failing_lookup", table.rows, f"the table {table.table}")),
        ("cross_entropy", "target", labels and Check("labels", "failing_labels", labels.classes, "the output",
                                                     labels.ignored))):
        call = call_of(error, function, FUNCTIONAL)
        if call is not None and check and _readable(call.get(given)):
            arrays[check.array] = call[given].detach().numpy()
            checks.append(check)
    for name, tensor in named_tensors(scene.batch):
        if tensor.device.type != "cpu":
            continue
        arrays[name] = (tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()).numpy()
        if not _readable(tensor):
            continue
        checks += [Check("lookup", name, m.num_embeddings, f"the table {scene.module_paths.get(id(m), 'embedding')}")
                   for m, shape in _tables(scene, lookups) if shape in (None, tuple(tensor.shape))]
        classes = {c for s in outputs for c, rest in ((s[-1], s[:-1]), (s[1], s[:1] + s[2:]))
                   if tuple(tensor.shape) == rest}
        if not any(c.array == name for c in checks):
            checks += [Check("labels", name, c, "the output", -100) for c in sorted(classes)]
    return arrays, checks


def _beyond_table(scene: Scene, table: str, rows: int, name: str, indices: torch.Tensor,
                  error: BaseException) -> BeyondTable:
    bad = (indices < 0) | (indices >= rows)
    place = _first_place(bad)
    line = indices.reshape(-1, indices.shape[-1])[0] if indices.ndim else indices.reshape(1)
    counting = len(line) > 1 and bool((line == torch.arange(len(line))).all())
    file, number = user_line(error) or (None, None)
    return BeyondTable(table, rows, name, int(indices.min()), int(indices.max()), int(indices[place]) if place else 0,
                       place, int(bad.sum()), scene.step + 1, counting, file, number, scene.recorder.rank)


def _beyond_classes(scene: Scene, name: str, classes: int, labels: torch.Tensor, ignored: int,
                    error: BaseException) -> BeyondClasses:
    valid = labels[labels != ignored]
    bad = ((labels < 0) | (labels >= classes)) & (labels != ignored)
    place = _first_place(bad)
    file, number = user_line(error) or (None, None)
    return BeyondClasses(name, classes, int(valid.min()) if valid.numel() else 0,
                         int(valid.max()) if valid.numel() else 0, int(labels[place]) if place else 0, place,
                         int(bad.sum()), scene.step + 1, ignored, file, number, scene.recorder.rank)


def _readable(tensor: Any) -> bool:
    """Integers on the CPU: a device that stopped at an assert can no longer be read."""
    return (isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu" and tensor.numel() > 0
            and tensor.dtype in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8))


def _first_place(bad: torch.Tensor) -> tuple[int, ...]:
    places = bad.nonzero()
    return tuple(int(i) for i in places[0]) if len(places) else ()
