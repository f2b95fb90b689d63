"""The page of a failure mode and the page of a rule, as Markdown that also reads well in a terminal.

`traindx explain` prints them and the skills' reference pages are made of them, so they come from the same TOML and
docstrings as the engine's judgement.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from traindx_tools.catalog.catalog import FailureMode, FixPlan, Source, Speaks, Step, Variant, load_catalog
from traindx_tools.catalog.condition import Condition
from traindx_tools.catalog.decisions import load_decisions, load_step_decisions
from traindx_tools.catalog.precision import COUNTER_ROLES, PRIOR, ROLES, load_precision
from traindx_tools.catalog.terms import terms_in
from traindx_tools.finding import Bearing
from traindx_tools.rules import RuleModule, explained_rules

WIDTH = 100
"""Columns of a paragraph: the longest line that most terminals show without a break."""

SEEN: Mapping[str, str] = {
    "nonfinite": "values that are no numbers any more (NaN, infinity)",
    "divergence": "the loss grows instead of falling",
    "not-learning": "the loss does not fall, or stops too early",
    "generalization": "the training looks fine and the evaluation does not",
    "schedule": "the learning rate is not what was planned", "crash": "the program ends with an error",
    "hang": "the program stands still", "memory": "memory grows, or is not enough", "slow": "steps take too long",
    "collapse": "outputs become the same, whatever goes in", "resume": "a training that went on is not what it was",
    "wrong-output": "the outputs are wrong although the training looks fine"}
"""The symptoms of the catalog as a person says them."""

_PLACEHOLDER = re.compile(r"\{(\w+)(?:\|([^{}]*))?\}")
_SLOT = re.compile(r"\{\w+\|([^{}]*)\}")
"""A placeholder of a command; braces without a fallback are Python's."""


def without_values(text: str) -> str:
    """The text with each placeholder replaced by its fallback: how it reads where no run was measured."""
    return _PLACEHOLDER.sub(lambda m: m[2] if m[2] is not None else m[1].replace("_", " "), text)


def mode_page(mode: FailureMode) -> str:
    """The page of a failure mode: what it is, why, evidence for and against, how to settle it, how to fix it."""
    return _document([
        f"# {mode.title}",
        without_values(mode.claim) + ".",
        f"What you see: {'; '.join(SEEN[s] for s in mode.symptoms)}. "
        f"What helps first: {_small(without_values(mode.targeted.summary))}.",
        f"`{mode.id}`, family {mode.family}, severity {mode.severity.value}, seen as {', '.join(mode.symptoms)}.",
        *_words_of(mode.claim, mode.mechanism, mode.targeted.change),
        "## Why this happens",
        without_values(mode.mechanism),
        "## Depending on what was found" if mode.variants else "",
        _bullets(_form(v) for v in mode.variants),
        "## Evidence",
        _worth(mode),
        "\n".join(_evidence("for", mode.speaks_for)),
        "\n".join(_evidence("against", mode.speaks_against)),
        "## How to confirm it",
        _steps(mode.confirm),
        "## How to rule it out",
        _steps(mode.rule_out),
        *_experiments(mode),
        "## Fix A: targeted",
        _plan(mode.targeted),
        "## Fix B: broader",
        _plan(mode.broader),
        "## What the fix changes",
        _bullets(mode.will_change),
        "## What the fix does not fix",
        _bullets(mode.will_not_fix),
        "## What looks alike" if mode.look_alikes else "",
        _bullets(f"`{like.mode}`: {like.tell}" for like in mode.look_alikes),
        "## Sources" if mode.sources else "",
        _bullets(_source(s) for s in mode.sources),
        "## Figures",
        *_figures(mode),
    ])


def _experiments(mode: FailureMode) -> tuple[str, ...]:
    """The changes that decide the mode: the symptom goes with them where it is the cause, and else stays."""
    told = [f"`traindx experiment PATH --run CMD --change {d.change}`: {d.why}" for d in load_decisions()
            if mode.id in d.removes]  # fmt: skip
    told += [f"`traindx run --snapshot -- CMD`, `{change}` in the step that fails: {d.why}"
             for change, d in load_step_decisions().items() if mode.id in d.removes]
    return ("## Experiments that decide it", _bullets(told)) if told else ()


def rule_page(module: RuleModule, modes: Mapping[str, FailureMode] | None = None) -> str:
    """The page of a rule, from its docstring and metadata, with the failure modes that it speaks for.

    `modes` defaults to the catalog that comes with traindx.
    """
    rule = module.rule
    opening, _, detail = module.doc.strip().partition("\n\n")
    catalog = load_catalog() if modes is None else modes
    named = list(_modes_of(rule.id, catalog))
    return _document([
        f"# {rule.id} {rule.title}",
        _prose(opening),
        f"Why it matters: {_small(rule.matters)}",
        f"`{rule.name}`, severity {rule.severity.value}.",
        *_words_of(rule.title, opening, rule.matters, rule.sees, detail),
        "## In detail" if detail else "",
        _prose(detail),
        "## What it sees",
        rule.sees,
        "## Thresholds" if rule.thresholds else "",
        _bullets(f"`{name}` = {t.value} {t.unit} ({t.source})" for name, t in rule.thresholds.items()),
        "## What else looks alike" if rule.alike else "",
        _bullets(rule.alike),
        "## How to confirm it" if rule.confirm else "",
        _bullets(rule.confirm),
        "## Failure modes it speaks for or against" if named else "",
        _bullets(named),
    ])  # fmt: skip


