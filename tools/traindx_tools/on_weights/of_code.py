"""A checkpoint beside the program that loads it: which layers of the model would stay as they were initialised.

The program is read as text and never run (`state_loads.py`). Its `load_state_dict` says which model takes the
file. Where nothing loads it and classes of models lie beside it, the one that fits best is meant, and the answer is
weaker. Layers are compared, not single tensors: a layer's name is certain where a bias may be an option.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.renaming import Matched, match
from traindx_tools.on_weights.rules.w110_keys import RULE
from traindx_tools.on_weights.state_loads import Layer, Load, Model, loads, models
from traindx_tools.on_weights.tensor import InMemory, Tensor

MOST_FILES, MOST_BYTES = 40, 2**20
"""Python files beside a checkpoint that are read, and what they may hold together."""
FEWEST = 2
"""Layers of a model below which its names say too little."""
_NUMBER = re.compile(r"\d+")
_NOTHING = InMemory(b"")


@dataclass(frozen=True)
class Beside:
    """The layers of a model beside the tensors of a file, by their names in a state dict."""

    model: Model
    tensors: Mapping[str, Tensor]
    load: Load | None

    def to_json(self) -> dict[str, object]:
        """Which class, where it takes the file, and how many of its layers are there."""
        layers = len(self.model.layers)
        return {"class": self.model.name, "made": str(self.model.made),
                "load": str(self.load.at) if self.load else None, "layers": layers,
                "matched": layers - len(self.missing)}

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        """Every name of a tensor, and all that stands before a dot in one."""
        ends = ((name, at) for name in self.tensors for at in (*_dots(name), len(name)))
        return frozenset(name[:at] for name, at in ends)

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Layers of the model without a tensor."""
        return tuple(n for n in self.model.layers if n not in self._prefixes)

    @cached_property
    def unexplained(self) -> tuple[str, ...]:
        """Layers of the file that no layer of the model explains, whatever its number in a list is."""
        known = {_alike(n) for n in self.model.layers}
        containers = {_alike(name[:at]) for name in self.model.layers for at in _dots(name)}
        found = []
        for name in self.tensors:
            if not any(_alike(name[:at]) in known for at in (*_dots(name), len(name))):
                layer = name.rpartition(".")[0]
                found.append(name if not layer or _alike(layer) in containers else layer)
        return tuple(dict.fromkeys(found))

    @cached_property
    def renamed(self) -> Matched:
        """The names after the renaming that fits most layers."""
        layers = {n: Tensor(n, "float32", (), _NOTHING, "") for n in self.model.layers}
        held = {n: Tensor(n, "float32", (), _NOTHING, "")
                for n in (*(n for n in layers if n in self._prefixes), *self.unexplained)}
        return match(layers, held)

    @cached_property
    def counted_from(self) -> int:
        """From which number the file counts the members of lists that the model counts from 0; 0: from 0 as well.

        Every layer that is missing must be such a first member, and the file must have it under a later number alone.
        """
        starts = set()
        for name in self.missing:
            head, zero, rest = name.partition(".0.")
            numbers = {int(m[1]) for p in self._prefixes if (m := re.match(rf"{re.escape(head)}\.(\d+)\.", p))}
            if not zero or not numbers or min(numbers) == 0 or f"{head}.{min(numbers)}.{rest}" not in self._prefixes:
                return 0
            starts.add(min(numbers))
        return starts.pop() if len(starts) == 1 else 0

    @cached_property
    def other_shapes(self) -> tuple[str, ...]:
        """Layers whose weight has another size than the text says."""
        return tuple(n for n, layer in self.model.layers.items()
                     if (t := self.tensors.get(f"{n}.weight")) is not None and not _agrees(layer, t.shape))

    @cached_property
    def exchanged(self) -> tuple[tuple[str, str], ...]:
        """(layer of the model, layer of the file) with a weight of the same written size, each the only such one."""
        free = [(u, self.tensors[f"{u}.weight"].shape) for u in self.unexplained if f"{u}.weight" in self.tensors]
        pairs = []
        for name in self.missing:
            layer = self.model.layers[name]
            fits = [u for u, shape in free if layer.weight and None not in layer.weight and _agrees(layer, shape)]
            if len(fits) == 1:
                pairs.append((name, fits[0]))
        taken = [b for _, b in pairs]
        return tuple(p for p in pairs if taken.count(p[1]) == 1)


