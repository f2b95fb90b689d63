"""Who looks at what: a table from findings and symptom to specialists. Data, not chance; the lead may ask for more.

A route names the rules, the words of the symptom and the weight with which they call for a specialist. Weights add up,
the highest come first, and a bounded number is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traindx.agents import SPECIALISTS
from traindx_tools.finding import Finding, Severity
from traindx_tools.symptoms import observed_symptoms

MOST = 4
"""Specialists that are sent at once: each costs time and money, and more than four questions is no question."""

FRAMEWORK = "framework"
"""Stands for the logic auditor of each framework that the program uses."""
AUDITORS = {"torch": "torch-logic-auditor", "jax": "jax-logic-auditor"}
_FRAMEWORKS = {
    "torch": "torch", "pytorch": "torch", "lightning": "torch", "accelerate": "torch", "transformers": "torch",
    "deepspeed": "torch", "trl": "torch", "fsdp": "torch", "peft": "torch", "torchvision": "torch",
    "jax": "jax", "flax": "jax", "optax": "jax", "equinox": "jax", "haiku": "jax", "orbax": "jax", "chex": "jax",
}


@dataclass(frozen=True)
class Assignment:
    """A specialist, and why it is sent."""

    agent: str
    reason: str


@dataclass(frozen=True)
class RuleRoute:
    """Findings of these rules call for this specialist."""

    agent: str
    rules: tuple[str, ...]
    """Rule ids, or their beginnings."""
    weight: float
    why: str


@dataclass(frozen=True)
class SymptomRoute:
    """A symptom in the person's words calls for this specialist."""

    agent: str
    weight: float
    why: str
    symptoms: tuple[str, ...] = ()
    """Names of `symptoms.observed_symptoms`."""
    words: str = ""
    """Or a pattern that the words match."""


RULE_ROUTES = (
    RuleRoute("data-flow-tracer", ("L109", "L504", "L505", "L506", "L507", "L519", "L520", "L527", "C109", "C114"),
              3,
              "shapes, dtypes, devices or indices do not fit"),
    RuleRoute("data-flow-tracer", ("L501", "L503", "L510", "C121", "C122", "C129", "L402"), 2,
              "the data path may be at fault"),
    RuleRoute("data-flow-tracer", ("L101", "L204", "L206", "L208", "L211", "L523"), 1,
              "a batch or its preprocessing could cause it"),
    RuleRoute("torch-logic-auditor", ("C1",), 3, "PyTorch semantics are broken at a line"),
    RuleRoute("torch-logic-auditor", ("L511", "L512", "L513", "L514", "L518", "L521"), 3,
              "autograd, AMP, state or DDP raised an error"),
    RuleRoute("jax-logic-auditor", ("C5", "L516", "L517"), 3, "JAX semantics are broken at a line"),
    RuleRoute("jax-logic-auditor", ("L529",), 2, "XLA raised an error"),
    RuleRoute(FRAMEWORK, ("L102", "L103", "L104", "L105", "L106", "L204", "L215", "L3", "L401", "L523", "L7"), 2,
              "the order of the training step could cause it"),
    RuleRoute(FRAMEWORK, ("L101", "L107", "L201", "L207", "L213"), 1, "the training step could cause it"),
    RuleRoute("failure-mode-researcher", ("L502", "L503", "L508", "L509", "L515", "L522", "L524", "L525", "L526",
                                          "L528", "L529", "L530"), 2, "an error that others have met"),
    RuleRoute("failure-mode-researcher", ("L101", "L102", "L105", "L106", "L107", "L6"), 2,
              "a documented way in which training fails"),
    RuleRoute("failure-mode-researcher", ("L403", "L404", "L501", "L511"), 1, "a problem that others have met"),
    RuleRoute("paper-alignment-auditor", ("L602", "L604", "L605", "L607"), 2,
              "a quantity of the algorithm has a value that it must not have"),
    RuleRoute("paper-alignment-auditor", ("L108", "L202", "L209", "L210", "L601", "L603", "L606", "L608"), 1,
              "a term of the objective looks wrong"),
    RuleRoute("silent-bug-detector", ("L202", "L205", "L210", "L213", "L215", "L216", "L217"), 3,
              "a number is healthy or constant for the wrong reason"),
    RuleRoute("silent-bug-detector", ("L103", "L104", "L201", "L204", "L208", "L211", "L214", "L308"), 1,
              "no error, and it does not learn what it should"),
)
"""Rule ids by meaning. A rule may call for several specialists."""

