"""A cause that a person names when they reject a diagnosis, as the experiment that would test it, with its command.

"It is the learning rate" is a claim, and one change with one control decides it. The catalog says which change takes
the symptom from which failure modes; where the run's framework has no hook for that change, the setting of that name in
the code is changed in its place. Offered is only what can be made to this command in this workspace.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from traindx.investigators import steering
from traindx.offered import typed
from traindx.places import Places
from traindx.recorded import recorded_command
from traindx.session_folder import Opening
from traindx.verify import shown
from traindx_tools.catalog.catalog import FailureMode, load_catalog
from traindx_tools.catalog.decisions import load_decisions
from traindx_tools.catalog.fitting import Circumstances
from traindx_tools.errors import BadUsage, TraindxError
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions import intervention, prepare
from traindx_tools.experiments.interventions.intervention import ANY
from traindx_tools.experiments.plan import Decision

MOST = 2
"""Experiments that are proposed for one claim."""

_SETTINGS: tuple[tuple[str, re.Pattern[str], float], ...] = (
    ("lr", re.compile(r"(?:^|_)(?:lr|learning_?rate|step_size)(?:_|$)", re.IGNORECASE), 0.1),
    ("opt", re.compile(r"(?:^|_)(?:weight_?decay|wd|momentum)(?:_|$)", re.IGNORECASE), 0.0),
    ("clip", re.compile(r"(?:^|_)clip\w*(?:_|$)|max_?norm", re.IGNORECASE), 10.0),
    ("data", re.compile(r"(?:^|_)(?:noise|augment\w*|label_?smoothing)(?:_|$)", re.IGNORECASE), 0.0),
)
"""(family of failure modes, names of settings that it is about, by what the value is multiplied)."""

_WORD = re.compile(r"[a-z]{3,}")
_EMPTY = frozenset({"the", "and", "that", "this", "not", "for", "its", "has", "was", "are", "too", "but", "because"})


def tests_of(comment: str, workspace: Path, opening: Opening) -> tuple[str, ...]:
    """`commands` on the terms of a session; () where they cannot be made: no decision waits for a proposal."""
    command = opening.verify.command if opening.verify is not None else None
    try:
        return commands(comment, workspace, shown(command) if command else None,
                        opening.symptom.observed if opening.symptom.told_by == "person" else "")
    except (TraindxError, OSError):
        return ()


def commands(comment: str, workspace: Path, verify: str | None, symptom: str = "") -> tuple[str, ...]:
    """Commands of the experiments that would test what a comment claims, the nearest first; none where it claims
    nothing that one change decides, or where it is not known how the training is started.

    `verify`: the command that was agreed to; without one that which the workspace shows.
    """
    modes = load_catalog()
    steer = next(iter(steering.steers([f"{steering.SAID[1]}{comment}"], workspace, modes)), None)
    if steer is None or not steer.named:
        return ()
    code = tuple(sorted(workspace.glob("*.py")))
    training = verify or Places(workspace, code, recorded=recorded_command(workspace)).training_command
    if training is None:
        return ()
    here = Circumstances.of(code, ())
    named = {m: mode for m, mode in modes.items() if steer.shift(m) > 0}
    changes = [*_decisive(named, comment, here), *_own_settings(steer.named, code, comment)]
    made = [c for c in changes if _can_be_made(c, training, workspace)][:MOST]
    told = f" --symptom {typed([symptom])}" if symptom else ""
    return tuple(f"traindx experiment {typed([workspace])} --run {typed([training])} "
                 f"--change {typed([str(c)])}{told}" for c in made)


def _decisive(named: Mapping[str, FailureMode], comment: str, here: Circumstances) -> Iterator[Change]:
    """The catalog's changes that take the symptom from a named mode, those that the words are nearest to first."""
    words = _words(comment)

    def nearness(decision: Decision) -> tuple[int, int]:
        held = [named[m] for m in decision.removes if m in named]
        return (-max(len(words & _words(f"{m.id} {m.title}")) for m in held), -len(held))

    fitting = [d for d in load_decisions() if d.removes & named.keys() and _takes_hold(d, here)]
    yield from (d.change for d in sorted(fitting, key=nearness))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _EMPTY


def _takes_hold(decision: Decision, here: Circumstances) -> bool:
    hooks = intervention(decision.change.name).frameworks
    return any(f == ANY or here.has(f) for f in hooks) and decision.fits(here.code, {})


def _own_settings(families: Iterable[str], code: Sequence[Path], comment: str) -> Iterator[Change]:
    """Settings of the code, numbers under a name of the claim's own: a tenth, or off; more where it is said to be low.
    """
    asked = [(names, times) for family, names, times in _SETTINGS if family in families]
    low = re.search(r"\btoo (?:low|small|slow)\b", comment, re.IGNORECASE)
    for name, value in _numbers(code):
        for names, times in asked:
            if value and names.search(name):
                changed = value / times if low and times else value * times
                yield Change("set", {name: float(f"{changed:.6g}")})


def _numbers(code: Sequence[Path]) -> Iterator[tuple[str, float]]:
    """Names that a module sets to a number at its top, in the order of the files."""
    for path in code:
        try:
            tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        for node in tree.body:
            value = node.value.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) else None
            if isinstance(node, ast.Assign) and isinstance(value, (int, float)) and not isinstance(value, bool):
                yield from ((t.id, float(value)) for t in node.targets if isinstance(t, ast.Name))


def _can_be_made(change: Change, training: str, workspace: Path) -> bool:
    try:
        prepare(change, training, workspace)
    except (BadUsage, OSError):
        return False
    return True