def _dots(name: str) -> Iterator[int]:
    return (i for i, c in enumerate(name) if c == ".")


def _alike(name: str) -> str:
    """A name whatever its numbers are: of a list that a loop fills, the text gives the first member alone."""
    return _NUMBER.sub("#", name)


def _agrees(layer: Layer, shape: tuple[int, ...]) -> bool:
    if not layer.weight:
        return True
    return len(shape) == len(layer.weight) and all(a in (None, b) for a, b in zip(layer.weight, shape, strict=True))


def code_beside(path: str | Path) -> tuple[Path, ...]:
    """The Python files in the folder of a checkpoint, none where they are too many to be of one program."""
    folder = Path(path) if os.path.isdir(path) else Path(path).parent
    try:
        files = sorted(p for p in folder.glob("*.py") if p.is_file())
        fits = len(files) <= MOST_FILES and sum(p.stat().st_size for p in files) <= MOST_BYTES
    except OSError:
        return ()
    return tuple(files) if fits else ()


def beside_code(checkpoint: Checkpoint, projects: Sequence[Project], *, unloaded: bool = False) -> list[Beside]:
    """The models that these programs load the checkpoint into, each once.

    `unloaded`: also the class that fits best, where nothing loads the checkpoint.
    """
    found: dict[tuple[str, frozenset[str]], Beside] = {}
    for project in projects:
        for load in loads(project):
            tensors = _state(checkpoint, load.keys) if _is_named(checkpoint, load.file) else {}
            if tensors and len(load.model.layers) >= FEWEST:
                found.setdefault((load.model.name, frozenset(load.model.layers)), Beside(load.model, tensors, load))
    if found or not unloaded:
        return list(found.values())
    tensors = checkpoint.weights.tensors
    classes = [Beside(m, tensors, None) for p in projects for m in models(p) if len(m.layers) >= FEWEST]
    return sorted(classes, key=_fit)[-1:] if tensors else []


def _fit(beside: Beside) -> int:
    return len(beside.model.layers) - len(beside.missing) + len(beside.renamed.renamed)


def _is_named(checkpoint: Checkpoint, file: str) -> bool:
    """Whether a load means this checkpoint: by the name of the file or of the folder; a name left open may."""
    return not file or file in (os.path.basename(checkpoint.path), os.path.basename(os.path.normpath(checkpoint.path)))


def _state(checkpoint: Checkpoint, keys: tuple[str, ...] | None) -> Mapping[str, Tensor]:
    """The tensors that these entries of the file hold, by the names that they have there."""
    part = checkpoint.weights
    if keys is None or not part.key:
        return part.tensors if keys is None or not keys else {}
    before = f"{'.'.join(keys)}." if keys else ""
    named = {f"{part.key}.{n}": t for n, t in part.tensors.items()}
    return {n[len(before):]: t for n, t in named.items() if n.startswith(before)}


def findings_beside(checkpoint: Checkpoint, found: Iterable[Beside], projects: Sequence[Project]) -> Iterator[Finding]:
    """W110 of a checkpoint and the models that take it. A renaming whose prefix the program names is its own work."""
    for one in found:
        if one.missing:
            told = _keys(checkpoint, one, projects)
        else:
            told = _shapes(checkpoint, one) if one.other_shapes else None
        if told is not None:
            yield told