OTHERWISE = (
    RuleRoute("failure-mode-researcher", ("L1", "L5", "L6"), 1, "a failure that others may have met"),
    RuleRoute("silent-bug-detector", ("L2", "L3", "L4", "W", "S"), 1, "a number that is not as it should be"),
    RuleRoute("data-flow-tracer", ("D", "R", "V", "L7", "L8"), 1, "what flows differs from what is expected"),
    RuleRoute("torch-logic-auditor", ("T",), 2, "seen in the live torch process"),
    RuleRoute("jax-logic-auditor", ("J", "C"), 2, "seen in the JAX program"),
)
"""Routes by family, for rules that the table does not name: a new rule is never looked at by nobody."""

SYMPTOM_ROUTES = (
    SymptomRoute("paper-alignment-auditor", 4, "a paper or an algorithm is named", words=(
        r"\bpapers?\b|arxiv|reproduc(e|ed|ing|tion)\b.{0,60}\b(result|number|score|figure|table)|reference (code|impl)|"
        r"\balgorithm|equation|\bas (reported|published)|published (result|number|score)s?|"
        r"does(n't| not) match the (original|method)|ablation")),
    SymptomRoute("data-flow-tracer", 3, "shapes or the data path are named", words=(
        r"\bshapes?\b|dimension|broadcast|size mismatch|\bdtype|index out of|out of (range|bounds)|\bmask(s|ed|ing)?\b|"
        r"data ?load|\bcollate|preprocess|tokeni[sz]|\blabels?\b|leak(s|age|ed)?\b.{0,30}(test|val|train|split)|"
        r"augment|\bpadding\b")),
    SymptomRoute("jax-logic-auditor", 3, "JAX semantics are named", words=(
        r"\bjax\b|\bjit(ted|s)?\b|\bvmap|\bpmap|\bshard_map|lax\.scan|\btracers?\b|jaxpr|\bprng|random key|\bflax\b|"
        r"\boptax\b|\bxla\b|recompil")),
    SymptomRoute("torch-logic-auditor", 3, "PyTorch semantics are named", words=(
        r"\b(py)?torch\b|autograd|\bbackward\(|autocast|grad.?scaler|\bddp\b|\bfsdp\b|zero_grad|\.eval\(\)|batch.?norm|"
        r"state_dict|torch\.compile|gradient accumulation")),
    SymptomRoute("silent-bug-detector", 4, "it looks healthy and is wrong", words=(
        r"no errors?\b|without (an |any )?errors?|looks? (fine|healthy|normal|good|ok)|seems? (fine|healthy|normal)|"
        r"silent|too good|suspicious|(metrics|loss|curves?) (is|are|look) (all )?(fine|good|healthy|normal|great)|"
        r"healthy metrics")),
    SymptomRoute("silent-bug-detector", 3, "the output is wrong", symptoms=("wrong-output",)),
    SymptomRoute("failure-mode-researcher", 3, "a known failure or an upgrade is named", words=(
        r"known (bug|issue|problem|failure)|after (the |an )?(up|down)grad|since (the )?(update|upgrade)|new version|"
        r"\bversion\b|mode collapse|reward hacking|github issue")),
    SymptomRoute("failure-mode-researcher", 2, "a failure that literature knows", symptoms=("collapse",)),
    SymptomRoute("failure-mode-researcher", 1, "a failure that others have met",
                 symptoms=("nonfinite", "divergence", "crash", "hang", "memory", "slow")),
    SymptomRoute(FRAMEWORK, 1, "the order of the training step could cause it",
                 symptoms=("nonfinite", "divergence", "not-learning", "schedule", "hang", "memory", "resume")),
    SymptomRoute("silent-bug-detector", 1, "no error, and it does not learn what it should",
                 symptoms=("not-learning", "generalization")),
    SymptomRoute("data-flow-tracer", 1, "the data could cause it", symptoms=("generalization", "slow")),
)

