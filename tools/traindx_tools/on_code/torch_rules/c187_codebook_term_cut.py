"""A vector quantizer's terms are cut on the wrong side.

Two distances train a codebook: the codebook term pulls the codes to the encoder's output, |sg(z) - q|, the commitment
term pulls the output to its code, |z - sg(q)|. With q cut in both, the codes never move; with both sides cut a term
trains nothing; without the commitment term the output runs away from its codes. A codebook kept by moving averages
needs the commitment term only and is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.quantizers import Term, looked_up_from, terms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C187",
    name="codebook-term-cut",
    title="A quantizer's term is cut on the wrong side",
    severity=Severity.HIGH,
    sees="The distances between z and q in a quantizer, and on which side each has detach or stop_gradient.",
    matters="The codebook stays at its initialisation, or the encoder runs away from it.",
    alike=("dead codes of a codebook that is trained", "a commitment weight that is too large"),
    confirm=("print(codebook.weight.grad): it is None or 0",),
)
_WORDS = ("detach", "stop_gradient", "sg(")
_AVERAGED = re.compile(
    r"ema|cluster_?size|\.data\b|copy_|lerp_|moving|decay|requires_grad\s*=\s*False|\.add_\(", re.IGNORECASE
)
_BOOK = re.compile(r"book|code|embed|vq|dict|q_?latent|quant", re.IGNORECASE)

_STARTS = re.compile(r"\.data\.(uniform_|normal_|fill_|zero_|copy_)\(")
"""How tables are initialised, which moves no code during training."""
_QUANTIZES = re.compile(r"argmin|codebook|embed|quant")


def check(project: Project) -> Iterator[Finding]:
    """Look at every function with a distance to a quantized value."""
    for file in project.files:
        if not any(w in file.text for w in _WORDS) or not file.mentions(_QUANTIZES):
            continue
        code = syntax(file)
        for function in code.of(ast.FunctionDef):
            found = [t for t in terms(code, function) if code.function(t.node) is function]
            if found:
                yield from _judged(code, function, found)


def _judged(code: Syntax, function: ast.FunctionDef, found: list[Term]) -> Iterator[Finding]:
    dead = next((t for t in found if t.z_cut and t.q_cut), None)
    if dead is not None:
        yield _finding(code, dead, "has both sides cut from the graph: it trains neither codes nor encoder", "both", ())
        return
    owner = code.owner(function)
    around = written(owner) if owner is not None else code.file.text
    averaged = _AVERAGED.search(_STARTS.sub("(", around)) is not None
    learned = any(looked_up_from(code, t.q) for t in found)
    if all(t.q_cut for t in found) and learned and not averaged and not _trained_otherwise(code, function, found):
        term = _meant_for_codes(code, found)
        yield _finding(
            code,
            term,
            f"cuts {written(term.q)}, as every distance here does: the codebook gets no gradient and stays at its "
            "initialisation",
            "codebook",
            _patch(code, term) if len(found) > 1 else (),
        )
    elif all(t.z_cut for t in found) and not averaged and _both_sides(code, function, found):
        yield _finding(
            code,
            found[0],
            f"cuts {written(found[0].z)}, as every distance here does: nothing commits the encoder to its codes",
            "commitment",
            (),
        )


def _both_sides(code: Syntax, function: ast.FunctionDef, found: list[Term]) -> bool:
    """Whether two terms were meant: two distances that are the same one."""
    return len(found) > 1


def _trained_otherwise(code: Syntax, function: ast.FunctionDef, found: list[Term]) -> bool:
    """Whether q also reaches something else uncut: another distance, or an output without the straight-through form."""
    names = {written(t.q) for t in found}
    nodes = {id(n) for t in found for n in below(t.node)}
    for node in below(function):
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            if any(isinstance(p, ast.Name) and p.id in names and len(code.bindings(p)) == 1 for p in parts):
                return True
        given = node.args if isinstance(node, ast.Call) and id(node) not in nodes else []
        used = isinstance(node, ast.Call) and last_name(node.func) in ("mse_loss", "decoder")
        if used and any(isinstance(a, ast.Name) and a.id in names and len(code.bindings(a)) == 1 for a in given):
            return True
    return False


def _meant_for_codes(code: Syntax, found: list[Term]) -> Term:
    """The term whose name or place says that it is the codebook's."""
    for term in found:
        statement = code.statement(term.node)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if target is not None and _BOOK.search(last_name(target)) and "commit" not in last_name(target).lower():
            return term
    return found[-1]


def _patch(code: Syntax, term: Term) -> tuple[Patch, ...]:
    """The cut moved to the other side."""
    node = term.node
    if not (isinstance(node, ast.Call) and len(node.args) >= 2):
        return ()
    cut = next((a for a in node.args[:2] if isinstance(a, ast.Call)), None)
    if cut is None:
        return ()
    stop = last_name(cut.func) == "detach" and not cut.args
    z = f"{written(term.z)}.detach()" if stop else f"{written(cut.func)}({written(term.z)})"
    rest = "".join(f", {written(a)}" for a in (*node.args[2:], *node.keywords))
    made = patching.replace_text(code.file, node, f"{written(node.func)}({written(term.q)}, {z}{rest})",
                                 "cut the encoder's side, so that the codes are trained")  # fmt: skip
    return (made,) if made is not None else ()


def _finding(code: Syntax, term: Term, why: str, kind: str, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(
        f"{code.file.segment(term.node)} at {code.at(term.node)} {why}",
        code.place(term.node),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH if kind != "commitment" else Severity.MEDIUM,
        measured={"kind": kind},
        patch=patch,
    )