def _keys(checkpoint: Checkpoint, one: Beside, projects: Sequence[Project]) -> Finding | None:
    layers, missing = one.model.layers, one.missing
    known = one.load is not None and bool(one.load.file)
    again = one.renamed
    if again.renaming is not None and len(again.renamed) >= min(FEWEST, len(layers)):
        if any(_mentioned(projects, p) for p in (again.renaming.old, again.renaming.new) if p):
            return None
        return _finding(
            checkpoint, one, f"{len(again.renamed)} are there with {again.renaming}",
            Bearing.CAUSE if one.load is not None else Bearing.SIGN, Severity.HIGH,
            {"kind": "offset" if again.renaming.offset else "prefix", "renaming": str(again.renaming)})
    if one.counted_from and one.load is not None:
        first = missing[0].partition(".0.")[0]
        return _finding(checkpoint, one, f"the file counts {first} from {one.counted_from} and the model from 0: each "
                        "lands a place too deep, the first stays as it was made and the last finds none",
                        Bearing.CAUSE, Severity.HIGH, {"kind": "offset", "from": str(one.counted_from)})
    if one.exchanged and one.unexplained and len(missing) < len(layers):
        a, b = one.exchanged[0]
        return _finding(checkpoint, one, f"{b} of the file has the size of {a}", Bearing.SIGN, Severity.MEDIUM,
                        {"kind": "missing"})
    if len(missing) == len(layers) and known and one.unexplained:
        return _finding(checkpoint, one, f"it holds {', '.join(one.unexplained[:3])}", Bearing.SIGN, Severity.MEDIUM,
                        {"kind": "missing"})
    if 2 * len(missing) >= len(layers) > len(missing) and one.unexplained and one.load is not None:
        return _finding(checkpoint, one, f"it holds {', '.join(one.unexplained[:3])}, which the model does not have",
                        Bearing.SIGN, Severity.MEDIUM, {"kind": "missing"})
    return None


def _mentioned(projects: Sequence[Project], prefix: str) -> bool:
    """Whether a program writes a prefix down: it takes it off or puts it in front itself."""
    texts = (n.value for p in projects for f in p.files if prefix in f.text for n in below(f.tree)
             if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return any(prefix.rstrip(".") == t.strip(".") for t in texts)


def _finding(checkpoint: Checkpoint, one: Beside, why: str, bearing: Bearing, severity: Severity,
             measured: Mapping[str, str]) -> Finding:
    layers, missing = one.model.layers, one.missing
    listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    how = f"loaded at {one.load.at}" if one.load else "of the code beside it"
    return RULE.finding(
        f"{checkpoint.path} has no tensor for {len(missing)} of the {len(layers)} layers of {one.model.name} "
        f"({listed}); {why}; {how}, the class stands at {one.model.made}",
        _where(one), checkpoint.path, bearing=bearing, severity=severity,
        measured={**measured, "model": one.model.name, "layers": len(layers), "missing": len(missing)})


def _shapes(checkpoint: Checkpoint, one: Beside) -> Finding:
    name = one.other_shapes[0]
    told = [f"{n}.weight ({list(one.tensors[f'{n}.weight'].shape)} in the file, "
            f"{['?' if d is None else d for d in one.model.layers[n].weight]} in the code)"
            for n in one.other_shapes[:3]]
    return RULE.finding(
        f"{len(one.other_shapes)} layers of {one.model.name} ({one.model.made}) have another size in "
        f"{checkpoint.path}: {', '.join(told)}".replace("'?'", "?"), _where(one), checkpoint.path,
        bearing=Bearing.CAUSE if one.load is not None and one.load.file else Bearing.SIGN, severity=Severity.MEDIUM,
        measured={"kind": "shape", "name": f"{name}.weight", "shapes": len(one.other_shapes),
                  "model": one.model.name})


def _where(one: Beside) -> Location:
    at = one.load.at if one.load is not None else one.model.made
    return Location(file=at.path, line=at.line)
