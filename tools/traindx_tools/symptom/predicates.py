"""The lexicon of what a subject does: directions, and what becomes of each when it is denied."""

from __future__ import annotations

from dataclasses import dataclass

from traindx_tools.symptom.words import Phrases

NORMAL = "normal"
"""What is as it should be."""
NOTHING = "-"
"""No observation at all: a remedy without effect, a move that says nothing."""
LEVEL = "level"
"""A value that would be good by itself, of which the words do not say whether it is."""
UNPLACED = "?"
"""A predicate of the tables whose subject no table knows: nothing is read out of it."""


@dataclass(frozen=True)
class Predicate:
    """`direction` as written, `denied` where it is negated; NORMAL and NOTHING are no symptoms.

    `only`: families of subjects that it can be said of; of another it is not understood. `alone`: it needs no subject.
    """

    direction: str
    denied: str = NORMAL
    only: tuple[str, ...] = ()
    alone: bool = False


_METRIC = ("loss", "score", "reward", "gradient", "lr", "memory", "speed", "time", "entropy", "codes", "term", "scale",
           "number", "adversary", "own", "run", "weights")
_MEASURED = tuple(f for f in _METRIC if f not in ("run", "weights"))

_STUCK_SOMEWHERE = ", ".join(f"{verb} {place}" for verb in ("stuck", "get stuck", "stall", "freeze")
                             for place in ("at step", "at iteration", "at batch", "in step", "in batch"))
"""A job that is stuck at a step hangs there; a loss that is stuck at one has reached its level."""

_STALLED_FOR = ", ".join(f"{verb} for {time}" for verb in ("stall", "pause", "freeze", "stand still")
                         for time in ("a second", "second", "a few second", "several second", "# second", "# s",
                                      "half a second", "a minute", "minute", "a few minute", "# minute", "a while"))
"""What stalls for a time goes on behind it: it is slow, and neither hangs nor has reached its level."""

