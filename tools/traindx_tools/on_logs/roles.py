"""What a metric of an unknown name is: told by the code that prints it, by the words of the field, by its course.

Readers know the names that are in common use. A run may call its loss "hinge" or "q", its learning rate "eta", its
steps "s"; rules would then see nothing. Here such names get their canonical one, by the surest witness there is:

1. the code beside the log (`on_code.printed`): what is printed under that name is certain;
2. the words of the field (`role_names`): loss functions, symbols of the learning rate and of the gradient;
3. the course, where neither says anything and only one series fits: a computed curve of small numbers is a schedule, a
   noisy positive curve that falls is a loss. Such a role is a guess: the series is marked as `inferred`, and findings
   that rest on it count as patterns only.

A name that readers know is never changed; `original` always keeps what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.on_logs.readers.names import GROUPS, TRAIN, VALIDATION, identify, words
from traindx_tools.on_logs.role_names import (
    ADVERSARIES,
    AMBIGUOUS,
    COUNTERS,
    COUNTERS_IF_EVEN,
    LOSS,
    RATE,
    SCORE,
    TIME_LEFT,
    role_of_name,
)
from traindx_tools.on_logs.role_shapes import falls_like_a_loss, is_small_and_smooth, moves_like_a_schedule
from traindx_tools.on_logs.run import LOSSES, Floats, Run, Series
from traindx_tools.on_logs.time_counters import without_time_counters

if TYPE_CHECKING:
    from traindx_tools.printed_values.names import Printed

_METRICS = frozenset({"loss", "loss_term", "learning_rate", "grad_norm", "loss_scale", "accuracy"})
_MEASURED = frozenset({"loss", "loss_term", "accuracy", "hits"})
_SECOND_CHOICE = frozenset({"mae", "rmse", "mape", "elbo"})
"""Names that stand for the loss only where nothing else does."""


@dataclass(frozen=True)
class Role:
    """A canonical name, and the witness: "code", "name" or "shape"."""

    name: str
    witness: str


def assign_roles(run: Run, printed: Sequence[Printed] = ()) -> Run:
    """The run with canonical names for what could be told, and with the steps that a short counter gives.

    `printed`: what the code beside the log prints, see `on_code.printed.printed_names`.
    """
    spoken = Spoken(printed)
    run = _with_steps(run, spoken)
    run = replace(run, series=tuple(spoken.grouped(s) for s in run.series))
    roles = _roles(run, spoken)
    renamed = tuple(_renamed(s, roles[i]) if i in roles else s for i, s in enumerate(run.series))
    timed = replace(run, series=tuple(s for s in renamed if not _is_time_left(s)))
    return _by_shape(without_time_counters(timed))


def unresolved(run: Run) -> bool:
    """Whether something is left that only the code could explain: a name, or on which data a score was measured."""
    return any(not identify(s.original).known or _has_no_group(s) for s in run.series) or any(
        a.format in ("data_records", "data_table") for a in run.artifacts)


def _has_no_group(s: Series) -> bool:
    """Whether a score does not say on which data it was measured."""
    return s.name == "accuracy" and s.group == TRAIN and identify(s.original).group is None


def trusted_names(printed: Iterable[Printed]) -> frozenset[str]:
    """Names that the code prints a metric under: records that hold one are a log."""
    return frozenset(p.name for p in printed if p.meaning.role in _METRICS)


def _is_unknown(s: Series) -> bool:
    """Whether a series still has the name under which it was written, and readers do not know that one."""
    name = identify(s.original)
    return not name.known and s.name == name.canonical


def is_known(s: Series) -> bool:
    """Whether rules can know what a series is: by its name, by the code that prints it, or by its course."""
    return not _is_unknown(s)


def _stem(original: str) -> tuple[str, ...]:
    return tuple(w for w in words(original) if w not in GROUPS)


class Spoken:
    """What the code says of names, by the words of the name."""

    def __init__(self, printed: Sequence[Printed]) -> None:
        self._by_words: dict[tuple[str, ...], list[Printed]] = {}
        for p in printed:
            self._by_words.setdefault(_stem(p.name), []).append(p)

    def of(self, s: Series) -> list[Printed]:
        """What is printed under the name of a series, in its group where the code names one."""
        stem = _stem(s.original)
        found = self._by_words.get(stem, [])
        if not found and stem:
            found = [p for key, items in self._by_words.items() for p in items
                     if key and (key[-len(stem):] == stem or stem[-len(key):] == key)]
        same = [p for p in found if identify(p.name).group in (None, s.group)]
        return same or found

    def role(self, s: Series) -> str | None:
        """The one meaning that all places give to the name of a series."""
        roles = {p.meaning.role for p in self.of(s)}
        return roles.pop() if len(roles) == 1 else None

    def grouped(self, s: Series) -> Series:
        """The series in the group in which the code measures it, where neither name nor log says one."""
        said = self._by_words.get(_stem(s.original), [])
        held_out = bool(said) and all(p.meaning.held_out and p.meaning.role in _MEASURED for p in said)
        if held_out and s.group == TRAIN and identify(s.original).group is None:
            return replace(s, group=VALIDATION)
        return s


def _with_steps(run: Run, spoken: Spoken) -> Run:
    """The run with the steps that a counter of an unusual name gives to the records of its lines."""
    series = list(run.series)
    for source in dict.fromkeys(s.source for s in series):
        mine = [s for s in series if s.source == source]
        if any(np.isfinite(s.step).any() for s in mine):
            continue
        counter = max((s for s in mine if _counts(s, spoken)), key=len, default=None)
        if counter is None or len(mine) == 1:
            continue
        steps = dict(zip(counter.line.tolist(), counter.values.tolist(), strict=True))
        unit = "epoch" if spoken.role(counter) == "epoch" else "step"
        series = [_placed(s, steps, unit) if s.source == source else s for s in series if s is not counter]
    return replace(run, series=tuple(series))


def _counts(s: Series, spoken: Spoken) -> bool:
    """Whether a series is a counter: whole numbers that only grow, under a counter's name or so called in the code."""
    v = s.values
    if s.name.startswith("time/"):
        return False  # "t:61s" is a duration
    if len(v) < 3 or not np.isfinite(v).all() or (v != np.round(v)).any() or (np.diff(v) <= 0).any() or v[0] < 0:
        return False
    name = "_".join(words(s.original))
    if spoken.role(s) in ("step", "epoch") or name in COUNTERS:
        return True
    distances = np.diff(v)
    return name in COUNTERS_IF_EVEN and bool((distances == np.median(distances)).mean() >= 0.8)


