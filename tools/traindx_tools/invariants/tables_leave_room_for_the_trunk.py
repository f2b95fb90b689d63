"""The embeddings and the output projection leave room for the rest.

Counted from the constructors, where every size is known. Small language models with a large vocabulary are often so
and healthy, so by itself this is a remark. Together with outputs that are the same for every input it is the likely
cause: the table learns how often each token occurs, and the trunk that should make the answer depend on the input is
too small to be heard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.parts import Sized, SizedModel
from traindx_tools.program.program import Program
from traindx_tools.rules import Threshold

SHARE = 0.70
SMALLEST = 2000
"""Parameters below which no share says anything: a toy for a test."""
_USUAL = Threshold(SHARE, "of all parameters", "usual language models above 100 M: 5 to 35 %")
RULES = tuple(replace(rule, thresholds={"share": _USUAL}) for rule in pages("recipes", ("C137",)))
_SHOWN = 8


def check(program: Program) -> Iterator[Breach]:
    """Look at every model whose sizes are known."""
    for model in program.sized_models:
        tables = [p for p in model.parts if p.kind == "Embedding"]
        rows = {p.sizes[0] for p in tables}
        chosen = tables + [p for p in model.parts if p.kind == "Linear" and p.sizes[-1] in rows]
        embedded, total = (sum(p.parameters for p in those) for those in (chosen, model.parts))
        if tables and total >= SMALLEST and SHARE * total <= embedded < total:
            yield _breach(model, _largest(chosen), embedded, total)


def _breach(model: SizedModel, chosen: Sequence[Sized], embedded: int, total: int) -> Breach:
    written = ", ".join(f"{p.path} {_sizes(p)} = {p.parameters:,}" for p in chosen[:3])
    return Breach(
        "C137", f"{100 * embedded / total:.0f} % of the {total:,} parameters of {model.name} are embeddings and output "
        f"projection ({written}); the rest of the model has {total - embedded:,}", chosen[0].at, Known.GUESSED,
        measured={"kind": "embeddings", "share": round(embedded / total, 3), "total": total,
                  "embedding_parameters": embedded, "trunk_parameters": total - embedded, "largest": chosen[0].path,
                  "sizes": _sizes(chosen[0]), "parts": tuple(f"{p.path}: {p.kind} {_sizes(p)}: {p.parameters}"
                                                             for p in _largest(model.parts)[:_SHOWN])},
        severity=Severity.LOW if embedded > 0.79 * total else Severity.INFO)


def _largest(parts: Sequence[Sized]) -> list[Sized]:
    return sorted(parts, key=lambda p: -p.parameters)


def _sizes(part: Sized) -> str:
    return " x ".join(map(str, part.sizes))
