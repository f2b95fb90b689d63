"""What a run tells of its task: the main loss, accuracies, class counts, kind of training, records brought together.

Shared by the rules about learning (L2) and about domains (L6). Reads a `Run`, does no I/O.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.on_logs.curves.baselines import Curve, curve, fraction
from traindx_tools.on_logs.run import Floats, Run, Series

LOSS_NAMES = ("loss", "mse", "nll", "cross_entropy", "ce", "bce", "rmse", "mae")
"""Names that stand for the main loss where no series is called "loss"."""
PRIMARY = re.compile(r"(?:^|[/_\W])(?:recon\w*|rec|nll|mse|ce|cross_entropy|cls|class\w*|task|main|mel|l1|pixel|lm|"
                     r"data)(?:$|[/_\W])")
"""Terms that carry the task."""
AUXILIARY = re.compile(r"(?:^|[/_\W])(?:kl\w*|commit\w*|vq|codebook|reg\w*|penalty|aux\w*|l2|balanc\w*|entropy|"
                       r"adv\w*|weight_decay|wd|sparsity|smooth\w*|gp|orth\w*|consistency|beta)(?:$|[/_\W])")
"""Terms that regularise, or help the term that carries the task."""
_REINFORCEMENT = re.compile(r"reward|\brew\b|ep_rew|advantage|\badv_|pg_loss|pg_clip|clip_?frac|policy_?loss|"
                            r"loss_?policy|policy_grad|surrogate|actor|critic/|episod\w{1,3}_return|"
                            r"ep_?ret(?![a-z])|mean_return")
_CLASS_KEYS = {"numclasses", "nclasses", "classes", "numlabels", "nlabels", "nbclasses", "nclass", "numclass", "labels",
               "classnames", "outdim", "numoutputs"}
_VOCABULARY_KEYS = {"vocabsize", "nvocab", "vocab", "vocabularysize", "vocabulary", "ntokens", "numtokens"}
_CLASS_TEXT = re.compile(r"\b(\d{1,6})[ -](?:way|classes|labels|categories|intents)\b|"
                         r"\b(?:num_classes|n_classes|classes|num_labels)\s*[:=]\s*(\d{1,6})\b", re.I)
_VOCABULARY_TEXT = re.compile(r"\bvocab(?:ulary)?(?:[_ ]size)?\s*(?:of|[:=])?\s*([\d,]{2,9})\b", re.I)


@dataclass(frozen=True)
class ClassCount:
    """How many classes (or tokens) there are and who says so."""

    count: int
    why: str


def key_of(name: str) -> str:
    """The last part of a dotted configuration key, letters and digits only, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.rsplit(".", 1)[-1].lower())


def setting(config: Mapping[str, Any], *keys: str) -> tuple[str, float] | None:
    """The first numeric setting whose last key part is one of `keys` (written without separators), and its name."""
    for name, value in config.items():
        if key_of(str(name)) in keys and isinstance(value, (int, float)) and not isinstance(value, bool):
            number = _float(value)
            if math.isfinite(number):
                return str(name), number
    return None


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an int of a configuration file may be larger than any float
        return math.inf


def class_counts(run: Run) -> list[ClassCount]:
    """Class counts and vocabulary sizes that the configuration or the log's text states, without repeats."""
    found = dict(_stated_counts(run))
    return [ClassCount(count, why) for count, why in found.items()]


def _stated_counts(run: Run) -> Iterator[tuple[int, str]]:
    for name, value in run.config.items():
        if key_of(str(name)) in _CLASS_KEYS | _VOCABULARY_KEYS:
            count = len(value) if isinstance(value, (list, tuple)) else value
            if isinstance(count, int) and not isinstance(count, bool) and 2 <= count <= 10_000_000:
                yield count, f"{name} = {count} in the configuration"
    for note in run.notes[:2000]:
        for pattern in (_CLASS_TEXT, _VOCABULARY_TEXT):
            for match in pattern.finditer(note.text[:1000]):
                digits = next(g for g in match.groups() if g)
                count = int(digits.replace(",", "") or 0)
                if 2 <= count <= 10_000_000:
                    yield count, f'"{match.group(0)}" in line {note.line} of {note.source}'


def is_preference(run: Run) -> bool:
    """Whether the run learns from chosen and rejected answers (DPO and kin): its loss is a cross entropy."""
    return any(re.search(r"chosen|rejected|margin", s.original.lower()) for s in run.series)


def is_reinforcement(run: Run) -> bool:
    """Whether the run optimises a policy: its losses have no level that means anything."""
    return not is_preference(run) and any(_REINFORCEMENT.search(s.original.lower()) for s in run.series)


def is_adversarial(run: Run) -> bool:
    """Whether a generator and a discriminator train against each other."""
    return run.first("discriminator_loss") is not None and run.first("generator_loss") is not None


