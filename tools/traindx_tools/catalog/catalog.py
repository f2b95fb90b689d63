"""Loads and checks the failure modes: one TOML file each, under `modes/<family>/`.

A failure mode is data: what it is called, why it happens, which findings speak for it and against it in what role,
what it causes, how to confirm it and how to rule it out, how to fix it. Skills' reference pages and `traindx explain`
are rendered from the same files, so prose and engine never disagree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from traindx_tools.catalog.condition import Condition
from traindx_tools.catalog.precision import COUNTER_ROLES, ROLES, load_precision
from traindx_tools.catalog.shipped import shipped, table, toml_below
from traindx_tools.domains import DOMAINS
from traindx_tools.errors import CatalogError
from traindx_tools.finding import Bearing, Finding, Severity

if TYPE_CHECKING:
    from importlib.abc import Traversable

MODES = shipped("modes")
PACKED = shipped("modes.json")
"""The same in one file, in a wheel (hatch_build.py); only one of the two is there."""

FAMILIES = frozenset({
    "nan_inf", "divergence", "not_learning", "wrong_target", "lr_schedule", "grad_accumulation", "amp_order",
    "rl_collapse", "codebook_collapse", "batchnorm_gap", "index_error", "dataloader", "oom", "hang", "distributed",
    "jax", "resume", "performance", "overfit", "checkpoint", "generative", "configuration", "environment",
})  # fmt: skip
SYMPTOMS = frozenset({
    "nonfinite", "divergence", "not-learning", "generalization", "schedule", "crash", "hang", "memory", "slow",
    "collapse", "resume", "wrong-output",
})  # fmt: skip
"""What a person sees. Modes that share a symptom compete for it."""

EFFECTS = shipped("effects.toml")


@dataclass(frozen=True)
class Speaks:
    """A finding that speaks for a mode or against it; what that is worth is measured (see `precision.py`)."""

    rule: str
    role: str
    """What the finding is for the mode: one of `precision.ROLES`, or of `COUNTER_ROLES` where it speaks against it."""
    when: tuple[Condition, ...] = ()
    bearing: Bearing | None = None
    """How near this finding is to this cause, where that is less than the finding's own bearing."""
    note: str = ""
    beside: tuple[str, ...] = ()
    """Rules of which one must have been seen as well, or else `said` must hold; empty with an empty `said`: always."""
    said: str = ""
    """A regular expression for the person's words, in place of a rule in `beside`."""

    def counts(self, rules: frozenset[str], words: str) -> bool:
        """Whether what must go along with the finding is there."""
        if not self.beside and not self.said:
            return True
        return bool(rules.intersection(self.beside)) or bool(
            self.said and re.search(self.said, words[:4000], re.IGNORECASE))

    def matches(self, finding: Finding) -> bool:
        """Whether the finding is of this rule and all conditions hold on its measured values."""
        return finding.rule == self.rule and all(c.holds(finding.measured) for c in self.when)

    def bearing_of(self, finding: Finding) -> Bearing:
        """The farther of the finding's bearing and the one that this entry allows."""
        if self.bearing is None or self.bearing.cap >= finding.bearing.cap:
            return finding.bearing
        return self.bearing

    def weight_of(self, finding: Finding) -> float:
        """What the finding adds to the log-odds of the mode, by measured precision; negative where it speaks
        against. A test of this very cause whose undoing was tried carries its own measure as well."""
        own = finding.undone if self.role == "cause" else None
        return load_precision().weight(self.rule, self.role, self.bearing_of(finding), own)


@dataclass(frozen=True)
class Step:
    """One thing to do that settles a hypothesis: in words, as a command where there is one, and what to expect."""

    do: str
    command: str = ""
    expect: str = ""
    needs: tuple[str, ...] = ()
    """What a run must have for it (see `fitting.NEEDS`), beyond what its words imply."""
    unless: tuple[str, ...] = ()
    """Rules whose findings have told what it would tell."""
    edited: bool = False
    """Whether the command tells something only after the change that `do` describes was made by hand."""


@dataclass(frozen=True)
class FixPlan:
    """A fix: what changes, which metric should move and how far, how to verify, what to try if it does not."""

    summary: str
    change: str
    metric: str
    verify: str
    otherwise: str


@dataclass(frozen=True)
class LookAlike:
    """Another mode with the same look, and how to tell them apart."""

    mode: str
    tell: str


@dataclass(frozen=True)
class Source:
    """Where the knowledge comes from."""

    title: str
    where: str


