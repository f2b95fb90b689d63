"""Sentences of the catalog as they read for this run: its step, its command, its names, the line that is meant.

The catalog says "rerun to ten times the failing step" and "optimizer.step()"; a person who has to decide reads "run
`python train.py` to step 1275" and "opt.step()". What is not known of the run stays as the catalog says it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from traindx.code_names import NO_NAMES, CodeNames
from traindx.places import Places
from traindx.promised import promises_of
from traindx.safe_text import line
from traindx_tools import triage
from traindx_tools.experiments.level import level_of
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.run import Run

STEPS_BEYOND, TIMES = 100, 10
"""As `verify.steps_needed` asks for: so far the new run must get beyond the step where the old one failed."""

MOST_QUOTED = 100
"""Characters of a line of code in a sentence."""

_RERUN = re.compile(r"^(?:re-?run|run again)\b(?! (?:it|on|under|with) the\b)", re.IGNORECASE)
_FAR_ENOUGH = re.compile(r"\bten times the failing step\b")
_BATCH = re.compile(r"\bthe (?:failing|bad|first bad|offending) batch\b")
_STEP = re.compile(r"\b(?:the|that) (?:failing|faulty|first bad|offending) step\b")
_NAME = re.compile(r"\b(model|optimizer|scheduler|scaler|criterion|loss_fn|logits|labels)(?=\.[A-Za-z_]+\b(?!-)|\[)")
"""A role of a training in a piece of code; ids of failure modes ("opt.wrong-group") have hyphens."""
_PAIR = re.compile(r"^(?:or )?(?P<old>\S.*?) by (?P<new>\S.*)$")
_CALLED = re.compile(r"[A-Za-z_]\w*(?=\()|\b[A-Z]\w*[a-z]\w*\b")
"""Functions and classes of a piece of code."""


@dataclass(frozen=True)
class ThisRun:
    """What is known: `step` ("step 1175") and how far a new run must get, the command, the code's names."""

    step: str = ""
    enough: str = ""
    training: str = ""
    names: CodeNames = NO_NAMES

    def told(self, text: str) -> str:
        """A sentence of the catalog, already filled with what was measured."""
        for pattern, words in self._words():
            text = pattern.sub(lambda found, words=words: words(found), text)  # type: ignore[misc]
        return _of_these(text, self.names)

    def _words(self) -> Iterable[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        if self.enough:
            yield _FAR_ENOUGH, lambda _: self.enough
        if self.step:
            yield _BATCH, lambda _: f"the batch of {self.step}"
            yield _STEP, lambda _: self.step
        if self.training:
            yield _RERUN, lambda _: f"run `{self.training}` again"
        yield _NAME, lambda found: self.names.roles.get(found[1], found[1])


def this_run(found: triage.Hypothesis, places: Places, names: CodeNames = NO_NAMES) -> ThisRun:
    """What is known of the run that a hypothesis is about."""
    step, unit = _failing([w.finding for w in found.speaks_for])
    enough = f"step {min(step + STEPS_BEYOND, step * TIMES):g}" if step and unit == "step" else ""
    return ThisRun(f"{unit} {step:g}" if step else "", enough, places.training_command or "", names)


def _failing(findings: Iterable[Finding]) -> tuple[float, str]:
    """The step or epoch at which the worst of the findings begins; 0 where none has one beyond the start."""
    seen = [f for f in findings if f.severity.rank >= Severity.MEDIUM.rank and f.where.unit in ("step", "epoch")
            and (f.where.step or 0.0) > 1.0]
    first = min(seen, key=lambda f: (-f.severity.rank, f.where.step or 0.0), default=None)
    return (0.0, "") if first is None else (first.where.step or 0.0, first.where.unit)


def _of_these(text: str, names: CodeNames) -> str:
    """Of "replace A by B, C by D" what the code holds; all of it where it holds none, or nothing is known."""
    head, space, rest = text.partition(" ")
    pairs = [_PAIR.match(part) for part in rest.split(", ")]
    if head.lower() != "replace" or len(pairs) < 2 or not all(pairs):
        return text
    there = names.names | names.attributes
    kept = [p[0] for p in pairs if p and (called := _CALLED.findall(p["old"])) and there.issuperset(called)]
    return f"{head}{space}{', '.join(kept)}" if kept else text


def with_levels(promised: str, run: Run) -> str:
    """What should move, with where it stands at the end of this run: "loss falls (now: loss 1.274)"."""
    held = {str(s): s for s in reversed(run.series) if len(s)}
    named = dict.fromkeys(f"{p.group} {p.metric}".strip() for p in promises_of(promised))
    now = [f"{name} {level_of(held[name].values).value:.4g}" for name in named if name in held]
    return f"{promised} (now: {', '.join(now)})" if now else promised


def at_the_line(text: str, place: tuple[str, int], places: Places) -> str:
    """What is to be done, with the line as it stands: `loss = ...` says more than its number."""
    stands = _line(places.root / place[0], place[1])
    return f"{text}, in `{stands}`" if stands and stands not in text else text


def _line(path: Path, number: int) -> str:
    try:
        rows = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    said = line(rows[number - 1], MOST_QUOTED) if path.suffix == ".py" and 0 < number <= len(rows) else ""
    return "" if "`" in said or said.startswith("#") else said
