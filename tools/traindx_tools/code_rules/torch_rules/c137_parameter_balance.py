"""Nearly all parameters sit in the embeddings and the output projection.

Counted from the constructors, where every size is known. Small language models with a large vocabulary are often so
and healthy, so by itself this is a remark. Together with outputs that are the same for every input it is the likely
cause: the table learns how often each token occurs, and the trunk that should make the answer depend on the input is
too small to be heard.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.code_rules.sizes import Part, parts_of
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, at
from traindx_tools.on_code.values import Instance
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C137",
    name="parameter-balance",
    title="Embeddings hold nearly all parameters",
    severity=Severity.INFO,
    sees="The sizes of all layers of a model: embeddings and the projection back onto the vocabulary beside the rest.",
    matters="A trunk that is small beside its tables can be drowned: the same output for every input.",
    alike=("a small language model with a large vocabulary that trains well", "a class that dominates the data"),
    confirm=("count parameters by part", "feed two different inputs and compare the outputs"),
    thresholds={"share": Threshold(0.70, "of all parameters", "usual language models above 100 M: 5 to 35 %")},
)
SHARE = 0.70
SMALLEST = 2000
"""Parameters below which no share says anything: a toy for a test."""
_SHOWN = 8


def check(project: Project) -> Iterator[Finding]:
    """Look at every model whose sizes are known."""
    inner = {id(a) for owner in project.instances for a in owner.attrs.values() if a is not owner}
    for model in project.instances:
        if not model.klass.info.is_module or id(model) in inner:
            continue
        parts = parts_of(model)
        if parts:
            yield from _findings(project, model, parts)


def _findings(project: Project, model: Instance, parts: list[Part]) -> Iterator[Finding]:
    total = sum(p.parameters for p in parts)
    tables = [p for p in parts if p.kind == "Embedding"]
    rows = {p.sizes.split(" x ")[0] for p in tables}
    outputs = [p for p in parts if p.kind == "Linear" and p.sizes.split(" x ")[-1] in rows]
    chosen = tables + outputs
    embedded = sum(p.parameters for p in chosen)
    if not tables or total < SMALLEST or embedded < SHARE * total or embedded == total:
        return
    largest = max(chosen, key=lambda p: p.parameters)
    written = ", ".join(f"{p.path} {p.sizes} = {p.parameters:,}" for p in _largest(chosen)[:3])
    severity = Severity.LOW if embedded > 0.79 * total else Severity.INFO
    yield RULE.finding(
        f"{100 * embedded / total:.0f} % of the {total:,} parameters of {model.klass.info.name} are embeddings and "
        f"output projection ({written}); the rest of the model has {total - embedded:,}",
        at(largest.site, project),
        largest.site.path,
        bearing=Bearing.SIGN,
        severity=severity,
        measured={
            "kind": "embeddings",
            "share": round(embedded / total, 3),
            "total": total,
            "embedding_parameters": embedded,
            "trunk_parameters": total - embedded,
            "largest": largest.path,
            "sizes": largest.sizes,
            "parts": tuple(f"{p.path}: {p.kind} {p.sizes}: {p.parameters}" for p in _largest(parts)[:_SHOWN]),
        },
    )


def _largest(parts: list[Part]) -> list[Part]:
    return sorted(parts, key=lambda p: -p.parameters)
