"""Which states were read, loaded, taken and written, and whether they reached the model that runs (T321 to T326)."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.fresh_statistics import FreshStatistics
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.once import Once
from traindx_tools.on_torch.measures.origin import tensors_in
from traindx_tools.on_torch.measures.saved_state import Part, parts_of, sample_of
from traindx_tools.on_torch.nonfinite.places import here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t321_state_unused,
    t322_keys_do_not_fit,
    t323_rest_not_restored,
    t324_other_model_loaded,
    t325_other_model_saved,
    t326_kept_by_reference,
)
from traindx_tools.on_torch.rules.state import At, Kept, LoadedKeys, OtherModel, ReadFile, Rest, Saved
from traindx_tools.on_torch.structure import unwrapped

MOST_FILES, MOST_LOADS, MOST_GIVEN = 16, 64, 64
LOOKS = 3
"""Calls of models after the reading of a file at which their values are compared with its values."""
MOST_ASKED = 32
"""Values of a model on a device that are compared."""
WORDS = 2
"""Last words of a key by which it is known under another prefix: "layer.weight"."""


@dataclass
class _Read:
    """One file that was read and what became of it."""

    path: str
    at: At
    parts: list[Part]
    top: tuple[str, ...]
    taken: dict[int, str] = field(default_factory=dict)
    """Parts that were used, by place in `parts`, with how."""
    looks: int = 0
    calls: dict[int, int] = field(default_factory=dict)
    """Calls of each model since, by id."""
    loaded: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Parts that a model took, by place in `parts`: the model's id, and the step; gone once its values were seen."""
    overwritten: set[int] = field(default_factory=set)
    compared: set[int] = field(default_factory=set)
    """Parts whose values were compared with a model's."""


@dataclass
class _Load:
    """A model that took the state of a file."""

    owner: Any
    name: str
    path: str
    at: At
    keys: frozenset[str]


@dataclass
class _Write:
    path: str
    at: At
    top: tuple[str, ...]
    memory: set[int]
    """Storages of its tensors, by address of their object."""


