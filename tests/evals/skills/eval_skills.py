"""Evaluates the skills on a model: are they called when they should be, and do they hold under pressure?

    python tests/evals/skills/eval_skills.py --model MODEL [--runs 3] [--only NAME ...] [--json FILE]
    python tests/evals/skills/eval_skills.py --export DIR     # the triggers as cases for `claude plugin eval`
    python tests/evals/skills/eval_skills.py --part hard --transcripts     # the hard kind, scripted: no key

Every scenario runs with the skill and without it, several times each; rules grade first, a judge second. The key comes
from the environment, as the `anthropic` package takes it; each run costs money: the tokens are printed, and the dollars
where --price names the model's prices. The hard kind (`skill_hard.py`) is an agent with a shell on projects whose
proof lies in data, weights or two runs, with the pack and without it: rates, calls, tokens and minutes. The scenarios
are in the format of `claude plugin eval` as well:

    claude plugin eval . --tag pressure --no-publish
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from skill_asking import Asker, as_json, dollars
from skill_cases import Case, Trigger, export_triggers, load_cases, load_triggers, skills
from skill_grading import Grade, grade, triggered
from skill_hard import HardCase, HardScore, Replayed, hard_report, load_hard, scored

ARMS = ("with", "without")
TYPE = ("`make eval-skills MODEL=NAME` with your key in ANTHROPIC_API_KEY (it costs money), or without a key the "
        "scripted part: `make eval-skills ARGS=--transcripts`, which measures no model")


@dataclass(frozen=True)
class Score:
    """The share of passed runs of one case in one arm, and why the others failed."""

    name: str
    arm: str
    passes: tuple[bool, ...]
    failed: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        return sum(self.passes) / len(self.passes)


def pressed(asker: Asker, cases: Sequence[Case], runs: int, map_: Callable[..., Iterable[Any]] = map) -> list[Score]:
    """Every scenario, with and without the skill, `runs` times."""
    jobs = [(case, arm) for case in cases for arm in ARMS for _ in range(runs)]

    def one(job: tuple[Case, str]) -> Grade:
        return grade(job[0], asker.pressed(job[0], with_skill=job[1] == "with"), asker.judge)

    grades = list(map_(one, jobs))
    scores = []
    for start in range(0, len(jobs), runs):
        got, (case, arm) = grades[start:start + runs], jobs[start]
        scores.append(Score(case.name, arm, tuple(g.passed for g in got),
                            tuple(dict.fromkeys(f for g in got for f in g.failed))))
    return scores


def called(asker: Asker, triggers: Sequence[Trigger], runs: int,
           map_: Callable[..., Iterable[Any]] = map) -> list[Score]:
    """Every prompt, `runs` times: is the right skill called, and none where none fits?"""
    jobs = [t for t in triggers for _ in range(runs)]
    hits = list(map_(lambda t: triggered(t, asker.triggered(t), list(asker.skills)), jobs))
    return [Score(t.id, t.kind, tuple(hits[i * runs:(i + 1) * runs])) for i, t in enumerate(triggers)]


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation of the shares of the single runs."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.0%} +- {deviation:.0%}"


def by_run(scores: Sequence[Score]) -> list[float]:
    """The share of passed cases in run 1, in run 2 and so on: what differs between two whole evaluations."""
    runs = min(len(s.passes) for s in scores)
    return [statistics.fmean(s.passes[i] for s in scores) for i in range(runs)]


def report(pressure: Sequence[Score], triggers: Sequence[Score]) -> str:
    """The tables."""
    lines = []
    if pressure:
        lines.append(f"{'pressure scenario':34}{'with':>7}{'without':>9}  what failed with the skill")
        for with_, without in zip(pressure[::2], pressure[1::2], strict=True):
            lines.append(f"{with_.name:34}{with_.share:>7.0%}{without.share:>9.0%}  {', '.join(with_.failed)}")
        for arm in ARMS:
            of_arm = [s for s in pressure if s.arm == arm]
            lines.append(f"all, {arm:29}{spread(by_run(of_arm))}  (mean and spread over runs)")
    for kind in dict.fromkeys(s.arm for s in triggers):
        of = [s for s in triggers if s.arm == kind]
        missed = [s.name for s in of if s.share < 1]
        named = f"; missed: {', '.join(missed)}" if missed else ""
        lines.append(f"triggers, {kind:24}{spread(by_run(of))}  of {len(of)}{named}")
    return "\n".join(lines)


def replayed(cases: Sequence[HardCase], runs: int) -> list[HardScore]:
    """The hard kind on its transcripts: the good one with the pack, the bad one without."""
    texts = skills()

    def asker_of(case: HardCase, arm: str) -> Asker:
        return Asker(Replayed(case.transcripts["good" if arm == "with" else "bad"]), "scripted", "scripted", texts)

    return scored(asker_of, cases, runs)


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--model", help="the model that is evaluated")
    made.add_argument("--judge-model", help="the model that judges (default: the same)")
    made.add_argument("--runs", type=int, default=3, help="runs of each case and arm")
    made.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these scenarios or triggers only")
    made.add_argument("--part", choices=("all", "pressure", "triggers", "hard"), default="all")
    made.add_argument("--transcripts", action="store_true",
                      help="the hard kind on its scripted transcripts: proves the harness, measures no model")
    made.add_argument("--at-once", type=int, default=4, help="requests side by side")
    made.add_argument("--price", nargs=3, action="append", default=[], metavar=("MODEL", "IN", "OUT"),
                      help="dollars per million tokens")
    made.add_argument("--json", type=Path, metavar="FILE", help="the whole result")
    made.add_argument("--export", type=Path, metavar="DIR", help="write the triggers as cases for `claude plugin eval`")
    return made


def reached(model: str) -> Any:
    """A client that the API answers: it counts a word, which costs nothing. Raises whatever keeps it from that."""
    import anthropic

    client = anthropic.Anthropic(max_retries=6)
    client.messages.count_tokens(model=model, messages=[{"role": "user", "content": "."}])
    return client


def main(arguments: Sequence[str] | None = None, client: Any = None) -> int:
    """Runs the evaluation; returns 0, or 2 where it could not run."""
    options = parser().parse_args(arguments)
    if options.export is not None:
        print(f"{export_triggers(load_triggers(), options.export)} cases in {options.export}")
        return 0
    if options.transcripts:
        chosen = [c for c in load_hard() if not options.only or c.name in options.only]
        print(hard_report(replayed(chosen, max(options.runs, 1)), with_model=False))
        return 0
    if not options.model or options.runs < 1:
        print(f"eval-skills: name a model and at least one run: {TYPE}", file=sys.stderr)
        return 2
    if client is None:
        try:
            client = reached(options.model)
        except Exception as error:  # noqa: BLE001 - no package, no key, no such model: there is nothing to run with
            print(f"eval-skills: no model can be asked ({str(error)[:300]}). It needs `pip install anthropic` and your "
                  f"key in the environment: {TYPE}", file=sys.stderr)
            return 2
    asker = Asker(client, options.model, options.judge_model or options.model, skills())
    named = set(options.only)
    part = options.part
    cases = [c for c in load_cases() if not named or c.name in named] if part in ("all", "pressure") else []
    prompts = [t for t in load_triggers() if not named or t.id in named] if part in ("all", "triggers") else []
    difficult = [c for c in load_hard() if not named or c.name in named] if part in ("all", "hard") else []
    with ThreadPoolExecutor(options.at_once) as pool:
        pressure = pressed(asker, cases, options.runs, pool.map)
        triggers = called(asker, prompts, options.runs, pool.map)
        hard = scored(lambda case, arm: asker, difficult, options.runs, pool.map)
    print(report(pressure, triggers))
    if hard:
        print(hard_report(hard, with_model=True))
    prices = {m: (float(i), float(o)) for m, i, o in options.price}
    cost = dollars(asker.spent, prices)
    for model, (tokens_in, tokens_out) in asker.spent.items():
        print(f"{model}: {tokens_in} tokens in, {tokens_out} out")
    print("cost: " + (f"${cost:.2f}" if cost is not None else "unknown: name the prices with --price MODEL IN OUT"))
    if options.json is not None:
        options.json.write_text(as_json({"model": options.model, "runs": options.runs, "tokens": asker.spent,
                                         "dollars": cost,
                                         "scores": [vars(s) for s in (*pressure, *triggers)],
                                         "hard": [vars(s) for s in hard]}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    sys.exit(main())