_STRONGER = {Severity.CRITICAL: 1.0, Severity.HIGH: 0.9, Severity.MEDIUM: 0.6, Severity.LOW: 0.3}
"""What a finding's severity does to a route's weight. A remark (info) calls for nobody."""


@dataclass(frozen=True)
class _Call:
    agent: str
    weight: float
    reason: str


def specialists_for(findings: Iterable[Finding], symptom: str = "",
                    frameworks: Iterable[str] = ()) -> tuple[Assignment, ...]:
    """The specialists to send, the most called for first: at most `MOST`, each once, with the reasons.

    `symptom` is a person's words: it is matched, never obeyed. `frameworks`: what the program uses ("torch", "flax").
    Where something was said or found and no route fits, the silent-bug detector looks; where nothing was, nobody does.
    The same input in any order gives the same result.
    """
    known = list(findings)
    auditors = _auditors(frameworks)
    calls = [*_from_findings(known, auditors), *_from_symptom(symptom, auditors)]
    if not calls:
        looked = symptom.strip() or any(f.severity is not Severity.INFO for f in known)
        return (Assignment("silent-bug-detector", "no route fits: nothing known explains what is seen"),) if looked \
            else ()
    ordered = sorted({c.agent for c in calls}, key=lambda a: (-_weight(calls, a), SPECIALISTS.index(a)))
    return tuple(Assignment(agent, _reason(calls, agent)) for agent in ordered[:MOST])


def _auditors(frameworks: Iterable[str]) -> tuple[str, ...]:
    used = {_FRAMEWORKS.get(f.lower().split(".")[0]) for f in frameworks}
    return tuple(agent for framework, agent in AUDITORS.items() if framework in used)


def _agents(named: str, auditors: Sequence[str]) -> Sequence[str]:
    return auditors if named == FRAMEWORK else (named,)


def _from_findings(findings: Sequence[Finding], auditors: Sequence[str]) -> list[_Call]:
    """A rule calls once, with its most severe finding, however often it fired."""
    worst: dict[str, Finding] = {}
    for f in sorted(findings, key=lambda f: (f.rule, -f.severity.rank, f.statement)):
        worst.setdefault(f.rule, f)
    return [_Call(agent, route.weight * _STRONGER[f.severity], f"{f.rule} ({f.where}): {route.why}")
            for f in worst.values() if f.severity in _STRONGER
            for route in routes_of(f.rule)
            for agent in _agents(route.agent, auditors)]


def routes_of(rule: str) -> tuple[RuleRoute, ...]:
    """The routes of a rule: those that name it, else the one of its family."""
    named = tuple(r for r in RULE_ROUTES if rule.startswith(r.rules))
    return named or tuple(r for r in OTHERWISE if rule.startswith(r.rules))


def _from_symptom(symptom: str, auditors: Sequence[str]) -> list[_Call]:
    text = symptom[:4000]
    seen = observed_symptoms(text)
    calls = []
    for route in SYMPTOM_ROUTES:
        word = re.search(route.words, text, re.IGNORECASE) if route.words else None
        named = [f"'{word[0]}'"] if word else sorted(seen.intersection(route.symptoms))
        if named:
            reason = f"symptom {', '.join(named)}: {route.why}"
            calls += [_Call(agent, route.weight, reason) for agent in _agents(route.agent, auditors)]
    return calls


def _weight(calls: Sequence[_Call], agent: str) -> float:
    return sum(c.weight for c in calls if c.agent == agent)


def _reason(calls: Sequence[_Call], agent: str) -> str:
    """The three weightiest reasons, in an order that does not depend on that of the findings."""
    mine = sorted((c for c in calls if c.agent == agent), key=lambda c: (-c.weight, c.reason))
    return "; ".join(dict.fromkeys(c.reason for c in mine[:3]))