def main_loss(run: Run, group: str = "train") -> Series | None:
    """The loss that tells whether the task is learned, or None.

    The main loss of the group, else another usual name of it, else the term that reconstructs.
    """
    found = run.loss if group == "train" else run.val_loss if group == "validation" else run.first("loss", group=group)
    if found is not None and key_of(found.name) not in ("policyloss", "valueloss", "pgloss"):
        return found
    found = run.first(*LOSS_NAMES, group=group)
    if found is not None:
        return found
    terms = [s for s in run.series if s.group == group and len(s) and re.search(r"recon|chamfer", s.name)]
    return max(terms, key=len) if terms else None


def held_out_loss(run: Run) -> Series | None:
    """The main loss of the validation set, else of the test set."""
    return main_loss(run, "validation") or main_loss(run, "test")


def accuracy(run: Run, *groups: str) -> Curve | None:
    """The longest accuracy of the first of these groups that has one, as fractions 0..1; None where there is none."""
    for group in groups:
        found = run.first("accuracy", group=group)
        if found is not None:
            c = curve(found)
            if len(c) and c.values.min() >= 0.0 and c.values.max() <= 100.0:
                return Curve(found, fraction(c.values), c.index)
    return None


def aligned(values: Curve, onto: Curve) -> Floats:
    """For each record of `onto`, the value of `values` nearest to it: shape (len(onto),).

    By step where both count steps, else by epoch, by time, by line within one source; else by the share of the run.
    """
    if not len(values) or not len(onto):
        return np.full(len(onto), math.nan)
    places, wanted = _common_axis(values, onto)
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    right = np.clip(np.searchsorted(sorted_places, wanted), 0, len(places) - 1)
    left = np.maximum(right - 1, 0)
    nearer_left = np.abs(wanted - sorted_places[left]) < np.abs(sorted_places[right] - wanted)
    return np.asarray(values.values[order[np.where(nearer_left, left, right)]])


def _common_axis(a: Curve, b: Curve) -> tuple[Floats, Floats]:
    for name in ("step", "epoch", "time"):
        x, y = getattr(a.series, name)[a.index], getattr(b.series, name)[b.index]
        if np.isfinite(x).all() and np.isfinite(y).all():
            return np.clip(x, -1e100, 1e100), np.clip(y, -1e100, 1e100)
    if a.series.source == b.series.source:
        return a.series.line[a.index].astype(np.float64), b.series.line[b.index].astype(np.float64)
    return np.linspace(0.0, 1.0, len(a)), np.linspace(0.0, 1.0, len(b))


def continues_earlier_run(run: Run, series: Series) -> bool:
    """Whether the log shows only the later part of a training that began before it (a resumed run)."""
    first_line = int(series.line[0]) if len(series) else 0
    if any(n.kind == "resume" and n.line <= first_line for n in run.notes):
        return True
    position = series.position[np.isfinite(series.position)] if series.unit != "line" else np.empty(0)
    return len(position) > 1 and position[0] > 0.3 * position.max() > 0


def epoch_numbers(run: Run, series: Series) -> Floats | None:
    """Which epoch each record belongs to, shape (n,), counted from 0; None where the log does not tell.

    From the series' own epochs, else from steps that start anew, else from the lines that announce an epoch.
    """
    if len(series) and np.isfinite(series.epoch).all():
        whole = np.clip(series.epoch, -1e15, 1e15)
        fractional = bool((np.abs(whole - np.round(whole)) > 1e-9).any())
        epoch = np.ceil(whole - 1e-9) if fractional else whole
        return np.cumsum(np.concatenate([[0.0], (np.diff(epoch) != 0).astype(np.float64)]))
    if len(series) > 3 and np.isfinite(series.step).all():
        restarts = np.diff(series.step) < 0
        if restarts.sum() >= 2:
            return np.cumsum(np.concatenate([[0.0], restarts.astype(np.float64)]))
    lines = sorted({n.line for n in run.notes if n.kind == "epoch" and n.source == series.source})
    return np.searchsorted(lines, series.line, side="left").astype(np.float64) if len(lines) >= 2 else None


def span(series: Series, start: int, end: int) -> str:
    """Words for a range of records: "from step 10 to 120", "from line 3 to 40 of train.log".

    Lines also stand in where a counter does not move (a loop's inner counter that is always printed at 0).
    """
    a, b = series.position[start], series.position[end]
    if series.unit == "line" or (a == b and start != end):
        return f"from line {series.line[start]} to {series.line[end]} of {series.source}"
    return f"from {series.unit} {a:g} to {b:g}"


def place(series: Series, index: int) -> str:
    """Words for one record: "at epoch 4"."""
    return f"at {series.unit} {series.position[index]:g}"


def number(value: float) -> str:
    """A value in at most five significant digits, up to ten million without an exponent."""
    return f"{value:.0f}" if 1e5 <= abs(value) < 1e7 else f"{value:.5g}"


def percent(share: float) -> str:
    """A share as per cent in at most three significant digits."""
    return f"{100.0 * share:.3g} %"


def listed(names: Iterable[str]) -> str:
    """Names as a phrase: "a", "a and b", "a, b and c"."""
    parts = list(names)
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
