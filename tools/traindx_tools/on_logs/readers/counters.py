"""Which words count steps, epochs and ranks, and what a counter that starts over means."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from traindx_tools.on_logs.readers.growing import Growing
from traindx_tools.on_logs.readers.languages import in_english
from traindx_tools.on_logs.run import Floats, Ints

EPOCH, RANK = "epoch", "rank"
STEP_WORDS: dict[str, int] = {
    **dict.fromkeys(("global_step", "num_updates", "trainer/global_step"), 5),
    **dict.fromkeys(("update", "updates_done", "optimizer_step", "opt_step", "gstep",
                     "optim_step", "_step", "num_update", "upd", "upds", "current_steps",
                     "train_step", "global_steps", "global_iter"), 4),
    **dict.fromkeys(("step", "iter", "iteration", "iterations_done", "itr", "it", "iters_done", "stp"), 3),
    **dict.fromkeys(("batch", "minibatch", "batch_idx", "mini_batch", "mb", "batches_done",
                     "micro_step", "micro_batch", "microstep", "inner_step"), 2),
    **dict.fromkeys(("episode", "ep_num", "round", "generation", "timestep", "total_timesteps", "timesteps",
                     "env_step", "env_steps", "frame", "frames", "tick", "game", "trial", "kimg", "samples_seen",
                     "total_steps_done", "n_updates", "timesteps_total"), 1),
}
"""Words that count, and how surely they count optimizer steps: the surest in a record gives its step."""
BARE = 2
"""How surely a number without a word ("[100]", "136/192") counts steps."""
STANDING = 3
"""Records in which a number without a word may be the same and still count: a process id never moves."""
LATER = 2
"""An epoch that is the first one in no way of counting."""
EPOCH_WORDS = frozenset({"epoch", "ep", "epochs_done", "epoch_idx", "num_epoch", "current_epoch"})
RANK_WORDS = frozenset({"rank", "global_rank", "process_index"})


def counter_kind(word: str) -> tuple[str, int] | None:
    """("step", sureness), ("epoch", 0), ("rank", 0) or None for the last word of a phrase, in lower case."""
    word = in_english(word)
    word = word.replace("-", "_").strip("_:") if word != "_step" else word
    if word in STEP_WORDS:
        return "step", STEP_WORDS[word]
    if word in EPOCH_WORDS:
        return EPOCH, 0
    return (RANK, 0) if word in RANK_WORDS else None


@dataclass
class Counters:
    """What each record of a text said of its place, so that batches within an epoch can be told from steps."""

    slot: Growing = field(default_factory=lambda: Growing("b"))
    """Which counter gave the step: its sureness, negative where a record has none."""
    total: Growing = field(default_factory=lambda: Growing("d"))
    epoch_total: float = math.nan
    step_total: float = math.nan


@dataclass(frozen=True)
class Settled:
    """Steps that count on over epochs; the slots whose counters started over; what to say of it."""

    step: Floats
    within_epoch: frozenset[int]
    remark: str


def settle(step: Floats, epoch: Floats, counters: Counters) -> Settled:
    """Steps that only grow within a run, and a remark where the log counts batches of an epoch.

    A counter that falls when the epoch grows counts batches within an epoch. Where the log also prints how many there
    are, the step is (epoch - first) * batches + batch, which the log says by its own numbers; where it does not and the
    counter goes to the same number in even distances in every epoch, the next distance is taken for the end of the
    epoch; else, or where the counter always stands at its end, no step is known and the epoch is the place.
    """
    remarks: dict[str, None] = {}
    within: set[int] = set()
    slots, totals = counters.slot.told(), counters.total.told()
    for slot in np.flatnonzero(np.bincount(slots[slots >= 0])).tolist():
        counted = (slots == slot) & np.isfinite(step)
        mine: Ints | slice = slice(None) if counted.all() else np.flatnonzero(counted)
        if counted.sum() == 1 and (_ends_alone(step[mine], epoch[mine], totals, mine) or (
                slot % 10 == BARE and _ends_later(step[mine], epoch[mine], totals[mine]))):
            step = step if within else step.copy()
            step[mine] = np.nan
            within.add(slot)
            continue
        settled, remark = _settle_one(step[mine], epoch[mine], totals[mine], slot) if counted.sum() > 1 else (step, "")
        if remark:
            step = step if within else step.copy()
            step[mine] = settled
            remarks[remark] = None
            within.add(slot)
    return Settled(step, frozenset(within), "; ".join(remarks))


def _ends_alone(step: Floats, epoch: Floats, totals: Floats, mine: Ints | slice) -> bool:
    """Whether the one record of a counter stands at its end, in an epoch, while others count to another number: what
    ended is an evaluation, and its batches say nothing of where in the run it stands."""
    total = totals[mine]
    others = np.delete(totals, mine) if not isinstance(mine, slice) else totals[:0]
    return bool(np.isfinite(epoch).all() and (step == total).all() and (others[np.isfinite(others)] != total).any())


def _ends_later(step: Floats, epoch: Floats, total: Floats) -> bool:
    """Whether the one record of a bar stands at its end in an epoch behind the first: it counts that epoch alone."""
    return bool((step == total).all() and (epoch >= LATER).all())


def _settle_one(step: Floats, epoch: Floats, total: Floats, slot: int) -> tuple[Floats, str]:
    if slot % 10 == BARE and len(step) >= STANDING and not np.isfinite(total).any() and (step == step[0]).all():
        return np.full_like(step, np.nan), "the number at the head of its lines never changes: no step is known"
    fell, known = step[1:] < step[:-1], np.isfinite(epoch)
    if len(step) >= STANDING and not known.any() and (step == total).all() and (step == step[0]).all():
        return np.full_like(step, np.nan), "a bar at the end of each epoch, and no epoch is printed: no step is known"
    if not known.all() and (known.any() or not fell.any()):
        return step, ""
    ends = (step == total) | (step == total - 1)
    if known.all() and ends.mean() >= 0.8 and len(np.unique(epoch)) > 1 and not _grows_over(step, epoch):
        return np.full_like(step, np.nan), "a bar at the end of each epoch: the place is the epoch"
    if known.all() and (fell & (np.diff(epoch) > 0)).any():
        per_epoch = np.unique(total[np.isfinite(total)])
        if len(per_epoch) == 1 and np.isfinite(total).all():
            first = 0.0 if (epoch == 0).any() else 1.0
            return (epoch - first) * per_epoch[0] + step, (
                f"its counter starts over with each epoch: step = (epoch - {first:g}) * {per_epoch[0]:g} + batch")
        if (length := _even_length(step, epoch)) is not None:
            first = 0.0 if (epoch == 0).any() else 1.0
            return (epoch - first) * length + step, (
                f"its counter starts over with each epoch, whose length is not printed: {length:g} is taken, from its "
                f"even distances, so that step = (epoch - {first:g}) * {length:g} + batch")
        return np.full_like(step, np.nan), "its counter starts over with each epoch of unknown length: no step is known"
    if not known.any() and fell.any() and (ends[:-1] & fell).sum() == fell.sum() and np.isfinite(total).all():
        return np.full_like(step, np.nan), "its counter starts over again and again and no epoch is printed"
    return step, ""


def _even_length(step: Floats, epoch: Floats) -> float | None:
    """The batches of an epoch where its counter goes to the same number in even distances every time; else None.

    The last epoch may be cut off. The true length lies between the last number and the one after it.
    """
    cuts = np.flatnonzero(np.diff(epoch) != 0) + 1
    epochs = np.split(step, cuts)
    whole = epochs[:-1]
    if len(whole) < 2 or (np.diff(epoch[np.r_[0, cuts]]) <= 0).any() or any(len(e) < 3 for e in whole):
        return None
    distances = np.concatenate([np.diff(e) for e in epochs])
    same = all(len(e) == len(whole[0]) and e[0] == whole[0][0] and e[-1] == whole[0][-1] for e in whole)
    if not same or not len(distances) or not (distances == distances[0]).all() or distances[0] <= 0:
        return None
    length = float(whole[0][-1] + distances[0] - whole[0][0])  # 0, 40, 80 of 120; 40, 80, 120 of 120
    return length if 0 <= whole[0][0] <= distances[0] else None


def _grows_over(step: Floats, epoch: Floats) -> bool:
    return bool((np.diff(step)[np.diff(epoch) > 0] > 0).any())
