"""The forms of the specialists' answers, as their prompts promise them, and the JSON schemas that the API enforces.

What a model writes is bounded here and believed nowhere: `checking.py` decides what of it stands.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Strength = Literal["direct", "circumstantial", "pattern"]
Impact = Literal["critical", "high", "medium", "low"]


class Answer(BaseModel):
    """Base: what is not declared is dropped, what is null takes its default, texts stay as they came."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data


class Item(Answer):
    """One claimed piece of evidence. `place`: a line (`path:LINE`), an output (`P001:LINE`), the id of evidence, or a
    source that was fetched."""

    claim: str
    supports: bool = True
    value: str = ""
    place: str = ""
    quote: str = ""
    failure_mode: str | None = None


class Row(Answer):
    """A documented failure beside a place in this code."""

    finding: str
    url: str = ""
    location: str | None = None
    match: Literal["exact", "partial", "none"] = "none"
    impact: Impact = "low"


class Report(Answer):
    """What a specialist answers."""

    status: Literal["found", "not_found", "needs_data"]
    answer: str = ""
    evidence: tuple[Item, ...] = Field(default=(), max_length=30)
    triangulation: tuple[Row, ...] = Field(default=(), max_length=30)
    unknown: tuple[str, ...] = Field(default=(), max_length=30)


class Rival(Answer):
    """Another cause with the same signs."""

    claim: str
    failure_mode: str | None = None
    would_show: str = ""
    evidence: Item | None = None
    """What speaks for it in this run; a rival that nothing speaks for is only a question to the person."""


class Disproof(Answer):
    """An observation that would disprove the cause."""

    observation: str
    looked_for: bool = False
    found: bool = False
    evidence: Item | None = None
    """What the check showed, also where it found nothing: the output of what was run."""


class Doubt(Answer):
    """What the adversary answers."""

    relation: Literal["supports", "goes_along", "contradicts"]
    why: str = ""
    rivals: tuple[Rival, ...] = Field(default=(), max_length=10)
    disproofs: tuple[Disproof, ...] = Field(default=(), max_length=10)


class Edit(Answer):
    """A change of whole lines, as `model.ProposedEdit` has it."""

    path: str
    line: int = Field(ge=1)
    end_line: int = Field(ge=0)
    original: str = ""
    replacement: str = ""


class Option(Answer):
    """The author's edits for an option; what else is to be known of it was approved."""

    option: Literal["A", "B"]
    edits: tuple[Edit, ...] = Field(default=(), max_length=50)


class Offer(Answer):
    """One way to fix as the lead tells it: edits where the text is certain, else words."""

    option: Literal["A", "B"]
    summary: str
    edits: tuple[Edit, ...] = Field(default=(), max_length=50)
    change: str = ""
    metric: str = ""
    verify: str = ""
    otherwise: str = ""


class Claimed(Answer):
    """The lead's diagnosis."""

    claim: str
    root_cause: str
    why_this_happens: str
    location: str
    failure_mode: str
    severity: Literal["critical", "high", "medium", "low"] = "high"
    evidence: tuple[Item, ...] = Field(default=(), max_length=30)
    will_change: tuple[str, ...] = Field(default=(), max_length=20)
    will_not_fix: tuple[str, ...] = Field(default=(), max_length=20)
    options: tuple[Offer, ...] = Field(default=(), max_length=2)


class Lead(Answer):
    """What the lead answers."""

    status: Literal["diagnosis", "needs_data", "healthy"]
    diagnosis: tuple[Claimed, ...] = Field(default=(), max_length=1)
    evidence: tuple[Item, ...] = Field(default=(), max_length=30)
    """For and against other causes."""
    missing: tuple[str, ...] = Field(default=(), max_length=20)
    questions: tuple[str, ...] = Field(default=(), max_length=10)


class Patch(Answer):
    """What the fix author answers."""

    diagnosis_holds: bool = True
    options: tuple[Option, ...] = Field(default=(), max_length=2)
    refused: tuple[str, ...] = Field(default=(), max_length=20)


class Objection(Answer):
    """What speaks against a patch."""

    kind: str = ""
    blocks: bool = False
    strength: Strength = "pattern"
    claim: str = ""
    place: str = ""
    quote: str = ""
    required_change: str = ""


class Review(Answer):
    """What the fix reviewer answers."""

    verdict: Literal["accept", "revise", "reject"]
    chain: str = ""
    objections: tuple[Objection, ...] = Field(default=(), max_length=20)


A = TypeVar("A", bound=Answer)


def read(form: type[A], answer: dict[str, Any]) -> A | str:
    """The answer in its form, or in one sentence why it is none."""
    try:
        return form.model_validate(answer)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'answer'}: {first['msg']}"


def schema(form: type[Answer]) -> dict[str, Any]:
    """The JSON schema of a form, without references, titles and descriptions of our own."""
    whole = form.model_json_schema()
    shared = whole.pop("$defs", {})
    made: dict[str, Any] = _plain(whole, shared)
    return made


def _plain(node: Any, shared: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(n, shared) for n in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _plain(copy.deepcopy(shared[node["$ref"].rsplit("/", 1)[-1]]), shared)
    left_out = ("title", "description", "default") if "type" in node or "anyOf" in node else ()
    return {k: _properties(v, shared) if k == "properties" else _plain(v, shared)
            for k, v in node.items() if k not in left_out}


def _properties(named: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """A property may be called "title": only what describes a type is left out, never a name."""
    return {name: _plain(node, shared) for name, node in named.items()}
