"""Which recorded series a stated subject is: by the run's own name, by its canonical name, by its group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from traindx_tools.on_logs.curves.learning import main_loss
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.symptom.stated import Subject
from traindx_tools.symptom.subjects import BY_KEY, SPLITS

HELD_OUT = ("validation", "test")
_WORDS = re.compile(r"[^a-z0-9]+")


def series_of(subject: Subject | None, run: Run) -> tuple[Series, ...]:
    """The series that hold a subject, the most likely first; empty where none was recorded.

    Without a subject, or for the run as a whole, its main loss.
    """
    if subject is None or subject.family == "run":
        group = subject.group if subject is not None and subject.group in HELD_OUT else "train"
        return _present([main_loss(run, group), *_longest(run, ("accuracy", "reward"), group)])
    named = _named(subject, run)
    if named:
        return named
    if subject.key == "split":
        group = subject.group or "train"
        return _present([*_longest(run, BY_KEY["accuracy"].names, group), main_loss(run, group)])
    groups = _groups(subject)
    row = BY_KEY.get(subject.key)
    if row is None:
        return ()
    found = [s for g in groups for s in _longest(run, row.names, g)]
    if row.key == "loss":
        found = [*_present(main_loss(run, g) for g in groups), *found]
    if row.key == "accuracy" and not found:
        found = [s for g in groups for s in run.series if s.group == g and s.name.split("/")[0] in row.names and len(s)]
    if row.key == "loss" and not _present(found):
        found = [s for g in groups for s in run.series if s.group == g and "loss" in s.original.lower() and len(s)]
    if row.family == "memory":
        found = [s for s in run.series if s.name.split("/")[0] == "memory" and len(s)]
    return _present(found) or _by_words(subject, run)


def _by_words(subject: Subject, run: Run) -> tuple[Series, ...]:
    """Series whose own name holds every word of the subject: "return" is `episodic_return`."""
    said = {w for w in _WORDS.split(subject.words.lower()) if w and w not in SPLITS}
    named = [s for s in run.series if said and said <= set(_WORDS.split(s.original.lower()))]
    return _present(s for s in named if s.group in _groups(subject))


def _groups(subject: Subject) -> tuple[str, ...]:
    if subject.group in HELD_OUT:
        return ("validation", "test") if subject.group == "validation" else ("test", "validation")
    return ("train",) if subject.group == "train" else ("train", "validation", "test")


def _named(subject: Subject, run: Run) -> tuple[Series, ...]:
    """Series whose own name the person wrote: "loss_bbox", "code_perplexity", "aux"."""
    said = _key(subject.words)
    bare = "".join(w for w in _WORDS.split(subject.words.lower()) if w not in SPLITS)
    exact = [s for s in run.series if len(s) and _key(s.original) == said]
    ends = [s for s in run.series if len(s) and bare and _key(s.original.split("/")[-1]) == bare]
    near = [s for s in ends if subject.group is None or s.group == subject.group]
    if said in ("loss", "accuracy", "acc", "error", "score") or (
        not exact and bare in ("loss", "accuracy", "acc", "error")
    ):
        return ()  # the general words mean the main one, not the first so called
    return _present([*exact, *near])


def _key(name: str) -> str:
    return _WORDS.sub("", name.lower())


def _longest(run: Run, names: Sequence[str], group: str) -> list[Series]:
    found = [run.first(name, group=group) for name in names]
    return [s for s in found if s is not None]


def _present(found: Iterable[Series | None]) -> tuple[Series, ...]:
    """Each series once, in order; of several ranks the first."""
    kept = {id(s): s for s in found if s is not None and len(s)}
    return tuple(kept.values())