class StateProbe(TorchProbe):
    """States of files and models: read, loaded, taken, written."""

    name = "state"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._once = Once()
        self._late: Late[tuple[_Read, int, list[float]]] = Late()
        self._files: list[_Read] = []
        self._loads: list[_Load] = []
        self._keys: list[LoadedKeys] = []
        self._fresh: list[FreshStatistics] = []
        self._writes: list[_Write] = []
        self._given: deque[tuple[Any, str, At]] = deque(maxlen=MOST_GIVEN)
        self._kept: dict[tuple[str, int], Kept] = {}
        self._calls: dict[int, dict[str, int]] = {}
        self._has: set[str] = set()
        self._start: dict[int, tuple[float, ...]] = {}

    # ---- moments

    def model_found(self, model: torch.nn.Module) -> None:
        """A few of its values, to know at the end whether it moved."""
        first = next((p for p in model.parameters() if p.device.type == "cpu" and p.numel()), None)
        if first is not None:
            self._start[id(model)] = sample_of(first)

    def file_read(self, path: Any, value: Any) -> None:
        """Notes the states in it."""
        parts = list(parts_of(value))
        if parts and len(self._files) < MOST_FILES:
            self._files.append(_Read(_path(path), self._at(), parts, _top(value)))

    def file_written(self, path: Any, value: Any) -> None:
        """Notes whose memory it holds, and whether that is still what was meant."""
        self._use(value, "saved")
        if len(self._writes) < MOST_FILES:
            memory = {t.untyped_storage()._cdata for t in tensors_in(value) if t.layout == torch.strided}
            self._writes.append(_Write(_path(path), self._at(), _top(value), memory))

    def state_given(self, module: torch.nn.Module, state: Any) -> None:
        """Remembers a tensor of it, not the state."""
        first = next(tensors_in(state), None)
        if first is not None:
            self._given.append((weakref.ref(first), type(module).__name__, self._at()))

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """Which file's state it is, and what did not fit."""
        source = None
        for file in self._files:
            for number, part in enumerate(file.parts):
                if part.origin.holds(state):
                    file.taken[number] = kind
                    if kind == "model" and not getattr(result, "missing_keys", ()):
                        file.loaded[number] = id(unwrapped(owner)), self.scene.step
                    source = file
        if kind != "model" or not isinstance(state, Mapping) or len(self._loads) >= MOST_LOADS:
            return
        self._use(state, "loaded", owner)
        own = list(owner.state_dict())
        self._note_keys(owner, own, state, result)
        if source is not None:
            self._loads.append(_Load(weakref.ref(owner), type(owner).__name__, source.path, self._at(),
                                     frozenset(_short(k) for k in own)))

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Counts calls; looks whether a file's values are in the model by now."""
        calls = self._calls.setdefault(id(model), {"train": 0, "evaluated": 0})
        calls["train" if torch.is_grad_enabled() else "evaluated"] += 1
        for fresh in self._fresh if sum(calls.values()) <= LOOKS else ():
            fresh.called({id(m) for m in model.modules()})
        for file in self._files:
            file.calls[id(model)] = file.calls.get(id(model), 0) + 1
            for number, (owner, step) in tuple(file.loaded.items()):
                if owner == id(model) and file.loaded.pop(number) and step == self.scene.step:
                    same, other = _compared(file.parts[number], model)
                    if other >= 2 and not same:
                        file.overwritten.add(number)
            if file.looks < LOOKS:
                file.looks += 1
                self._compare(file, model)

    def scheduled(self, scheduler: Any) -> None:
        self._has.add("scheduler")

    def scaler_updated(self, scaler: Any) -> None:
        self._has.add("scaler")

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        self._has.add("optimizer")

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """What was loaded may be why."""
        return self.finish()

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        return list(self._once.new(self._findings()))

    # ---- what was seen

    def _findings(self) -> Iterator[Finding]:
        yield from t321_state_unused.check(list(self._read_files()))
        yield from t322_keys_do_not_fit.check(self._keys)
        yield from t323_rest_not_restored.check(list(self._rests()))
        yield from t324_other_model_loaded.check(list(self._others()))
        yield from t325_other_model_saved.check(list(self._saved()))
        yield from t326_kept_by_reference.check(list(self._kept.values()))

    def _read_files(self) -> Iterator[ReadFile]:
        for file in self._files:
            states = [n for n, p in enumerate(file.parts) if p.kind == "model"]
            for number in states:
                part = file.parts[number]
                fits = [(_fitting(part, m), m) for m in self.scene.models if file.calls.get(id(m))]
                fitting, model = max(fits, key=lambda f: f[0], default=(0, None))
                used = number in file.taken or number not in file.compared
                if model is not None:
                    yield ReadFile(
                        file.path, part.name, file.at, len(part.shapes), fitting, type(model).__name__,
                        used, any(n in file.taken for n in states if n != number),
                        self.scene.step - file.at.step, file.calls[id(model)], number in file.overwritten)

    def _rests(self) -> Iterator[Rest]:
        for file in self._files:
            if not any(p.kind == "model" and n in file.taken for n, p in enumerate(file.parts)):
                continue
            others = [(n, p) for n, p in enumerate(file.parts) if p.kind != "model" and p.kind in self._has]
            restored = {p.kind for n, p in others if n in file.taken}
            left = {p.kind for n, p in others if n not in file.taken and not p.empty} - restored
            if left:
                yield Rest(file.path, file.at, tuple(sorted(left)), tuple(sorted(restored)),
                           any(w.top == file.top for w in self._writes), any(w.path == file.path for w in self._writes),
                           self.scene.step - file.at.step)

    def _others(self) -> Iterator[OtherModel]:
        called = {id(m) for model in self.scene.models for m in model.modules()}
        for load in self._loads:
            owner = load.owner()
            if owner is not None and (id(unwrapped(owner)) in called or any(id(m) in called for m in owner.modules())):
                continue
            for model in self.scene.models:
                calls = self._calls.get(id(model), {})
                took = any(x.owner() is model for x in self._loads)
                if frozenset(_short(k) for k in model.state_dict()) == load.keys and not took and calls:
                    yield OtherModel(load.name, load.path, load.at, type(model).__name__, sum(calls.values()),
                                     self._trained(model))
                    break

    def _saved(self) -> Iterator[Saved]:
        memory = {id(m): {p.untyped_storage()._cdata for p in m.parameters()} for m in self.scene.models}
        saved = [m for m in self.scene.models if any(w.memory & memory[id(m)] for w in self._writes)]
        for model in saved:
            write = next(w for w in self._writes if w.memory & memory[id(model)])
            keys = [_short(k) for k in model.state_dict()]
            for other in self.scene.models:
                if other in saved or memory[id(other)] & memory[id(model)] or [
                        _short(k) for k in other.state_dict()] != keys:
                    continue
                kind = ("untrained" if self._trained(other) and not self._trained(model) and not self._moved(model)
                        else "not-evaluated" if self._trained(model) and self._moved(other)
                        and not self._trained(other) and self._evaluated(other) and not self._evaluated(model) else "")
                if kind:
                    yield Saved(kind, type(model).__name__, type(other).__name__, write.path, write.at,
                                self._evaluated(other))

    def _trained(self, model: torch.nn.Module) -> bool:
        held = {id(p) for o in self.scene.optimizers for group in o.param_groups for p in group["params"]}
        return any(id(p) in held for p in model.parameters())

    def _evaluated(self, model: torch.nn.Module) -> int:
        return self._calls.get(id(model), {}).get("evaluated", 0)

    def _moved(self, model: torch.nn.Module) -> bool:
        first = next((p for p in model.parameters() if p.device.type == "cpu" and p.numel()), None)
        return first is None or self._start.get(id(model)) != sample_of(first)

    def _compare(self, file: _Read, model: torch.nn.Module) -> None:
        """A state that was copied in by hand is used as well: the same memory, or the same values under its key."""
        for number, part in enumerate(file.parts):
            if part.kind != "model" or number in file.taken:
                continue
            same, other = _compared(part, model)
            if same + other:
                file.compared.add(number)
            if same:
                file.taken[number] = "by hand"
            elif not other:
                self._ask_device(file, number, model)

    def _ask_device(self, file: _Read, number: int, model: torch.nn.Module) -> None:
        """The first values of a model that is on a device are on their way: nothing waits for them."""
        part, own = file.parts[number], _by_short_name(model)
        pairs = [(sample[0], t) for key, sample in part.samples.items() if len(set(sample)) > 1
                 for t in own.get(_short(key), ()) if t.is_cuda and tuple(t.shape) == part.shapes[key]][:MOST_ASKED]
        if pairs:
            self._late.send((file, number, [value for value, _ in pairs]),
                            torch.stack([t.detach().reshape(-1)[0].float() for _, t in pairs]))

    def _read(self, *, wait: bool = False) -> None:
        for (file, number, expected), values in self._late.arrived(wait=wait):
            file.compared.add(number)
            if any(_alike([a], [float(b)]) for a, b in zip(expected, values, strict=True)):
                file.taken.setdefault(number, "by hand")

    def _use(self, value: Any, kind: str, owner: Any = None) -> None:
        """A state that `state_dict` gave before an optimizer step is used after it, and its memory is the model's."""
        now = self._at()
        own = None if owner is None else {p.untyped_storage()._cdata for p in owner.parameters()}
        for number, tensor in enumerate(tensors_in(value)):
            if number >= MOST_GIVEN:
                return
            for given, name, taken in self._given:
                if given() is not tensor or taken.step >= now.step or not tensor.numel():
                    continue
                memory = tensor.untyped_storage()._cdata
                if own is not None and memory not in own:
                    continue
                if own is None and not any(memory == p.untyped_storage()._cdata for m in self.scene.models
                                           for p in m.parameters()):
                    continue
                before = self._kept.get((kind, taken.step))
                self._kept[kind, taken.step] = Kept(kind, name, taken, before.used if before else now,
                                                    1 + (before.times if before else 0))
                return

    def _note_keys(self, owner: Any, own: Sequence[str], state: Mapping[Any, Any], result: Any) -> None:
        missing = [str(k) for k in getattr(result, "missing_keys", ())]
        unexpected = [str(k) for k in getattr(result, "unexpected_keys", ())]
        fresh = FreshStatistics.left_by(owner, missing, {str(k) for k in state}) if missing else None
        if missing and (unexpected or fresh) and len(self._keys) < MOST_LOADS:
            self._fresh += [fresh] if fresh is not None else []
            self._keys.append(LoadedKeys(type(owner).__name__, self._at(), len(own), len(state), missing, unexpected,
                                         _prefix(own, unexpected), fresh.names if fresh else (),
                                         fresh.used if fresh else ()))

    def _at(self) -> At:
        place = here()
        return At(place.file if place else None, place.line if place else None, self.scene.step,
                  self.scene.recorder.rank)


