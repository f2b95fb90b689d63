"""Two runs that differ in one thing are measured from one start: known truths, each kind of outcome."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.experiments.arms import Design, Next, Run
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.choosing import choose
from traindx_tools.experiments.design import following
from traindx_tools.experiments.outcome import parse_outcome
from traindx_tools.experiments.trace import LIVE, Applied, Curve, Trace
from traindx_tools.experiments.verdict import Verdict
from traindx_tools.on_logs.each_run import read_last_run

Make = Callable[[np.random.Generator], dict[str, np.ndarray]]
ORDER = Change("names-by-number")
PATCH = Change("patch", {"file": "x.diff"})


def experiment(outcome: str, control: Make, changed: Make, change: Change = ORDER, number: int = 0) -> Verdict:
    """The whole experiment on curves that these two make, a new draw for each seed."""
    design, runs = Design(change, parse_outcome(outcome)), []
    for _ in range(12):
        wanted = following(design, runs)
        if isinstance(wanted, Verdict):
            return wanted
        assert isinstance(wanted, Next)
        rng = np.random.default_rng([number, wanted.changed, wanted.seed])
        made = (changed if wanted.changed else control)(rng)
        curves = {n: Curve(np.arange(1.0, len(v) + 1), v) for n, v in made.items()}
        runs.append(Run(wanted.changed, wanted.seed, Trace(
            Path(), curves, ended=True, exit_code=0, seconds=1.0, applied=Applied(1, "here"))))
    raise AssertionError("an experiment ends")


def flat(level: float, noise: float = 0.01, n: int = 20) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: level + noise * level * rng.standard_normal(n)


def to(first: float, last: float, noise: float = 0.01, time: float = 4.0
       ) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: last + (first - last) * np.exp(-np.arange(20) / time) + noise * last * rng.standard_normal(20)


def only(name: str, make: Callable[[np.random.Generator], np.ndarray], loss: float = 0.0) -> Make:
    """One curve, and the loss of the first backward passes where one is given."""
    def made(rng: np.random.Generator) -> dict[str, np.ndarray]:
        held = {name: make(rng)}
        return {**held, **({f"{LIVE}loss": loss + 0.05 * loss * rng.standard_normal(60)} if loss else {})}
    return made


ACC, VAL = "fall:validation accuracy", "fall:validation loss"
acc, val = "validation accuracy", "validation loss"


@pytest.mark.parametrize(("changed", "word"), [
    (to(0.98, 1.0, 0.001), "removes"), (flat(0.99, 0.001), "removes"), (to(0.06, 0.9), "removes"),
    (flat(0.05), "no-effect")])
def test_a_score_that_stays_at_chance(changed: Callable[[np.random.Generator], np.ndarray], word: str) -> None:
    """Seen: a run that was right from its first evaluation on had a rise of nothing, as the control had."""
    assert experiment(ACC, only(acc, flat(0.05)), only(acc, changed)).word == word


def test_a_score_in_percent_has_one_scale_in_both_arms() -> None:
    verdict = experiment(ACC, only(acc, flat(0.9)), only(acc, flat(98.0, 0.001)))
    assert verdict.word == "removes"
    assert max(verdict.changes) < 1.01


def test_a_change_that_starts_worse_and_comes_back_has_no_effect() -> None:
    """From its own start it rises by half."""
    assert experiment(ACC, only(acc, flat(0.5, 0.005)), only(acc, to(0.1, 0.5, 0.005, 1))).word == "no-effect"
    assert experiment(VAL, only(val, flat(2.3, 0.002)), only(val, to(9.0, 2.3, 0.002, 1))).word == "no-effect"
    assert not experiment(ACC, only(acc, flat(0.05)), only(acc, to(0.01, 0.04))).better


def test_both_learn_and_the_change_learns_no_more() -> None:
    verdict = experiment("fall:validation loss", only(val, to(2.3, 2.2, 0.002)), only(val, to(2.3, 2.2, 0.002)))
    assert verdict.word == "no-effect"


def test_a_loss_that_is_low_at_once() -> None:
    assert experiment(VAL, only(val, flat(1.0)), only(val, flat(0.02))).word == "removes"


@pytest.mark.parametrize(("first", "word"), [(1.0, "removes"), (0.02, "inconclusive"), (0.0, "inconclusive")])
def test_a_change_that_may_count_the_loss_otherwise_has_to_be_seen_not_to(first: float, word: str) -> None:
    """A mean in place of a sum is lower from the start: the first backward passes tell, before anything is learned."""
    verdict = experiment(VAL, only(val, flat(1.0), first and 1.0), only(val, flat(0.02), first), PATCH)
    assert verdict.word == word
    if word == "inconclusive":
        assert "count the loss otherwise" in verdict.why
    assert experiment(VAL, only(val, flat(1.0), first and 1.0), only(val, to(0.9, 0.02), first), PATCH
                      ).word == "removes", "it falls from its own start as well"


def risen(best: float, last: float, noise: float = 0.01, n: int = 20) -> Callable[[np.random.Generator], np.ndarray]:
    there = np.concatenate([np.linspace(1.0, best, n // 2), np.linspace(best, last, n - n // 2)])
    return lambda rng: there + noise * best * rng.standard_normal(n)


@pytest.mark.parametrize(("changed", "word"), [
    (flat(0.1), "removes"), (risen(0.01, 0.04), "removes"),
    (flat(2.3), "inconclusive"),  # it cannot rise, as it never fell
    (to(1.0, 0.9), "moves"),  # on its way to where the controls were before they rose
    (risen(0.3, 1.5), "no-effect")])
def test_a_loss_that_goes_back_up(changed: Callable[[np.random.Generator], np.ndarray], word: str) -> None:
    assert experiment("rise:validation loss", only(val, risen(0.3, 1.5)), only(val, changed), number=1).word == word


def spiky(height: float, level: float = 0.5, n: int = 100) -> Callable[[np.random.Generator], np.ndarray]:
    def made(rng: np.random.Generator) -> np.ndarray:
        values = level + 0.01 * level * rng.standard_normal(n)
        values[int(rng.integers(40, 60))] += height
        return values
    return made


@pytest.mark.parametrize(("changed", "word"), [
    (spiky(0.0), "removes"), (spiky(2.0), "no-effect"), (spiky(0.0, 2.0), "inconclusive")])
def test_a_spike_that_comes_back(changed: Callable[[np.random.Generator], np.ndarray], word: str) -> None:
    """Where it ends says nothing of it."""
    assert experiment("spike:validation loss", only(val, spiky(2.0)), only(val, changed), number=1).word == word


def pair(train: float, held: float) -> Make:
    return lambda rng: {"accuracy": flat(train, 0.002)(rng), acc: flat(held, 0.002)(rng)}


@pytest.mark.parametrize(("changed", "word"), [
    (pair(0.99, 0.97), "removes"), (pair(0.5, 0.5), "inconclusive"), (pair(0.99, 0.6), "no-effect"),
    (pair(0.62, 0.6), "removes")])
def test_a_gap_that_is_less_because_less_is_learned_shows_no_cause(changed: Make, word: str) -> None:
    assert experiment("gap:accuracy", pair(0.99, 0.6), changed, number=1).word == word


def test_held_out_rows_that_are_better_than_those_trained_on_are_a_gap_the_other_way(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"epoch {i} acc 0.6{i % 3} val_acc 0.9{i % 3}\n" for i in range(20)))
    outcome = choose("validation accuracy is higher than training accuracy", read_last_run([str(log)]))
    assert str(outcome) == "gap:validation accuracy,accuracy"
    leak = pair(0.6, 0.95)
    assert experiment(str(outcome), leak, pair(0.6, 0.6)).word == "removes"


@pytest.mark.parametrize("words", [
    "validation MSE stays at the variance of the target", "val mse is no better than the mean predictor",
    "val_mse never beats the baseline", "the model is no better than the mean"])
@pytest.mark.parametrize(("first", "outcome"), [(1.0, "fall:validation mse"), (5.0, "level:validation mse<0.9")])
def test_a_level_at_which_nothing_is_learned(tmp_path: Path, words: str, first: float, outcome: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"epoch {i} loss {1 / (i + 1):.4f} val_mse {first if i == 0 else 1.0:.4f}\n"
                           for i in range(20)))
    chosen = choose(words, read_last_run([str(log)]))
    assert str(chosen) == outcome


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fall", "rise", "spike"])
def test_of_200_trends_without_an_effect_at_most_five_per_cent_are_called_one(kind: str) -> None:
    def made(rng: np.random.Generator) -> dict[str, np.ndarray]:
        scale = 1 + 0.1 * rng.standard_normal()
        values = scale * (0.5 + np.exp(-np.arange(60) / 8) + 0.006 * np.arange(60)) + 0.02 * rng.standard_normal(60)
        values[int(rng.integers(20, 50))] += 0.5 * scale * rng.random()
        return {val: values}
    words = [experiment(f"{kind}:validation loss", made, made, number=i).word for i in range(200)]
    assert sum(w in ("removes", "moves") for w in words) <= 10


@pytest.mark.parametrize(("name", "level", "word"), [
    (acc, 274.0, "inconclusive"), (acc, 0.99, "moves"), ("validation perplexity", 4.0, "moves"),
    ("validation reward", 274.0, "moves")])
def test_a_share_that_passes_one_is_another_quantity(name: str, level: float, word: str) -> None:
    """Seen: a screen changed the line that computes the accuracy, and 274 was "593 times as large"."""
    start = 90.0 if name == "validation perplexity" else 0.46
    verdict = experiment(f"level:{name}", only(name, flat(start)), only(name, flat(level, 0.001)), Change("edit"))
    assert verdict.word == word
    assert ("counts it otherwise" in verdict.why) == (word == "inconclusive")


def test_percent_is_no_other_quantity() -> None:
    assert experiment(f"level:{acc}", only(acc, flat(46.0)), only(acc, flat(98.0, 0.001))).better