def _placed(s: Series, steps: Mapping[int, float], unit: str) -> Series:
    known: Floats = np.array([steps.get(int(line), np.nan) for line in s.line], dtype=np.float64)
    return replace(s, step=known) if unit == "step" else replace(s, epoch=known)


def _roles(run: Run, spoken: Spoken) -> dict[int, Role]:
    """Canonical names for the series, by their place in the run, as code and names tell them."""
    told: dict[int, Role] = {}
    for i, s in enumerate(run.series):
        if not len(s) or not _is_unknown(s):
            continue
        by_code = spoken.role(s)
        if by_code in (LOSS, "loss_term") and _NEVER_A_LOSS.intersection(_stem(s.original)):
            continue  # the code fills several names by one expression: one of them is a loss, this one is a score
        if by_code in _METRICS and by_code is not None:
            told[i] = Role(by_code, "code")
        elif (by_name := role_of_name(s.original)) is not None and _fits(run, s, by_name):
            told[i] = Role(by_name, "name")
    return _settled(run, told)


def _fits(run: Run, s: Series, role: str) -> bool:
    """Whether the values can be what an ambiguous name may mean."""
    if role == RATE and "_".join(_stem(s.original)) in AMBIGUOUS:
        bounded = AMBIGUOUS["_".join(_stem(s.original))]
        reinforced = any(x.name.startswith(("reward", "entropy", "advantage")) for x in run.series)
        return is_small_and_smooth(s.values, bounded) and not reinforced
    return True


def _settled(run: Run, told: Mapping[int, Role]) -> dict[int, Role]:
    """Of several names for one thing the surest keeps the canonical name, the others become parts of it."""
    out: dict[int, Role] = {}
    for group in dict.fromkeys(s.group for s in run.series):
        mine = {i: r for i, r in told.items() if run.series[i].group == group}
        for kind in ("learning_rate", "grad_norm", "loss_scale", SCORE):
            out.update(_one_of(run, {i: r for i, r in mine.items() if r.name == kind}, group))
        losses = {i: r for i, r in mine.items() if r.name in (LOSS, "loss_term")}
        adversaries = _adversaries(run, losses, group)
        out.update(adversaries)
        out.update(_main_loss(run, {i: r for i, r in losses.items() if i not in adversaries}, group))
        out.update({i: r for i, r in mine.items() if r.name not in (
            "learning_rate", "grad_norm", "loss_scale", SCORE, LOSS, "loss_term")})
    return out