def _compared(part: Part, model: torch.nn.Module) -> tuple[int, int]:
    """How many tensors of a state a model holds, and how many it has with other values; on the CPU alone."""
    own = _by_short_name(model)
    same = other = 0
    for key, sample in part.samples.items():
        if len(set(sample)) < 2:
            continue  # ones and zeros are what many tensors hold
        near = [t for t in own.get(_short(key), ()) if t.device.type == "cpu" and tuple(t.shape) == part.shapes[key]]
        if any(part.origin.has(t) or _alike(sample_of(t), sample) for t in near):
            same += 1
        elif near:
            other += 1
    return same, other


def _by_short_name(model: torch.nn.Module) -> dict[str, list[torch.Tensor]]:
    own: dict[str, list[torch.Tensor]] = {}
    for key, tensor in (*model.named_parameters(), *model.named_buffers()):
        own.setdefault(_short(key), []).append(tensor)
    return own


def _alike(these: Sequence[float], those: Sequence[float]) -> bool:
    """Equal to the resolution of 16 bits: a state may be loaded into another dtype."""
    return all(abs(a - b) <= 1e-2 * abs(a) + 1e-6 for a, b in zip(these, those, strict=True))


def _fitting(part: Part, model: torch.nn.Module) -> int:
    shapes: dict[str, set[tuple[int, ...]]] = {}
    for key, tensor in (*model.named_parameters(), *model.named_buffers()):
        shapes.setdefault(_short(key), set()).add(tuple(tensor.shape))
    return sum(shape in shapes.get(_short(key), ()) for key, shape in part.shapes.items())


def _short(key: str) -> str:
    return ".".join(key.split(".")[-WORDS:])


def _prefix(own: Sequence[str], unexpected: Sequence[str]) -> str:
    """What most keys of a state have in front of the model's, or, after a "-", lack."""
    mine = set(own)
    for key in unexpected[:8]:
        words = key.split(".")
        for count in range(1, len(words)):
            front = ".".join(words[:count]) + "."
            if sum(k.startswith(front) and k[len(front):] in mine for k in unexpected) >= 0.5 * len(unexpected):
                return front
    for key in own[:8]:
        words = key.split(".")
        for count in range(1, len(words)):
            front = ".".join(words[:count]) + "."
            if sum(front + k in mine for k in unexpected) >= 0.5 * len(unexpected):
                return f"-{front}"
    return ""


def _path(path: Any) -> str:
    return str(path)[:200] if isinstance(path, str) or hasattr(path, "__fspath__") else "a file object"


def _top(value: Any) -> tuple[str, ...]:
    return tuple(sorted(str(k)[:40] for k in list(value)[:32])) if isinstance(value, Mapping) else ()


