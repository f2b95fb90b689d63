"""Reads checkpoints, measures their tensors once, and asks the rules."""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx_tools.collection import undisturbed
from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights.between_files import ROOM, between_files
from traindx_tools.on_weights.checkpoint import Checkpoint, Part
from traindx_tools.on_weights.formats.reading import read_checkpoint
from traindx_tools.on_weights.measuring import measure_all
from traindx_tools.on_weights.renaming import Matched, match
from traindx_tools.on_weights.rules import w110_keys
from traindx_tools.on_weights.seen import FEWEST_SIBLINGS, Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.telling import shortened, together
from traindx_tools.on_weights.unnamed_moments import with_unnamed_moments
from traindx_tools.rules import rules_in

if TYPE_CHECKING:
    from traindx_tools.on_code.project import Project
    from traindx_tools.on_weights.of_code import Beside

UP = 2
OF_CHECKPOINTS = re.compile(r"(?i)^(?:.*(?:checkpoint|ckpt|weights|snapshot).*|(?:global_?|step_?|epoch_?)?\d+)$")
"""What folders of checkpoints are called."""
MOST_CONFIG = 2**20
MOST_OF_A_RULE = 20
"""Findings of one rule in one part that are told one by one; a damage that is everywhere needs no longer list."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Examined:
    """What was seen in one checkpoint, or in two."""

    checkpoint: Checkpoint
    other: Checkpoint | None
    findings: tuple[Finding, ...]
    """The worst first."""
    matched: Matched | None
    left_out: tuple[str, ...]
    """Tensors that the time did not suffice for."""
    notes: tuple[str, ...]
    model: Checkpoint | None = None
    into: Matched | None = None
    """The model's names (first) beside the checkpoint's."""
    beside: tuple[Beside, ...] = ()
    """The models of the code that load the checkpoint, beside it."""
    compared: Mapping[str, Any] = field(default_factory=dict)
    """What was laid beside what: siblings in stacks, and of two files what moved most and least."""

    @property
    def exit_code(self) -> int:
        """0 nothing wrong, 1 something above INFO was found."""
        return int(any(f.severity is not Severity.INFO for f in self.findings))

    def summary(self) -> dict[str, Any]:
        """What the file holds, in numbers."""
        tensors = list(self.checkpoint.tensors)
        types: dict[str, int] = {}
        for t in tensors:
            types[t.dtype] = types.get(t.dtype, 0) + t.size
        held: dict[str, Any] = {"path": self.checkpoint.path, "format": self.checkpoint.format, "tensors": len(tensors),
                                "values": sum(t.size for t in tensors), "types": types,
                                "parts": [p.key for p in self.checkpoint.parts if p.key],
                                "optimizers": [o.key for o in self.checkpoint.optimizers]}
        held["compared"] = dict(self.compared)
        if self.matched is not None and self.other is not None:
            held["against"] = _told(self.other.path, self.matched)
        if self.into is not None and self.model is not None:
            held["model"] = _told(self.model.path, self.into)
        if self.beside:
            held["code"] = [b.to_json() for b in self.beside]
        return held

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**self.summary(), "findings": [f.to_json() for f in self.findings], "left_out": list(self.left_out),
                "notes": list(self.notes)}


def _told(path: str, found: Matched) -> dict[str, Any]:
    return {"path": path, "matched": len(found.pairs), "renamed": len(found.renamed),
            "renaming": str(found.renaming) if found.renaming else None, "missing": len(found.missing),
            "unexpected": len(found.unexpected), "other_shapes": len(found.shapes),
            "values_that_would_stay_random": found.lost}


@undisturbed()
def examine(path: str | Path | Checkpoint, against: str | Path | None = None, *, model: Checkpoint | None = None,
            seconds: float = math.inf, code: Sequence[Project] = (), unloaded: bool = False,
            between: bool = False) -> Examined:
    """What is wrong in a checkpoint: a file, an index of shards or a folder, or one that was read; and against another
    one or a model.

    Nothing is executed, loaded as a whole or written. `model`: names and shapes that the checkpoint is to be loaded
    into (`of_model.py`). `code`: programs that may load it, followed and never run (`of_code.py`); with `unloaded` the
    class that fits best is laid beside it where none of them does. `between`: whether the rules are asked that lay
    files beside each other, as within a diagnosis. `seconds`: what measuring may take; tensors that it
    does not suffice for are named. Raises UnreadableInput where a path holds nothing that is read, MissingExtra where a
    format needs a package.
    """
    checkpoint = path if isinstance(path, Checkpoint) else read_checkpoint(path)
    other = read_checkpoint(against) if against is not None else None
    wanted = [t for c in (checkpoint, other) if c is not None for p in c.parts if not p.auxiliary
              for t in p.tensors.values()]
    stats, left = measure_all(wanted, seconds)
    checkpoint = with_unnamed_moments(checkpoint, stats)
    other = with_unnamed_moments(other, stats) if other is not None else None
    beside = _seen(other, other.weights, stats) if other is not None else None
    failures: list[str] = []
    parts = [p for p in checkpoint.parts if not p.auxiliary] or [checkpoint.weights]
    seen = [_seen(checkpoint, part, stats, _counterpart(part, other, beside, stats)) for part in parts]
    findings = [f for part in seen for f in _judged(part, failures)]
    if other is not None:
        findings += [f for part in other.parts if not part.auxiliary
                     for f in _judged(_seen(other, part, stats), failures)]
    if model is not None:
        loaded = Seen(checkpoint, checkpoint.weights, {})
        findings += w110_keys.check(Seen(model, model.weights, {}, other=loaded))
    beside_it: list[Beside] = []
    if code:
        from traindx_tools.on_weights.of_code import beside_code, findings_beside

        beside_it = beside_code(checkpoint, code, unloaded=unloaded)
        findings += findings_beside(checkpoint, beside_it, code)
        findings += [f for r in rules_in(ROOM) if r.asks == "check_code" for f in r.check(checkpoint, code)]
    if between:
        both = [c for c in (checkpoint, other) if c is not None]
        findings += between_files(both, code, [c.path for c in both])
    matched = match(checkpoint.weights.tensors, other.weights.tensors) if other is not None else None
    into = match(model.weights.tensors, checkpoint.weights.tensors) if model is not None else None
    notes = (*checkpoint.notes, *(other.notes if other is not None else ()), *failures)
    paths = [p for c in (checkpoint, other) if c is not None for p in (c.path, *(t.file for t in c.tensors))]
    order = sorted(shortened(findings, paths), key=lambda f: (-f.severity.rank, f.rule))
    return Examined(checkpoint, other, tuple(order), matched, tuple(t.name for t in left), notes, model, into,
                    tuple(beside_it), next((_compared(part) for part in seen if part.main), {}))


def _counterpart(part: Part, other: Checkpoint | None, beside: Seen | None, stats: Mapping[int, Stats]) -> Seen | None:
    """The part of the other file under the same name: an average is compared with the average, not with the weights."""
    same = [p for p in (other.parts if other is not None else ()) if p.key == part.key and not p.auxiliary]
    if other is None or beside is None or not same or same[0] is beside.part:
        return beside
    return _seen(other, same[0], stats)


def _compared(seen: Seen) -> Mapping[str, Any]:
    """The groups of siblings of the model, and what moved up to the other file."""
    groups = seen.stacks_from(FEWEST_SIBLINGS)
    counted: dict[str, Any] = {"groups": len(groups), "siblings": sum(len(g) for g in groups),
                            "measured": len(seen.stats)}
    changes = {n: c for n, c in seen.changes.items() if not math.isnan(c)}
    if changes:
        counted |= {"moved": sum(c > 0 for c in changes.values()), "still": sum(c == 0 for c in changes.values()),
                    "from_zero": sum(math.isinf(c) for c in changes.values())}
        moved = {n: c for n, c in changes.items() if 0 < c < math.inf}
        if moved:
            most, least = max(moved, key=lambda n: moved[n]), min(moved, key=lambda n: moved[n])
            counted |= {"most": (most, moved[most]), "least": (least, moved[least])}
    return counted


def _seen(checkpoint: Checkpoint, part: Part, stats: Mapping[int, Stats], other: Seen | None = None) -> Seen:
    known = {n: stats[id(t)] for n, t in part.tensors.items() if id(t) in stats}
    return Seen(checkpoint, part, known, configuration(checkpoint.path), other, stats)


def configuration(path: str) -> Mapping[str, Any]:
    """config.json beside a checkpoint, {} where there is none that can be read.

    Beside the folder as well where it is called as those of checkpoints are (`checkpoints/260`, `ckpt`), twice at most.
    """
    folder = os.path.abspath(path if os.path.isdir(path) else os.path.dirname(path))
    for _ in range(UP + 1):
        file = os.path.join(folder, "config.json")
        if os.path.isfile(file):
            return _configuration(file)
        if not OF_CHECKPOINTS.search(os.path.basename(folder)):
            break
        folder = os.path.dirname(folder)
    return {}


def _configuration(file: str) -> Mapping[str, Any]:
    try:
        if os.path.getsize(file) > MOST_CONFIG:
            return {}
        with open(file, encoding="utf-8") as stream:
            config = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def _judged(seen: Seen, failures: list[str]) -> Iterator[Finding]:
    """What all rules tell of a part; a rule that fails is named and costs no other one."""
    for module in rules_in(ROOM):
        if module.asks != "check":
            continue
        try:
            found = together(list(module.check(seen)))
        except UnreadableInput:
            raise
        except Exception as error:  # noqa: BLE001 - one broken rule must not cost a person the others
            _log.debug("rule %s failed", module.rule.id, exc_info=True)
            failures.append(f"rule {module.rule.id} failed on {seen.path} ({type(error).__name__}: {error}) and was "
                            "skipped")
            continue
        yield from found[:MOST_OF_A_RULE]
        if len(found) > MOST_OF_A_RULE:
            failures.append(f"{module.rule.id}: {len(found) - MOST_OF_A_RULE} more in {seen.path}")
