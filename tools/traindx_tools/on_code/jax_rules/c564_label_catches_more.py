"""Parameters are chosen by a piece of their name, and another part of the model has that piece in its name as well.

`name.startswith("enc")` is meant for `enc_0` or `encoder`, and takes `enclosing_class`, the output layer, too: it is
frozen, or gets the learning rate of the body. `"bn" in name` takes `subnet`, `"enc" in name` takes `sequence_head`, and
`startswith("layer1")` takes `layer10`. A full name, or the piece with the separator behind it (`"enc_"`, `"layer1."`),
takes what is meant.

Only where the parts' names are written, one of them has the piece as a word of its own (or as the beginning of the word
that it stands for), and another has it cut out of a different word: inside of it, or at the beginning of the name of
the output layer. Choices that name the other part as well are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, written
from traindx_tools.on_code.written_parts import Parts, written_parts
from traindx_tools.rules import Rule

RULE = Rule(
    id="C564",
    name="label-catches-more",
    title="A choice by a piece of the name takes another part of the model as well",
    severity=Severity.HIGH,
    sees="Pieces of names that decide what is frozen, decayed or trained at another rate, against the parts' names.",
    matters="The output layer is frozen with the body, or a part is trained at another's learning rate.",
    alike=("a piece that all of the parts share on purpose", "a second condition that lets the other part out"),
    confirm=("print the names of the parameters with the label that each of them gets",),
)  # fmt: skip
_EXPANSIONS = {
    "enc": ("encod",), "dec": ("decod",), "emb": ("embed",), "embed": ("embedding", "embedder"),
    "conv": ("convol", "convnet", "convs"), "disc": ("discrim",), "gen": ("generat",), "pos": ("posit", "posemb"),
    "proj": ("project",), "feat": ("featur",), "lin": ("linear",), "norm": ("normal",), "class": ("classif",),
    "cls": ("clsf",), "back": ("backbone",), "pred": ("predict",), "trans": ("transform", "transit"),
    "res": ("resnet", "resid", "resblock"), "quant": ("quantiz",), "dis": ("discrim",), "vis": ("vision", "visual"),
    "aud": ("audio",), "mem": ("memory",), "agg": ("aggreg",), "pol": ("policy",), "val": ("value",),
    "crit": ("critic",), "act": ("actor",), "temp": ("temporal",), "pool": ("pooling", "pooler"),
}  # fmt: skip
"""Words that a piece is the usual short form of."""
_NAMED = re.compile(r"named_parameters|tree_map_with_path|path_aware_map|flatten_dict|flatten_with_path|map_with_path|"
                    r"traverse_util")  # fmt: skip
_CHOOSES = re.compile(r"requires_grad|set_to_zero|multi_transform|masked|optax\.partition|weight_decay|add_param_group|"
                      r"\"params\"|'params'|stop_gradient|\blr\b")  # fmt: skip
_FROZEN = re.compile(r"froz|freez|fixed|static|zero|locked", re.IGNORECASE)


@dataclass(frozen=True)
class _Piece:
    """A piece of a name that a choice goes by."""

    code: Syntax
    test: ast.expr
    where: Syntax
    constant: ast.Constant
    begins: bool

    @property
    def text(self) -> str:
        """The piece."""
        return str(self.constant.value)


def check(project: Project) -> Iterator[Finding]:
    """Compare every piece that a choice goes by with the names of the parts."""
    if not any(f.mentions(_NAMED) for f in project.files) or not any(f.mentions(_CHOOSES) for f in project.files):
        return
    look = lookup(project)
    parts: list[Parts] | None = None
    for code in look.codes:
        if not code.file.mentions(_NAMED):
            continue
        for piece in _pieces(look, code):
            parts = list(written_parts(look)) if parts is None else parts
            for model in parts:
                found = _judged(piece, model)
                if found is not None:
                    yield found
                    break


def _pieces(look: Lookup, code: Syntax) -> Iterator[_Piece]:
    for call in code.calls("startswith"):
        subject = call.func.value if isinstance(call.func, ast.Attribute) else None
        if subject is not None and call.args and _is_name(code, subject):
            for where, constant in _constants(look, code, call, call.args[0]):
                yield _Piece(code, call, where, constant, begins=True)
    for test in code.of(ast.Compare):
        within = len(test.ops) == 1 and isinstance(test.ops[0], (ast.In, ast.NotIn))
        if within and _is_name(code, test.comparators[0], text=True):
            for where, constant in _constants(look, code, test, test.left):
                yield _Piece(code, test, where, constant, begins=False)


def _is_name(code: Syntax, node: ast.expr, text: bool = False) -> bool:
    """Whether an expression is the name of a parameter; with `text`, surely a text and no tuple of keys."""
    made = code.origin(node)
    shown = written(made)
    if re.search(r"['\"][./]['\"]\.join|keystr\(|^str\(|^f['\"]", shown):
        return any(_NAMED.search(written(up)) for up in code.above(node) if isinstance(up, (*FunctionNode, ast.For))
                   ) or _is_labeller(code, node)  # fmt: skip
    if isinstance(node, ast.Name):
        for up in code.above(node):
            for target, over in _loops(up):
                if "named_parameters(" in written(over) and node.id in written(target).replace("(", "").split(",")[0]:
                    return True
    if isinstance(node, ast.Attribute) and node.attr in ("key", "name"):
        node, text = node.value, False
    first = isinstance(node, ast.Subscript) and written(node.slice) == "0"
    return not text and first and _is_labeller(code, node)


def _loops(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.For):
        yield node.target, node.iter
    for one in getattr(node, "generators", ()):
        yield one.target, one.iter


def _is_labeller(code: Syntax, node: ast.AST) -> bool:
    """Whether a node stands in a function that is mapped over a tree with its paths."""
    for up in code.above(node):
        name = up.name if isinstance(up, FunctionNode) else ""
        holder = code.parent(up) if isinstance(up, ast.Lambda) else None
        uses = [holder] if isinstance(holder, ast.Call) else []
        uses += [c for c in code.of(ast.Call) if name and any(written(a) == name for a in c.args)]
        if any(_NAMED.search(written(c.func)) for c in uses):
            return True
    return False


def _constants(look: Lookup, code: Syntax, test: ast.expr, node: ast.expr) -> Iterator[tuple[Syntax, ast.Constant]]:
    """The texts that a test goes by: a constant, a tuple of them, or the variable of `any(... for k in KEYS)`."""
    if isinstance(node, ast.Name):
        over = next((i for up in code.above(test) for t, i in _loops(up) if written(t) == node.id), None)
        node = over if over is not None else node
    where, made = look.origin(code, node)
    queue: list[ast.expr] = list(made.elts) if isinstance(made, (ast.Tuple, ast.List, ast.Set)) else [made]
    yield from ((where, e) for e in queue if isinstance(e, ast.Constant) and isinstance(e.value, str))


def _judged(piece: _Piece, model: Parts) -> Finding | None:
    text = piece.text
    if not re.fullmatch(r"[A-Za-z]\w*", text) or len(text) < 2:
        return None
    taken = [n for n in model.names if (n.startswith(text) if piece.begins else text in n)]
    meant = [n for n in taken if _is_meant(text, n)]
    other = [n for n in taken if n not in meant and (_is_inside(text, n) or n in model.outputs)]
    others = [n for n in other if not _is_let_out(piece, n)]
    if not meant or not others or len(taken) == len(model.names):
        return None
    return _finding(piece, model, meant, others)


def _is_meant(text: str, name: str) -> bool:
    """Whether a name has the piece as a word, or begins a word that the piece is short for, or ends one."""
    piece, low = re.escape(text.lower()), name.lower()
    if re.search(rf"(^|[_\d]){piece}(s|er|or)?($|_|\d)" if not text[-1].isdigit() else rf"(^|_){piece}s?($|_)", low):
        return True
    if any(re.search(rf"(^|_|\d){w}", low) for w in _EXPANSIONS.get(text.lower(), ())):
        return True
    return re.search(rf"[a-z]{piece}s?($|_)", low) is not None and not text[-1].isdigit() and len(text) > 2


def _is_inside(text: str, name: str) -> bool:
    """Whether the piece lies within another word of a name, with letters on both sides, or is a number cut short."""
    piece, low = re.escape(text.lower()), name.lower()
    if text[-1].isdigit():
        return re.search(rf"(^|_){piece}\d", low) is not None
    return re.search(rf"[a-z]{piece}(?!s?($|_))[a-z]", low) is not None


def _is_let_out(piece: _Piece, name: str) -> bool:
    """Whether the choice names the other part too, or the project sets it apart afterwards."""
    body = piece.code.function(piece.test)
    top = [up for up in piece.code.above(piece.test) if isinstance(piece.code.parent(up), ast.Module)]
    scope = body if body is not None else (top[0] if top else piece.test)
    said = {n.value for n in below(scope) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    again = re.search(rf"\.{re.escape(name)}\b(\.\w+)*(\.parameters\(\)|\.requires_grad)", piece.code.file.text)
    return again is not None or any(s in name and len(s) > len(piece.text) for s in said) or any(
        s in name for s in said & {"head", "out", "cls"})  # fmt: skip


def _finding(piece: _Piece, model: Parts, meant: list[str], others: list[str]) -> Finding:
    frozen = _freezes(piece)
    head = any(o in model.outputs for o in others)
    how = f'begin with "{piece.text}"' if piece.begins else f'have "{piece.text}" in them'
    listed, right = ", ".join(f"`{o}`" for o in others[:3]), ", ".join(f"`{m}`" for m in meant[:3])
    what = "is frozen with them" if frozen else "gets their label, learning rate or weight decay"
    return RULE.finding(
        f"{written(piece.test)[:60]} at {piece.code.at(piece.test)} chooses the parameters whose names {how}: {right}, "
        f"and {listed} of {model.code.at(model.node)} too{', the output layer' if head else ''}, which {what}",
        piece.where.place(piece.constant),
        piece.where.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH if frozen else Severity.INFO,
        measured={"kind": "frozen" if frozen else "label", "caught": others[0], "output": head},
        patch=_patch(piece, model, meant),
    )


def _freezes(piece: _Piece) -> bool:
    """Whether what the choice takes is frozen."""
    test = piece.test
    turned = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn)
    for up in piece.code.above(test):
        if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not):
            turned = not turned
        elif isinstance(up, ast.If) and any(n is test for n in below(up.test)):
            body = " ".join(map(written, up.orelse if turned else up.body))
            return bool(re.search(r"requires_grad = False|requires_grad_\(False\)", body) or _FROZEN.search(body))
        elif isinstance(up, ast.IfExp) and any(n is test for n in below(up.test)):
            return _FROZEN.search(written(up.orelse if turned else up.body)) is not None
        elif isinstance(up, ast.Assign):
            return last_name(up.targets[0]) == "requires_grad" and turned
        elif isinstance(up, ast.Expr) and written(up).endswith(")") and "requires_grad_(" in written(up):
            return turned
        elif isinstance(up, FunctionNode):
            return False
    return False


def _patch(piece: _Piece, model: Parts, meant: list[str]) -> tuple[Patch, ...]:
    """The longest beginning that all of the meant parts share, where no other part has it."""
    if not all(n.startswith(piece.text) for n in meant):
        return ()
    shared = meant[0]
    while not all(n.startswith(shared) for n in meant):
        shared = shared[:-1]
    shared = shared.rstrip("0123456789") if len(meant) > 1 else shared
    same = [n for n in model.names if (n.startswith(shared) if piece.begins else shared in n)]
    if len(shared) <= len(piece.text) or sorted(same) != sorted(meant):
        return ()
    change = Change(piece.where.file, "name what is meant")
    return change.replace(piece.constant, f'"{shared}"').patches()