_TABLE: tuple[tuple[Predicate, str], ...] = (
    (Predicate("nonfinite", alone=True),
     "nan, inf, infinite, infinity, non finite, nonfinite, not finite, not a number, go to infinity, "
     "minus infinity"),
    (Predicate("explodes", NORMAL, alone=True),
     "explode, explosion, blow up, diverge, divergence, go through the roof, shoot up, run away, off the chart, "
     "grow without bound, go crazy, skyrocket, exploding, go hugely negative, go wild"),
    (Predicate("rises", "still", _MEASURED),
     "rise, increase, grow, climb, go up, creep up, get large, get larger, get high, get higher, get bigger, "
     "go higher, become larger, pile up, build up, go over, get above, go above, climb above, rise above, exceed, "
     "get past, get beyond, keep on rise, swell, double, get ever larger, ramp up, tick up"),
    (Predicate("rises", NORMAL, (), alone=True),
     "memory leak, leak memory"),
    (Predicate("falls", "still", _MEASURED),
     "fall, decrease, drop, go down, decline, shrink, come down, sink, get lower, get smaller, get low, vanish, "
     "go low, decay, halve, go to zero, drop to zero, go to 0, reach zero, dwindle, fade, become small, cut by, "
     "get below, go below, fall below, get away from, get away, get under, go under, fall under"),
    (Predicate(NOTHING, "still", ("run",)),
     "get below, go below, get under, fall below, go under, get away from, get above, get past"),
    (Predicate(NORMAL, "still", ("run", "loss", "score", "reward", "weights", "output", "codes", "adversary", "term",
                "own", "gradient")),
     "learn, train, improve, converge, get better, make progress, learning, beat, learn anything, pick up, "
     "advance, optimize, optimise, get off the ground, recover"),
    (Predicate(NORMAL, "unsettled", ("run", "loss", "score", "reward", "adversary", "term", "lr", "own")),
     "settle, settle down, stabilise, stabilize, calm down, come to rest"),
    (Predicate(NOTHING, "still", _METRIC),
     "move, change, budge, twitch, respond, update, move at all, come off, move by a single digit, leave"),
    (Predicate("hang", NORMAL, ("run", "ranks")),
     f"{_STUCK_SOMEWHERE}, sit at step and do nothing"),
    (Predicate("still", NORMAL, _METRIC),
     f"{_STUCK_SOMEWHERE}, "
     "stuck, flat, stall, plateau, stagnate, freeze, be frozen, constant, unchanged, glue to, glued to, saturate, "
     "flatten, stop improve, stop learn, no progress, dead flat, creep, creep along, crawl, at a crawl, "
     "standstill, stop fall, stop move, stop decrease, stop rise, go nowhere, no improvement, no learning, "
     "learn nothing, look flat, same in every epoch, same in each epoch, same value in every epoch, "
     "same every epoch, same number, exactly the same, same six digit, same value, same number in every epoch, "
     "get stuck, stay at first value, stay at start value, stay near start value, stay at initial value, "
     "move around the same, hover around the same, stick at, stick to, stick near, same from epoch to epoch, "
     "not a single bit, same to all printed digit, do nothing, same, stay the same, remain the same, stay where, "
     "stay where it be, same before and after, identical, stop short, refuse to fall, refuse to go, "
     "refuse to move, refuse to go below, refuse to learn, fail to learn, fail to converge, fail to improve, "
     "fail to train, stop improving, flat line, flatline, bottom out, identical in"),
    (Predicate("stays", NORMAL, _METRIC),
     "stay, remain, sit, hover, maintain, hang around, hang near, linger, stay at, remain at, sit at, stick, "
     "keep at, start and stay, move around, be pinned, be capped, be clamped, lie at, stop near, stop at, "
     "stop around, end at, top out at, hang at, stay around, stay near, stay below, stay above, stay under, "
     "end a bit under"),
    (Predicate("is", "other", _MEASURED),
     "be, show, read, print, report, come out at, equal, become, turn, log, display, be about, go to, drop to, "
     "fall to, end up at, tell"),
    (Predicate("is", "still", _MEASURED),
     "reach, get to, make it to, get up to, arrive at"),
    (Predicate(NOTHING, NOTHING, (), alone=True),
     "start at, start near, begin at, begin near, start with, requeue, be cancel, cancel"),
    (Predicate("slow-learning", NORMAL, alone=True),
     "learn slowly, learn slow, learn very slowly, converge slowly, improve slowly, fall slowly, "
     "learn extremely slowly, train poorly, slow convergence, slow learning, get better slowly, "
     "get better only slowly, decrease at a crawl, hardly learn, barely learn, barely improve, hardly improve, "
     "take long to come down, learn too slowly, learn much slower, converge slower, learn slower, creep down, "
     "creep on, learn extremely slow, fall at a crawl, underfit, under fit, underfitting"),
    (Predicate("spikes", NORMAL, tuple(f for f in _METRIC if f != "lr")),
     "spike, bump, peak, outlier, blip, kink, spikes, hump, overshoot, one off jump, surge, sudden increase"),
    (Predicate("jumps", NORMAL, _METRIC),
     "jump, jump up, jump back, leap, start again, start over, start all over, reset, jump to, jump back up, "
     "be back at, go back to, fall back to, start from scratch, jump down, step up, go back up, begin again, "
     "be lost, start again at, return to its start, drop back"),
    (Predicate("oscillates", NORMAL, (*_METRIC, "output"), alone=True),
     "oscillate, oscillation, jitter, wobble, fluctuate, bounce, jump around, jump about, jump up and down, "
     "go up and down, swing, restless, noisy, unstable, instability, zigzag, wander, vary a lot, vary wildly, "
     "erratic, sawtooth, jumpy, bounce up and down, up and down, bounce around, all over the place, keep change, "
     "jump between, flip between, wander about, wander up and down, swing between, jumps about, change sign"),
    (Predicate("poor", NORMAL, (*(f for f in _METRIC if f not in ("time", "memory")), "output", "ranks")),
     "poor, bad, weak, useless, terrible, awful, mediocre, disappointing, hardly usable, unusable, chance, "
     "at chance, near chance, coin flip, no better than, below chance, worse, never right, fail, inferior, worst, "
     "get nowhere, get worse, become worse, go wrong, fail on, degrade, deteriorate, absurd, disaster, far off, "
     "close to useless, be off, biased, miss, badly, degenerate, hardly better, no longer right, lag behind, "
     "no good, too low, too high, suffer, start badly, do well only, at random, guess, no better, not better, "
     "hardly better than, hardly any better, always lose"),
    (Predicate("negative", NORMAL, _MEASURED),
     "negative, below zero, less than zero, go below zero, under zero"),
    (Predicate("less", NORMAL, (*_METRIC, "output")),
     "lower than, less than, smaller than, below, far below, clearly below, under, be below, clearly lower than, "
     "much lower than"),
    (Predicate("more", NORMAL, (*_METRIC, "output")),
     "higher than, larger than, above, far above, clearly above, be above, greater than, times that, "
     "many times the"),
    (Predicate("better", "poor", (*_METRIC, "output")),
     "better than, clearly better than, far better than"),
    (Predicate("worse", NORMAL, (*_METRIC, "output")),
     "worse than, far worse than, much worse than, clearly worse than"),
    (Predicate("low", NORMAL, _MEASURED),
     "low, tiny, small, lower, smaller, very low, little, close to nothing, negligible"),
    (Predicate("high", NORMAL, _MEASURED),
     "high, huge, large, enormous, gigantic, too large, bigger, times higher, times larger, times as high, higher, "
     "larger, big, tenfold, hundred times, order of magnitude, out of range, too big"),
    (Predicate(NORMAL, "poor", ("run", "score", "output", "loss")),
     "get good, get anywhere, become good"),
    (Predicate(NORMAL, NOTHING, (), alone=True),
     "nothing unusual, nothing strange, nothing wrong, no problem, no issue, no anomaly, nothing suspicious, "
     "nothing odd, without error, without any error, no error at all, error free"),
    (Predicate(NORMAL, NOTHING, ()),
     "non zero, not zero, nonzero"),
    (Predicate(NORMAL, "poor", ()),
     "fine, good, normal, right, ok, okay, healthy, perfect, great, sane, correct, smooth, smoothly, nicely, "
     "reasonable, work, as expected, as usual, as always, as it should, as they should, stable, run through, all "
     "right, in order, "
     "plausible, clean, ordinary, excellent, usable, best, better, look good, complete, successful, impressive, "
     "go well, well, restored, seamless, seamlessly, carry on seamlessly"),
    (Predicate(NORMAL, "mismatch", ()),
     "match, agree, consistent, in sync, correspond, coincide, the one record for it"),
    (Predicate("too-good", NORMAL, (), alone=True),
     "too good to be true, suspiciously good, suspicious, suspiciously high, suspiciously low, implausible, "
     "implausibly good, unbelievable, too good, too perfect, unrealistically good, can not be, impossible, "
     "can not be right, unrealistic, suspiciously perfect, too easy"),
    (Predicate("identical", NORMAL, (), alone=True),
     "always predict, always output, only predict, predict a single, predict one, predict only, "
     "predict the majority, predict the same, output the same, answer the same, give the same answer, "
     "generate the same, predict constant, predict always, only ever predict, always answer, one class be predict, "
     "one class be ever predict, identical output, constant output, constant prediction, identical prediction, "
     "same token, same class, same answer, same image for, same word, same label for, same output for, "
     "same for all input, same for every input, ignore the input"),
    (Predicate("identical", NORMAL, ("output", "run")),
     "all alike, look alike, look all alike, all look alike, all look the same, look all the same, "
     "identical, same, same for all, all the same, same value, constant, same image, same ad, look the same, "
     "always predict, always output, always answer, only predict, predict a single, predict one, predict only, "
     "predict the majority, predict the mean, output the same, name the same, only ever predict, ignore the input, "
     "predict constant, output the mean, nearly the same, predict the same, answer the same, give the same, "
     "generate the same, predict always, output a constant, depend on nothing, hardly depend, not depend, "
     "do not vary, no diversity, single class, one class, same action, same topic, same grey, always stuck, "
     "always choose, always pick, same output, same prediction, same label, same word, all zero, nothing but zero"),
    (Predicate("garbled", NORMAL, ("output", "run")),
     "garbled, garbage, gibberish, nonsense, rubbish, trash, meaningless, nothing but noise"),
    (Predicate("garbled", NORMAL, ("output",)),
     "pure noise, noise, blob, mush, blurred, blurry, unreadable, meaningless, rubbish, distorted, skip every, "
     "repeat, repeat itself, look wrong, look nothing like, be nothing like, look bad, stay blurred, incoherent, "
     "look random, black, grey, blank, far from the data, run ahead, run to max, never stop, wrong spread, "
     "look like noise, trash, scrambled, corrupted, mangled, skip, loop, hallucinate, cut off, truncated, "
     "come out wrong, stay far from, unusable, static, checkerboard, no structure, stay noise, remain noise"),
    (Predicate("garbled", NORMAL, ("output",)),
     "broken, wrong, weird, strange, odd"),
    (Predicate("missing", NORMAL, (), alone=True),
     "nothing be detected, nothing detected, find nothing, detect nothing, no detection, not a single, hardly any, "
     "never found, never predicted, never find, nothing be found, never be find, no box, zero detection, "
     "never go to, never reach the, never happen, hardly any ~ be found, no uncertainty, never choose"),
    (Predicate("crash", NORMAL, ("run", "ranks", "codes", "weights", "output", "loss", "memory", "setting"),
                alone=True),
     "crash, die, abort, exception, traceback, segfault, segmentation fault, fail with, fail before, fail in, "
     "fail at, stop with, stop at once, an error, error message, assert, assertion, kill, killed, complain, "
     "device side assert, stop at first, stop at the first step, stop on, stop in, index out of range, core dump, "
     "sigkill, sigterm, error from, throw error, get error, give error, print error, stop in the, panic, "
     "can not be loaded, can not be load, can not load, do not load, exit with, break in, bail out, "
     "fail immediately, quit, terminate, stop immediately, fail after, fall over, index error, raise an error, "
     "throw an error, cuda error, cuda failure, runtime error, nccl error, type error, shape mismatch, "
     "size mismatch, error out, with an error"),
    (Predicate("hang", NORMAL, ("run", "ranks", "codes"), alone=False),
     "hang, hang at step, hang at epoch, hang at iteration, hang at batch, hang in step, hang in epoch, "
     "deadlock, freeze, stand still, time out, timeout, never return, never finish, stop printing, "
     "wait forever, stop responding, block, stop print, stop log, be stuck at the barrier, stuck at the barrier, "
     "come to a halt, stuck in the barrier, do not return, stuck at barrier, get no further, run into the timeout, "
     "stuck at validation"),
    (Predicate("hang", NORMAL, ("ranks",)),
     "stuck, get stuck, be frozen, stall, standstill"),
    (Predicate("oom", NORMAL, (), alone=True),
     "out of memory, oom, run out of memory, run out of gpu memory, run out of host memory, cuda oom, swap, "
     "exhaust memory, memory error, oom killer, oom killed, lack of memory, run out of vram, run out of ram, "
     "run out of"),
    (Predicate("slow", NORMAL, (), alone=True),
     "idle, starve, wait for data, waiting for data, go to wait, spend wait, spent waiting, time waiting, bottleneck, "
     "bottlenecked, data bound, input bound, underutilised, underutilized, "
     "dozen sample per second, dozen of sample per second, few sample per second, hundred of time as long, "
     f"{_STALLED_FOR}, stall last, stall take, pause between step"),
    (Predicate("slow", NORMAL, ("run", "speed", "time", "output", "setting"), alone=False),
     "slow, slower, take second, take minute, take hour, take too long, take forever, take hundred, get slow, "
     "get slower, slow down, sluggish, take long, take # second, take # s, take # ms, low throughput, waits for, "
     "wait for the data, take millisecond, times as long, take time, become slower, slow to a crawl, "
     "do not get fast, not get faster, take longer, take longer than, get longer, grow longer, last longer, "
     "longer each, take longer each, take longer every, take longer and longer"),
    (Predicate("gap", NORMAL, (), alone=True),
     "overfit, over fit, generalisation gap, generalization gap, overfitting, train test gap, memorise, memorize, "
     "fail to generalise, point below, memorisation"),
    (Predicate(NORMAL, "gap", ("run", "output", "score", "weights")),
     "generalise, generalize, transfer"),
    (Predicate("ends-early", NORMAL, ("run",), alone=False),
     "end before, end long before, stop before, stop long before, stop early, finish early, end early, end after, "
     "stop after, ended at, end at epoch, terminate early, stop too early, finish before, exit early"),
    (Predicate("disagrees", NORMAL, (), alone=True),
     "get another prediction, get a different prediction, depend on the batch, give # different number"),
    (Predicate("disagrees", NORMAL, ("ranks", "weights", "run", "score", "loss", "output")),
     "drift apart, differ, disagree, differ between, out of sync, come apart, be different, print different, "
     "show different, different weight, different checksum, different accuracy, different norm, different value, "
     "different result, very different loss, report different, inconsistent, different number, end with different, "
     "deviate, vary between, differ clearly"),
    (Predicate(NORMAL, "disagrees", ("ranks", "weights", "score", "loss", "run", "output")),
     "be in step, be synchronised, synchronise, be reproducible, reproduce, tie in with"),
    (Predicate("collapse", NORMAL, (), alone=True),
     "collapse, mode collapse, posterior collapse, degenerate solution"),
    (Predicate("unused", NORMAL, (), alone=True),
     "dead code, dead unit, dead neuron, dead relu, # code be used, # of # code, only # of #"),
    (Predicate("unused", NORMAL, ("codes", "output", "weights", "run"), alone=False),
     "dead, never used, ever used, die out, ever choose, at a handful, handful of, only a dozen, only a few, "
     "never chosen, only a part, unused"),
    (Predicate("unstarted", NORMAL, ("gradient", "weights", "run", "output", "loss", "term", "own", "score"),
                alone=False),
     "get no gradient, no gradient, receive no gradient, have no gradient, without a gradient, no grad"),
    (Predicate("overflow", NORMAL, (), alone=True),
     "overflow, gradient overflow, skip step, step be skipped"),
    (Predicate(NOTHING, NOTHING, (), alone=True),
     "help, no effect, without effect, no difference, make no difference, change nothing, changed nothing, "
     "no gain, cure, give the same number, without any effect, only move the moment, only delay it, "
     "only make it happen later, change it, out of the question, did not help, have no influence, same picture, "
     "same result, same end, give no gain, explain, not explain, matter, in vain"),
)  # fmt: skip

PHRASES: Phrases[Predicate] = Phrases(
    (phrase.strip(), predicate) for predicate, phrases in _TABLE for phrase in phrases.split(","))
DIRECTIONS = frozenset(p.direction for p, _ in _TABLE) | {p.denied for p, _ in _TABLE}
"""Every direction that the tables know."""

NEGATIONS = frozenset({
    "not", "never", "no", "without", "neither", "nor", "cannot", "nothing", "none", "hardly", "barely", "scarcely",
    "nobody", "instead", "little", "less", "nowhere", "refuse", "fail", "stop",
})  # fmt: skip
"""Words that deny what follows them."""