def _one_of(run: Run, mine: Mapping[int, Role], group: str) -> dict[int, Role]:
    out: dict[int, Role] = {}
    for i in sorted(mine, key=lambda i: mine[i].witness != "code"):
        s, name = run.series[i], mine[i].name
        taken = any(x.name == name and x.group == group and x.source == s.source for x in run.series) or any(
            r.name == name and run.series[j].source == s.source and run.series[j].rank == s.rank
            for j, r in out.items())
        if name == SCORE and (_is_score(s) or taken):
            continue
        out[i] = Role(f"{name}/{'_'.join(_stem(s.original))}" if taken else name, mine[i].witness)
    return out


def _adversaries(run: Run, losses: Mapping[int, Role], group: str) -> dict[int, Role]:
    """The two losses of a generator and a discriminator by their names; by letters where the code calls both losses."""
    found: dict[int, Role] = {}
    for i, s in enumerate(run.series):
        stem, told = "_".join(_stem(s.original)), losses.get(i)
        by_code = told is not None and told.witness == "code"
        if stem in ADVERSARIES and s.group == group and _is_unknown(s) and (len(stem) > 1 or by_code):
            found[i] = Role(ADVERSARIES[stem], "code" if by_code else "name")
    return found if len({r.name for r in found.values()}) == 2 else {}


def _is_score(s: Series) -> bool:
    """Whether the name itself says which score it is, or the values are none."""
    finite = s.values[s.finite]
    outside = len(finite) == 0 or float(finite.min()) < 0 or float(finite.max()) > 100
    return outside or any(w in SCORES_BY_NAME for w in _stem(s.original))


SCORES_BY_NAME = frozenset({"recall", "precision", "f1", "auc", "iou", "miou", "dice", "map", "bleu", "rouge", "wer",
                            "cer", "hit", "hits", "mrr", "ndcg", "em", "exact", "nse", "r2", "spearman", "pearson"})

_NEVER_A_LOSS = SCORES_BY_NAME - {"dice", "iou", "miou", "map", "hit", "hits", "em"} | {
    "acc", "accuracy", "sensitivity", "specificity", "auroc", "auprc", "support"}


def _main_loss(run: Run, mine: Mapping[int, Role], group: str) -> dict[int, Role]:
    """The main loss of a group, where it has none yet that is better; terms keep their name as "loss/<term>"."""
    present = {s.name for s in run.series if s.group == group and len(s)}
    better = [n for n in LOSSES if n in present and n not in _SECOND_CHOICE]
    by_code = [i for i, r in mine.items() if r.name == LOSS and r.witness == "code"]
    candidates = by_code or [i for i, r in mine.items() if r.name == LOSS]
    stems = {_stem(run.series[i].original) for i in candidates}
    other = any(n.endswith("loss") or n.startswith("loss/") for n in present)
    main: tuple[str, ...] | None = None
    if candidates and not better and not (other and not by_code) and (by_code or len(stems) == 1):
        main = _stem(max((run.series[i] for i in candidates), key=len).original)
    out: dict[int, Role] = {}
    for i, role in mine.items():
        stem = _stem(run.series[i].original)
        if stem == main:
            out[i] = Role(LOSS, role.witness)
        elif role.name == "loss_term" or role.witness == "code" or (len(stems) > 1 and not better):
            out[i] = Role(f"loss/{'_'.join(stem)}", role.witness)
    return out


def _renamed(s: Series, role: Role) -> Series:
    return replace(s, name=role.name, inferred=role.witness == "shape")


def _is_time_left(s: Series) -> bool:
    """Whether it is the time that is left, under a name that could also be the learning rate."""
    return s.name in TIME_LEFT


def _by_shape(run: Run) -> Run:
    """Guesses the learning rate and the loss from their course, where one series alone fits and neither is known."""
    open_ones = [i for i, s in enumerate(run.series) if s.group == TRAIN and _is_unknown(s)
                 and role_of_name(s.original) is None]
    if not open_ones:
        return run
    series = list(run.series)
    if run.first("learning_rate") is None:
        rates = [i for i in open_ones if moves_like_a_schedule(series[i])]
        if len({_stem(series[i].original) for i in rates}) == 1:
            series[rates[0]] = _renamed(series[rates[0]], Role(RATE, "shape"))
    if run.loss is None:
        losses = [i for i in open_ones if falls_like_a_loss(series[i]) and series[i].name != RATE]
        if len({_stem(series[i].original) for i in losses}) == 1:
            series[losses[0]] = _renamed(series[losses[0]], Role(LOSS, "shape"))
    return replace(run, series=tuple(series))
