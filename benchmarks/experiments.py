"""How often experiments call nothing an effect, how large an effect they see, and what they cost beside a hand.

    python benchmarks/experiments.py [--experiments N] [--programs N]

Runs whose truth is known go through the engine (`traindx_tools.experiments.simulated`). False: experiments with a true
effect of zero, at most 5 % may be called one (exit code 1 where more are, beyond what N experiments scatter). Power:
the share of experiments in which an effect of so many standard deviations between seeds is called one. Cost: number of
runs, and steps beside those of whole runs; by hand is one whole control and one whole changed run, which cannot tell an
effect from chance. With --programs real programs (plain Python, a fault in a variable) are run in protected copies, and
seconds are compared with running the program twice by hand.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from traindx_tools.experiments.outcome import Number
from traindx_tools.experiments.simulated import DRAWS, World, simulate

EFFECTS = (1.0, 2.0, 3.0, 5.0, 10.0)
CHANCES = (0.3, 0.6, 0.9, 1.0)
LIMIT = 0.05
PROGRAM = """
import os, random, time
random.seed(0)
rate, weight = float(os.environ.get("RATE", "30")), 1 + 0.1 * random.random()
for step in range(1, 201):
    weight -= rate * 2 * weight
    loss = weight ** 2 if abs(weight) < 1e15 else float("nan")
    print(f"step {step} loss {loss:.6g}", flush=True)
    time.sleep(0.02)
    weight = weight if loss == loss else 1e200
"""


def null(world: World, count: int, kind: Number = "level") -> tuple[Counter[str], float, float]:
    """Verdicts, runs and steps (in whole runs) an experiment."""
    words: Counter[str] = Counter()
    runs = steps = 0
    for number in range(count):
        result, place = simulate(World(**{**vars(world), "number": number}), kind=kind)
        words[result.verdict.word] += 1
        runs, steps = runs + place.runs, steps + place.steps
    return words, runs / count, steps / world.steps / count


def row(name: str, words: Counter[str], runs: float, whole: float) -> str:
    """One line of a table."""
    count = sum(words.values())
    called = (words["removes"] + words["moves"]) / count
    return (f"| {name} | {called:.1%} | {words['no-effect'] / count:.1%} | {words['inconclusive'] / count:.1%} | "
            f"{runs:.1f} | {whole:.1f} |")


def by_hand(programs: int) -> None:
    """Seconds of experiments on real programs beside a control and a changed run by hand."""
    from traindx.experiments import Request, run_experiments
    from traindx_tools.experiments.change import parse_change
    from traindx_tools.experiments.outcome import Outcome

    command = f"{sys.executable} train.py"
    print("\n| change | verdict | runs | seconds | by hand (2 whole runs) |\n|---|---|---|---|---|")
    for change in ("env:RATE=0.1", "env:UNUSED=1")[:programs]:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "project"
            home.mkdir()
            (home / "train.py").write_text(PROGRAM)
            start = time.perf_counter()
            subprocess.run(command.split(), cwd=home, capture_output=True, check=True, timeout=300)
            hand = 2 * (time.perf_counter() - start)
            start = time.perf_counter()
            answer = run_experiments(Request(home, command, (parse_change(change),), Outcome("nonfinite")))
            seconds = time.perf_counter() - start
            result = answer.results[0]
            print(f"| {change} | {result.verdict.word} | {len(result.made)} | {seconds:.1f} | {hand:.1f} |")


def main() -> int:
    """Prints the tables; 1 where too many are called an effect."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--programs", type=int, default=2)
    given = parser.parse_args()
    count = given.experiments
    head = "| called an effect | no effect | inconclusive | runs | whole runs of steps |\n|---|---|---|---|---|---|"
    most = LIMIT * count + 2.5 * math.sqrt(LIMIT * count)
    bad = False
    print(f"true effect zero, {count} experiments each\n\n| between seeds {head}")
    for name, draw in DRAWS.items():
        words, runs, whole = null(World(draw=draw), count)
        bad = bad or words["removes"] + words["moves"] > most
        print(row(name, words, runs, whole), flush=True)
    words, runs, whole = null(World(start=0.02, spread=0.003), count, "fall")
    bad = bad or words["removes"] + words["moves"] > most
    print(row("how far a loss falls that hardly moves", words, runs, whole), flush=True)
    for chance in CHANCES:
        words, runs, whole = null(World(chance=chance), count)
        bad = bad or words["removes"] > most
        print(row(f"an event, probability {chance:g}", words, runs, whole), flush=True)
    print(f"\npower, {count} experiments each (spread 5 % of the level)\n\n| effect in standard deviations {head}")
    for effect in EFFECTS:
        print(row(f"{effect:g}", *null(World(effect=-effect), count)), flush=True)
    print(row("an event that goes", *null(World(chance=1.0, effect=-1.0), count)))
    by_hand(given.programs)
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