@dataclass(frozen=True)
class Variant:
    """How a failure mode reads where one of `rules` found it under these conditions; what is None stays as it is."""

    rules: tuple[str, ...]
    when: tuple[Condition, ...] = ()
    unless: tuple[str, ...] = ()
    """Rules whose findings say what is so and not why: where another finding tells a form, that one is told."""
    claim: str | None = None
    mechanism: str | None = None
    confirm: tuple[Step, ...] | None = None
    rule_out: tuple[Step, ...] | None = None
    targeted: FixPlan | None = None
    broader: FixPlan | None = None
    will_change: tuple[str, ...] | None = None
    will_not_fix: tuple[str, ...] | None = None

    def matches(self, finding: Finding) -> bool:
        """Whether the finding is of one of the rules and all conditions hold on its measured values."""
        return finding.rule in self.rules and all(c.holds(finding.measured) for c in self.when)

    @property
    def changes(self) -> dict[str, Any]:
        """The fields of the mode that it replaces."""
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("rules", "when", "unless")}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class FailureMode:
    """One way in which a training run fails."""

    id: str
    title: str
    family: str
    severity: Severity
    symptoms: tuple[str, ...]
    claim: str
    mechanism: str
    speaks_for: tuple[Speaks, ...]
    speaks_against: tuple[Speaks, ...]
    confirm: tuple[Step, ...]
    rule_out: tuple[Step, ...]
    targeted: FixPlan
    broader: FixPlan
    will_change: tuple[str, ...]
    will_not_fix: tuple[str, ...]
    look_alikes: tuple[LookAlike, ...]
    sources: tuple[Source, ...]
    anchors: tuple[str, ...] = ()
    """Kinds of code lines (`traindx/usual_lines.py`) that this mode is about, the most telling first."""
    domain: str = ""
    """The special part of a run that the mode is about (see `domains.py`), empty for one that any run can have."""
    effect: bool = False
    """Whether it is only what is seen, and asks for a cause itself (see `effects.toml`)."""
    causes: tuple[str, ...] = ()
    """Effects that this mode brings about: no rivals of it, and their evidence is evidence for it."""
    restated: tuple[re.Pattern[str], ...] = ()
    """Words of a person that say the mode itself: who says so knows it, and asks for its cause."""
    form_of: tuple[str, ...] = ()
    """Modes that say the same fact at another depth: where both rest on one finding they are one entry."""
    variants: tuple[Variant, ...] = ()
    """What is said instead where the findings tell which of several forms it has; the first that fits counts."""

    def in_case(self, findings: Iterable[Finding]) -> FailureMode:
        """The mode in the form that these findings show, the strongest first."""
        found = [(f, v) for f in findings for v in self.variants if v.matches(f)]
        for _, variant in sorted(found, key=lambda pair: pair[0].rule in pair[1].unless):
            return replace(self, **variant.changes)
        return self


def _strings(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(v, str) and v.strip() for v in value):
        raise CatalogError(f"'{key}' must be a list of at least one sentence, got {value!r}")
    return tuple(value)


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise CatalogError(f"'{key}' must be a sentence, got {value!r}")
    return " ".join(value.split())


def _speaks(items: Iterable[Mapping[str, Any]], roles: Sequence[str]) -> tuple[Speaks, ...]:
    out = []
    for item in items:
        if item.get("role") not in roles:
            raise CatalogError(f"a role is one of {', '.join(roles)}, got {item.get('role')!r} for {item.get('rule')}")
        out.append(Speaks(
            rule=_text(item, "rule"),
            role=item["role"],
            when=tuple(Condition(k, v) for k, v in item.get("when", {}).items()),
            bearing=Bearing(item["bearing"]) if "bearing" in item else None,
            note=item.get("note", ""),
            beside=tuple(item.get("beside", ())),
            said=item.get("said", ""),
        ))  # fmt: skip
    return tuple(out)


def _steps(items: Iterable[Mapping[str, Any]], key: str) -> tuple[Step, ...]:
    steps = tuple(Step(_text(i, "do"), i.get("command", ""), i.get("expect", ""), tuple(i.get("needs", ())),
                       tuple(i.get("unless", ())), bool(i.get("edited", False))) for i in items)  # fmt: skip
    if not steps:
        raise CatalogError(f"'{key}' needs at least one entry")
    return steps


def _plan(data: Mapping[str, Any], key: str) -> FixPlan:
    plan = data.get("fix", {}).get(key)
    if plan is None:
        raise CatalogError(f"[fix.{key}] is missing")
    return FixPlan(*(_text(plan, k) for k in ("summary", "change", "metric", "verify", "otherwise")))


def _variants(items: Iterable[Mapping[str, Any]]) -> tuple[Variant, ...]:
    out = []
    for item in items:
        plans = item.get("fix", {})
        out.append(Variant(
            rules=_strings(item, "rules"),
            when=tuple(Condition(k, v) for k, v in item.get("when", {}).items()),
            unless=_strings(item, "unless") if "unless" in item else (),
            claim=_text(item, "claim") if "claim" in item else None,
            mechanism=_text(item, "mechanism") if "mechanism" in item else None,
            confirm=_steps(item["confirm"], "confirm") if "confirm" in item else None,
            rule_out=_steps(item["rule_out"], "rule_out") if "rule_out" in item else None,
            targeted=_plan(item, "targeted") if "targeted" in plans else None,
            broader=_plan(item, "broader") if "broader" in plans else None,
            will_change=_strings(item, "will_change") if "will_change" in item else None,
            will_not_fix=_strings(item, "will_not_fix") if "will_not_fix" in item else None,
        ))  # fmt: skip
    return tuple(out)


