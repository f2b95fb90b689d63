"""The hard kind: an agent with a shell, with and without the pack; the proof lies in data, weights or two runs.

A case is a folder that is built anew with a seed, so that no answer can be known; its truth is what was built in. An
answer counts where it names the cause and its place, and the value that it gives stands in the output of a command that
the agent ran. The shell is the protected runner, in a copy; what each arm has in it, `skill_arms.py` says.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from hard_builds import BUILDS, Truth
from skill_arms import interpreter, land_skills, loaded, shell
from skill_asking import PLAIN, Asker
from skill_cases import HERE, CaseFault

TURNS = 40
ARMS = ("with", "without")
SCRIPTED = ("No rate was measured with a model: these are scripted transcripts, the good one under 'with', the bad one "
            "under 'without'. They prove the harness alone.")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")

SHELL = {"name": "shell", "description": "Runs a shell command in a copy of the project, which cannot change.",
         "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
ANSWER = {"name": "answer", "description": "Your diagnosis: the cause in a clause, its place (file, and shard, row, "
                                           "tensor or key), and the measured value that proves it.",
          "input_schema": {"type": "object", "properties": {n: {"type": "string"} for n in ("cause", "place", "value")},
                           "required": ["cause", "place", "value"]}}


@dataclass(frozen=True)
class HardCase:
    """One case: what is asked, and how it is built."""

    name: str
    kind: str
    prompt: str
    transcripts: Mapping[str, Sequence[Mapping[str, Any]]]

    def build(self, folder: Path, seed: int) -> Truth:
        """Makes the project; returns what is wrong with it."""
        return BUILDS[self.name](folder, seed)


@dataclass
class Attempt:
    """What one conversation came to."""

    answer: Mapping[str, str] | None = None
    outputs: list[str] = field(default_factory=list)
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failure: str = ""

    def right(self, truth: Truth) -> bool:
        """True where it names cause and place, and its value was really measured."""
        if self.answer is None:
            return False
        cause, place = (str(self.answer.get(k, "")) for k in ("cause", "place"))
        named = re.search(truth.cause, cause, re.IGNORECASE) and re.search(truth.place, place, re.IGNORECASE)
        cited = _NUMBER.findall(str(self.answer.get("value", "")))
        printed = {n for text in self.outputs for n in _NUMBER.findall(text)}
        return bool(named and cited and all(n in printed for n in cited))


def load_hard(folder: Path = HERE / "hard") -> list[HardCase]:
    """All cases, by name. Raises CaseFault for one that cannot be built or lacks a transcript."""
    cases = []
    for path in sorted(folder.glob("*.yaml")):
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        lacking = [k for k in ("kind", "prompt", "transcripts") if not data.get(k)]
        if lacking or path.stem not in BUILDS or set(data["transcripts"]) != {"good", "bad"}:
            raise CaseFault(f"{path}: expected kind, prompt, transcripts good and bad, and a build of its name")
        cases.append(HardCase(path.stem, data["kind"], data["prompt"].strip(), data["transcripts"]))
    return cases


def attempt(asker: Asker, case: HardCase, seed: int, *, with_pack: bool) -> tuple[Attempt, Truth]:
    """One conversation about one build of the case."""
    with tempfile.TemporaryDirectory() as base:
        work = Path(base) / "work"
        work.mkdir()
        truth = case.build(work, seed)
        system, run = arm(asker, work, with_pack=with_pack)
        made, started = Attempt(), time.monotonic()
        try:
            _converse(asker, system, case.prompt, made, run)
        except Exception as error:  # noqa: BLE001 - an API error fails this attempt; the evaluation goes on
            made.failure = f"{type(error).__name__}: {error}"[:300]
        made.seconds = time.monotonic() - started
        return made, truth


def arm(asker: Asker, work: Path, *, with_pack: bool) -> tuple[str, Callable[[str], str]]:
    """The system text of an arm, and its shell."""
    run = shell(work, interpreter(work.parent / "python"))
    if not with_pack:
        return PLAIN, run
    return f"{PLAIN}\n\n{loaded('ml-debug', asker.skills['ml-debug'][1], land_skills(work))}", run


def _converse(asker: Asker, system: str, prompt: str, made: Attempt, run: Callable[[str], str]) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    for _ in range(TURNS):
        reply = asker.create(asker.model, system, messages, [SHELL, ANSWER])
        made.tokens += reply.usage.input_tokens + reply.usage.output_tokens
        calls = [b for b in reply.content if b.type == "tool_use"]
        made.answer = next((dict(b.input) for b in calls if b.name == "answer"), None)
        if made.answer is not None or not calls:
            return
        results = []
        for block in calls:
            made.calls += 1
            printed = run(str(block.input.get("command", "")))
            made.outputs.append(printed)
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": printed})
        messages += [{"role": "assistant", "content": [b.model_dump() for b in reply.content]},
                     {"role": "user", "content": results}]


@dataclass(frozen=True)
class HardScore:
    """One case in one arm: how often it was right, and what that took."""

    name: str
    kind: str
    arm: str
    right: tuple[bool, ...]
    calls: float
    tokens: float
    minutes: float


def scored(asker_of: Callable[[HardCase, str], Asker], cases: Sequence[HardCase], runs: int,
           map_: Callable[..., Iterable[Any]] = map) -> list[HardScore]:
    """Every case in both arms, `runs` times, each on a build of its own seed; both arms see the same builds."""
    jobs = [(case, arm, seed) for case in cases for arm in ARMS for seed in range(runs)]
    found = list(map_(lambda j: attempt(asker_of(j[0], j[1]), j[0], j[2], with_pack=j[1] == "with"), jobs))
    made = []
    for at in range(0, len(jobs), runs):
        case, arm, _ = jobs[at]
        tries = found[at:at + runs]
        made.append(HardScore(case.name, case.kind, arm, tuple(a.right(t) for a, t in tries),
                              *(sum(values) / runs for values in zip(*(
                                  (a.calls, a.tokens, a.seconds / 60) for a, _ in tries), strict=True))))
    return made


def hard_report(scores: Sequence[HardScore], *, with_model: bool) -> str:
    """Rates, calls, tokens and minutes of both arms side by side."""
    lines = [] if with_model else [SCRIPTED]
    head = "".join(f"{word:>9}{'':>9}" for word in ("right", "calls", "tokens", "minutes"))
    lines += [f"{'hard case':24}{'proof in':>10}{head}", f"{'':34}" + f"{'with':>9}{'without':>9}" * 4]
    pairs = list(zip(scores[::2], scores[1::2], strict=True))
    for with_, without in pairs:
        lines.append(f"{with_.name:24}{with_.kind:>10}" + _columns(with_, without))
    if pairs:
        lines.append(f"{'all':34}" + _columns(_all([w for w, _ in pairs]), _all([o for _, o in pairs])))
    return "\n".join(lines)


def _columns(with_: HardScore, without: HardScore) -> str:
    cells = [(f"{sum(s.right) / len(s.right):.0%}", f"{s.calls:.1f}", f"{s.tokens:,.0f}", f"{s.minutes:.1f}")
             for s in (with_, without)]
    return "".join(f"{a:>9}{b:>9}" for a, b in zip(*cells, strict=True))


def _all(scores: Sequence[HardScore]) -> HardScore:
    n = len(scores)
    return HardScore("all", "", scores[0].arm, tuple(r for s in scores for r in s.right),
                     sum(s.calls for s in scores) / n, sum(s.tokens for s in scores) / n,
                     sum(s.minutes for s in scores) / n)


class Replayed:
    """A client that says what a transcript says: for the harness, and for a look at it without a key."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self.steps = steps
        self.messages = self

    def create(self, *, messages: Sequence[Mapping[str, Any]], **_: Any) -> Any:
        """The next step of the transcript; its last output can be quoted as {output}."""
        at = sum(m["role"] == "assistant" for m in messages)
        step = self.steps[min(at, len(self.steps) - 1)]
        printed = messages[-1]["content"]
        last = printed[0]["content"] if isinstance(printed, list) else ""
        given = {k: _filled(v, last) for k, v in step["input"].items()}
        return _Reply([_Block(f"toolu_{at}", step["use"], given)])


def _filled(text: str, output: str) -> str:
    """The text with {PATTERN} replaced by what the pattern finds in the output."""
    def found(match: re.Match[str]) -> str:
        there = re.search(match[1], output)
        return there[1] if there else "?"

    return re.sub(r"\{\{(.+?)\}\}", found, text)


@dataclass(frozen=True)
class _Block:
    id: str
    name: str
    input: dict[str, str]
    type: str = "tool_use"

    def model_dump(self) -> dict[str, Any]:
        return {"type": self.type, "id": self.id, "name": self.name, "input": self.input}


@dataclass(frozen=True)
class _Usage:
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class _Reply:
    content: list[_Block]
    usage: _Usage = _Usage()
