"""What goes into the model: ranges, scale, labels, masks, repeats (T701 to T709)."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.knowledge.contracts import torch_losses
from traindx_tools.live.batch_file import write_batch
from traindx_tools.live.notice import say
from traindx_tools.on_torch.measures.batch import (
    NUMBERS,
    SIDE,
    arguments,
    main_tensor,
    mask_numbers,
    named_tensors,
    numbers_of,
    row_keys,
)
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.loss_graph import Target, broadcast_of, targets
from traindx_tools.on_torch.measures.once import Once
from traindx_tools.on_torch.measures.out_of_range import held_on_the_cpu, labels_of, lookup_of
from traindx_tools.on_torch.nonfinite.places import Place, here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t701_index_beyond_table,
    t702_label_beyond_classes,
    t703_nonfinite_input,
    t704_repeated_data,
    t705_scale_of_data,
    t706_label_order,
    t707_labels_ignored,
    t708_mask_wrong,
    t709_target_broadcast,
)
from traindx_tools.on_torch.rules.batches import LabelsSeen, TensorSeen
from traindx_tools.on_torch.rules.t704_repeated_data import Repeats
from traindx_tools.on_torch.rules.t708_mask_wrong import MaskSeen
from traindx_tools.on_torch.rules.t709_target_broadcast import Broadcast

KEPT, LABELS = 200, 2048
MOST_KEYS = 2_000
JUDGED_AT = 100
_INDEX_ERROR = re.compile(r"index out of range|out of bounds|device-side assert|out of range in self|srcIndex", re.I)
_NORMS = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.LayerNorm, torch.nn.GroupNorm)
_FIRST = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


class BatchProbe(TorchProbe):
    """Inputs, labels and masks of sampled steps; the batch that failed; rows that come again."""

    name = "batches"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._once = Once()
        self._cadence = Cadence.chosen(scene.options, "batches", 12, 50)
        self._late: Late[tuple[str, dict[str, Any]]] = Late()
        self._calls: Counter[int] = Counter()
        self._backwards = 0
        self._tensors: deque[TensorSeen] = deque(maxlen=KEPT)
        self._first: deque[TensorSeen] = deque(maxlen=KEPT)
        self._targets: deque[TensorSeen] = deque(maxlen=KEPT)
        self._labels: deque[LabelsSeen] = deque(maxlen=KEPT)
        self._masks: deque[MaskSeen] = deque(maxlen=KEPT)
        self._constant: deque[tuple[int, bool, str]] = deque(maxlen=KEPT)
        self._rows_of_input = 0
        self._lookups: dict[int, tuple[torch.nn.Embedding, tuple[int, ...]]] = {}
        self._outputs: deque[tuple[int, ...]] = deque(maxlen=4)
        self._found_first = False
        self._waiting_first: tuple[dict[str, Any], torch.Tensor] | None = None
        self._given = self._in_a_row = 0
        self._keys: set[int] = set()
        self._last_key: int | None = None
        self._broadcast: Broadcast | None = None
        self._stretched: Place | None = None
        """The line of the last loss whose prediction and target differ in shape."""

    def next_look(self) -> int:
        """The next measured step."""
        if self._late:
            return self.scene.step
        return self._cadence.next_due(self.scene.step)

    # ---- the moments

    def batch_given(self, batch: Any) -> None:
        """A key of the batch, to know it again."""
        tensor = main_tensor(batch)
        if tensor is None or len(self._keys) >= MOST_KEYS:
            return
        rows = row_keys(tensor)
        if rows:
            key = hash(tuple(rows[:64]))
            self._given += 1
            self._in_a_row += key == self._last_key
            self._keys.add(key)
            self._last_key = key

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Numbers of the arguments of a training call."""
        grad = torch.is_grad_enabled()
        if not grad or not any(m is model for m in self.scene.models):
            return
        self._calls[id(model)] += 1
        if not self.scene.due(self._cadence, self._calls[id(model)] - 1):
            return
        self._found_first = False
        if self._inside not in self.scene.inner:
            self.scene.inner.append(self._inside)
        with torch.no_grad():
            self._measure(arguments(model, args, kwargs), model)

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """Shapes of the outputs, to know classes by."""
        if self._inside not in self.scene.inner:
            return
        self.scene.inner.remove(self._inside)
        if self._waiting_first is not None:
            self._late.send(("first", self._waiting_first[0]), self._waiting_first[1])
            self._waiting_first = None
        first = next((t for _, t in named_tensors(output)), None)
        if first is not None and first.ndim >= 2 and (not self._outputs or self._outputs[-1] != tuple(first.shape)):
            self._outputs.append(tuple(first.shape))

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Where a prediction and a target of different shapes meet."""
        shapes = [a.shape for a in args[:2] if isinstance(a, torch.Tensor)]
        if len(shapes) == 2 and shapes[0] != shapes[1] and torch_losses()[name].same_shape:
            self._stretched = here()

    def before_backward(self, loss: torch.Tensor) -> None:
        """Labels and targets, from the graph of the loss."""
        self._backwards += 1
        if self.scene.due(self._cadence, self._backwards - 1):
            with torch.no_grad():
                for target in targets(loss):
                    self._send_target(target)
                self._look_for_broadcast(loss)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived; a first judgement in case the program is killed later."""
        self._read()
        if self.scene.step == JUDGED_AT:
            for finding in self._once.new(self._findings()):
                self.scene.recorder.finding(finding)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """An index that was out of range: which, where, in what."""
        if _INDEX_ERROR.search(str(error)):
            self._capture(error)
            looked_up = list(t701_index_beyond_table.check(lookup_of(error, self.scene, self._lookups)))
            yield from looked_up or t702_label_beyond_classes.check(labels_of(error, self.scene, self._outputs))

    def _capture(self, error: BaseException) -> None:
        """Keeps the batch for `traindx replay`, where the recorder has a folder."""
        path = getattr(self.scene.recorder, "batch_path", None)
        arrays, checks = held_on_the_cpu(error, self.scene, self._lookups, self._outputs)
        if path is not None and write_batch(path, arrays, checks):
            say(f"the batch that it failed on is kept: traindx replay {path}")

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        yield from self._once.new(self._findings())

    # ---- measuring

    def _measure(self, named: dict[str, torch.Tensor], model: torch.nn.Module) -> None:
        step = self.scene.step + 1
        path = self.scene.module_paths.get(id(model), type(model).__name__)
        batch = next((t.shape[0] for t in named.values() if t.ndim), 0)
        self._rows_of_input = batch
        main = [n for n, t in named.items() if t.ndim >= 2 and t.shape[0] >= 4 and t.shape[0] == batch
                and not any(word in n.lower() for word in SIDE)]
        for name, tensor in named.items():
            if not tensor.numel() or tensor.is_complex():
                continue
            tag = {"name": name, "shape": tuple(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch."),
                   "step": step, "module": path, "main": name in main, "of": len(main)}
            self._late.send(("tensor", tag), numbers_of(tensor))
            if tensor.ndim == 2 and ("padding_mask" in name or "attention_mask" in name) and min(tensor.shape) > 1:
                ids = next((t for t in named.values() if t.shape == tensor.shape and t is not tensor
                            and t.dtype in (torch.int64, torch.int32)), None)
                tag = {"name": name, "step": step, "keeps_ones": "padding" not in name}
                self._late.send(("mask", tag), mask_numbers(tensor, ids))

    def _inside(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """What the first layer takes, and which indices go into which table."""
        if not args or not isinstance(args[0], torch.Tensor):
            return
        if isinstance(module, torch.nn.Embedding):
            self._lookups[id(module)] = (module, tuple(args[0].shape))
            return
        if next(module.children(), None) is not None:
            return
        norm = isinstance(module, _NORMS)
        if self._waiting_first is not None:
            tag, numbers = self._waiting_first
            self._late.send(("first", {**tag, "normed": norm}), numbers)
            self._waiting_first = None
        elif norm:
            self._found_first = True
        elif isinstance(module, _FIRST) and not self._found_first:
            self._found_first = True
            if not args[0].requires_grad and args[0].numel():
                tag = {"name": "input", "shape": tuple(args[0].shape), "step": self.scene.step + 1,
                       "dtype": str(args[0].dtype).removeprefix("torch."), "main": False, "of": 0,
                       "module": self.scene.module_paths.get(id(module), type(module).__name__)}
                with torch.no_grad():
                    self._waiting_first = tag, numbers_of(args[0])

    def _look_for_broadcast(self, loss: torch.Tensor) -> None:
        found = broadcast_of(loss, self._rows_of_input)
        if found is not None:
            before = self._broadcast
            place = self._stretched if found[0] == "loss" else None
            self._broadcast = Broadcast(*found, file=place.file if place else None, line=place.line if place else None,
                                        steps=1 + (before.steps if before else 0),
                                        step=before.step if before else self.scene.step + 1,
                                        rank=self.scene.recorder.rank)

    def _send_target(self, target: Target) -> None:
        values, step = target.values, self.scene.step + 1
        if not values.numel():
            return
        if target.classes is None:
            tag = {"name": "target", "shape": tuple(values.shape), "dtype": str(values.dtype).removeprefix("torch."),
                   "step": step, "main": False, "of": 0, "module": None}
            self._late.send(("target", tag), numbers_of(values))
            return
        flat = values.reshape(-1)
        ignored = torch.eq(flat, target.ignored or 0).float().mean().reshape(1)
        sample = flat[:: max(1, flat.numel() // LABELS)][:LABELS]
        tag = {"step": step, "classes": target.classes, "ignored": target.ignored,
               "per_sample": values.ndim == 1 and values.numel() == self._rows_of_input}
        self._late.send(("labels", tag), torch.cat([ignored, sample.float()]))

    # ---- reading

    def _read(self, *, wait: bool = False) -> None:
        for (kind, tag), values in self._late.arrived(wait=wait):
            if kind == "labels":
                self._labels.append(_labels(tag, values))
            elif kind == "mask":
                self._masks.append(MaskSeen(
                    tag["name"], tag["keeps_ones"], tag["step"], int(values[2]), int(values[0]), int(values[1]),
                    (float(values[3]), float(values[4])), (float(values[5]), float(values[6]))))
            else:
                self._keep(kind, tag, dict(zip(NUMBERS, values.tolist(), strict=True)))

    def _keep(self, kind: str, tag: dict[str, Any], numbers: dict[str, Any]) -> None:
        same = bool(numbers.pop("same_rows"))
        seen = TensorSeen(name=tag["name"], shape=tag["shape"], dtype=tag["dtype"], step=tag["step"],
                          module=tag["module"], same_rows=same,
                          normed=tag.get("normed", False), **numbers)
        {"tensor": self._tensors, "first": self._first, "target": self._targets}[kind].append(seen)
        if tag["main"]:
            self._constant.append((tag["step"], same, tag["name"]))
        if kind != "first" and (seen.nan or seen.inf) and seen.is_float:
            for finding in self._once.new(t703_nonfinite_input.check([seen], self.scene.recorder.rank)):
                self.scene.recorder.finding(finding)

    def _findings(self) -> Iterator[Finding]:
        rank = self.scene.recorder.rank
        yield from t703_nonfinite_input.check([*self._tensors, *self._targets], rank)
        yield from t704_repeated_data.check(self._repeats())
        yield from t705_scale_of_data.check([t for t in self._first if t.is_float], list(self._targets), rank)
        yield from t706_label_order.check(self._labels, rank)
        yield from t707_labels_ignored.check(self._labels, rank)
        yield from t708_mask_wrong.check(self._masks, rank)
        yield from t709_target_broadcast.check(self._broadcast)

    def _repeats(self) -> Repeats:
        """Steps count as constant where every main tensor of theirs has equal rows."""
        steps: dict[int, bool] = {}
        for step, same, _ in self._constant:
            steps[step] = steps.get(step, True) and same
        names = ", ".join(dict.fromkeys(name for _, _, name in self._constant))
        return Repeats(self._given, len(self._keys), self._in_a_row, len(steps), sum(steps.values()), names,
                       self.scene.step, self.scene.recorder.rank)


def _labels(tag: dict[str, Any], values: Any) -> LabelsSeen:
    valid = [int(v) for v in values[1:] if v != tag["ignored"]]
    return LabelsSeen(tag["step"], tag["classes"], dict(Counter(valid)), float(values[0]), tag["per_sample"])