def _domain(data: Mapping[str, Any]) -> str:
    told = data.get("domain", "")
    if told and told not in DOMAINS:
        raise CatalogError(f"domain {told!r} is none of {', '.join(sorted(DOMAINS))}")
    return str(told)


def parse_mode(data: Mapping[str, Any]) -> FailureMode:
    """One failure mode from a parsed TOML table. Raises CatalogError that names what is missing."""
    family, symptoms = _text(data, "family"), _strings(data, "symptoms")
    if family not in FAMILIES:
        raise CatalogError(f"family {family!r} is none of {', '.join(sorted(FAMILIES))}")
    if unknown := set(symptoms) - SYMPTOMS:
        raise CatalogError(f"symptoms {sorted(unknown)} are none of {', '.join(sorted(SYMPTOMS))}")
    if not data.get("speaks_for"):
        raise CatalogError("a mode that no finding speaks for can never be found: add [[speaks_for]]")
    return FailureMode(
        id=_text(data, "id"),
        title=_text(data, "title"),
        family=family,
        severity=Severity(data["severity"]),
        symptoms=symptoms,
        claim=_text(data, "claim"),
        mechanism=_text(data, "mechanism"),
        speaks_for=_speaks(data["speaks_for"], ROLES),
        speaks_against=_speaks(data.get("speaks_against", ()), COUNTER_ROLES),
        confirm=_steps(data.get("confirm", ()), "confirm"),
        rule_out=_steps(data.get("rule_out", ()), "rule_out"),
        targeted=_plan(data, "targeted"),
        broader=_plan(data, "broader"),
        will_change=_strings(data, "will_change"),
        will_not_fix=_strings(data, "will_not_fix"),
        look_alikes=tuple(LookAlike(_text(x, "mode"), _text(x, "tell")) for x in data.get("look_alikes", ())),
        sources=tuple(Source(_text(x, "title"), _text(x, "where")) for x in data.get("sources", ())),
        anchors=tuple(data.get("anchors", ())),
        domain=_domain(data),
        restated=tuple(re.compile(p, re.IGNORECASE) for p in data.get("restated", ())),
        form_of=tuple(data.get("form_of", ())),
        variants=_variants(data.get("variant", ())),
    )


def load_modes(folder: Traversable) -> dict[str, FailureMode]:
    """Every failure mode below a folder by id. Raises CatalogError that names the file and what is wrong in it."""
    return _parsed((str(path), partial(table, path)) for path in toml_below(folder))


def packed_modes(file: Traversable) -> dict[str, FailureMode]:
    """Every failure mode of the one file of a wheel. Raises CatalogError where it is damaged."""
    try:
        tables = dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise CatalogError(f"{file.name} of the catalog cannot be read ({error}): install traindx anew") from error
    return _parsed((path, partial(dict, mode)) for path, mode in tables.items())


def _parsed(tables: Iterable[tuple[str, Callable[[], dict[str, Any]]]]) -> dict[str, FailureMode]:
    modes: dict[str, FailureMode] = {}
    for path, read in tables:
        try:
            mode = parse_mode(read())
        except (CatalogError, ValueError, KeyError, TypeError) as error:
            raise CatalogError(f"{path}: {error}. See the schema in catalog.py and any file beside it.") from error
        if mode.id in modes:
            raise CatalogError(f"{path}: the id {mode.id!r} is taken already; choose another")
        modes[mode.id] = mode
    return modes


def with_effects(modes: Mapping[str, FailureMode], effects: Mapping[str, Sequence[str]]) -> dict[str, FailureMode]:
    """The modes with what each causes. Raises CatalogError on an id that no mode has."""
    if unknown := {i for effect, causes in effects.items() for i in (effect, *causes)} - modes.keys():
        raise CatalogError(f"effects.toml names {', '.join(sorted(unknown))}, which no failure mode is called")
    if lost := {i for m in modes.values() for i in m.form_of} - modes.keys():
        raise CatalogError(f"form_of names {', '.join(sorted(lost))}, which no mode is called")
    caused = {i: tuple(e for e, causes in effects.items() if i in causes) for i in modes}
    return {i: replace(m, effect=i in effects, causes=caused[i]) for i, m in modes.items()}


@lru_cache(maxsize=1)
def load_catalog() -> Mapping[str, FailureMode]:
    """The failure modes that come with traindx, by id."""
    modes = load_modes(MODES) if MODES.is_dir() else packed_modes(PACKED)
    return with_effects(modes, table(EFFECTS))