def _words_of(*texts: str) -> tuple[str, ...]:
    """What the terms of a page mean: the plain words first, the term behind them."""
    found = terms_in(" ".join(without_values(t) for t in texts))
    return ("## Words on this page", _bullets(f"{t.plain}: **{t.name}**" for t in found)) if found else ()


def _small(text: str) -> str:
    """A sentence as it goes on behind a colon: its first word in small letters, unless it is a name or a code."""
    first = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text


def _document(blocks: Iterable[str]) -> str:
    return "\n\n".join(_wrapped(block) for block in blocks if block) + "\n"


def _wrapped(block: str) -> str:
    if block.startswith(("#", "- ")) or "\n" in block:
        return block
    return _fill(block)


def _fill(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _prose(doc: str) -> str:
    return "\n\n".join(_fill(" ".join(part.split())) for part in doc.split("\n\n") if part.strip())


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(_fill(f"- {without_values(item)}", "  ") for item in items)


def _worth(mode: FailureMode) -> str:
    """What is said before the evidence: what it adds up from, and what the mode brings about."""
    told = ["Each finding below makes it likelier (for) or less likely (against); how much, the figures at the end of "
            "this page say."]
    told += ["It is an effect: something that is seen, and that has a cause of its own."] if mode.effect else []
    told += [f"It brings about: {', '.join(mode.causes)}."] if mode.causes else []
    return _fill(" ".join(told))


def _evidence(side: str, entries: Iterable[Speaks]) -> Iterator[str]:
    for entry in entries:
        conditions = ", ".join(_condition(c) for c in entry.when)
        where = f", where {conditions}" if conditions else ""
        yield _fill(f"- {side}: {entry.note.rstrip('.') or _title(entry.rule)} ({entry.rule}{where})", "  ")


def _title(rule: str) -> str:
    """What a finding of the rule says, in the words of its title; that of an instrument without a page by its id."""
    found = explained_rules().get(rule)
    return _small(found.rule.title) if found is not None else f"a finding of {rule}"


def _figures(mode: FailureMode) -> Iterator[str]:
    """What each entry adds, the same figures of a rule once: for who wants to follow the arithmetic."""
    told = {f"- {e.rule} ({e.role}): {_measured(e)}" for e in (*mode.speaks_for, *mode.speaks_against)}
    yield _fill(f"Log-odds that a finding adds, {PRIOR:+.1f} before any evidence, as measured on programs and runs "
                "that its author had not seen (`catalog/precision.toml`).")
    yield "\n".join(_fill(text, "  ") for text in sorted(told))


def _measured(entry: Speaks) -> str:
    """What an entry adds at its best, and on how many judgements that rests."""
    table = load_precision()
    bearing = entry.bearing or Bearing.CAUSE
    most = f", counts as {entry.bearing.value} at most" if entry.bearing else ""
    told = f"{table.weight(entry.rule, entry.role, bearing):+.1f}"
    if entry.role in COUNTER_ROLES:
        return told + most
    found = table.of(entry.rule, entry.role, bearing)
    return f"{told}, right {found.right} of {found.judged} times{most}"


def _condition(condition: Condition) -> str:
    test = str(condition.test)
    if test in ("present", "absent"):
        return f"{condition.key} is {test}"
    if test.startswith("~"):
        return f"{condition.key} matches {test[1:].strip()}"
    if test.startswith("in "):
        return f"{condition.key} is one of {test[3:]}"
    return f"{condition.key} {test}" if re.match(r"[<>!]", test) else f"{condition.key} is {test.lower()}"


def _steps(steps: Iterable[Step]) -> str:
    return "\n".join("\n".join(_step(number, step)) for number, step in enumerate(steps, 1))


def _step(number: int, step: Step) -> Iterator[str]:
    yield _fill(f"{number}. {without_values(step.do)}", "   ")
    if step.command:
        yield f"\n       {_SLOT.sub(lambda m: m[1], step.command)}\n"
    if step.expect:
        yield textwrap.indent(_fill(f"Expect: {without_values(step.expect)}"), "   ")


def _plan(plan: FixPlan) -> str:
    return _bullets((
        f"In short: {plan.summary}",
        f"Change: {plan.change}",
        f"What should move: {plan.metric}",
        f"Verify: {plan.verify}",
        f"If it does not help: {plan.otherwise}",
    ))


def _form(variant: Variant) -> str:
    """A form of the mode in one entry: which findings show it, what the cause is then, and the fix."""
    told = ", ".join((*variant.rules, *map(_condition, variant.when)))
    fix = f" Fix: {variant.targeted.summary}: {variant.targeted.change}." if variant.targeted else ""
    return f"{told}: {variant.claim or ''}.{fix}".replace(": .", ":")


def _source(source: Source) -> str:
    return f"{source.title}: {source.where}"


def _modes_of(rule_id: str, modes: Mapping[str, FailureMode]) -> Iterator[str]:
    for mode in modes.values():
        for side, entries in (("for", mode.speaks_for), ("against", mode.speaks_against)):
            roles = [entry.role for entry in entries if entry.rule == rule_id]
            if roles:
                yield f"`{mode.id}` ({side}, {min(roles, key=(*ROLES, *COUNTER_ROLES).index)}): {mode.title}"
