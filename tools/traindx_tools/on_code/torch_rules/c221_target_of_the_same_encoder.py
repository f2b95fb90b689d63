"""A self-supervised target comes from the trained encoder and is not cut from the graph.

In SimSiam and BYOL the prediction of one view is compared with the encoding of the other, which is a target: without
`detach()` both sides move towards each other and the encoder collapses to one constant output within some hundred
steps, with a loss at its best value (Chen and He 2021, section 4.1: accuracy at chance). Seen where one side of a
cosine similarity or squared error is a further module's output of an encoding, and the other side is an encoding by the
same module, neither cut in the loss nor computed without gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.bootstrapping import suspended
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C221",
    name="target-of-the-same-encoder",
    title="A self-supervised target stays in the graph",
    severity=Severity.HIGH,
    sees="A similarity of predictor(encoder(a)) and encoder(b) in which the second is not detached.",
    matters="The encoder collapses: every input gets the same embedding, and the loss looks perfect.",
    alike=("a contrastive loss with negatives, which needs both gradients", "a target network without gradients"),
    confirm=("print(z.std(0).mean()) of normalised embeddings: it falls from 1 / sqrt(d) to 0",),
)
_COMPARES = frozenset({"cosine_similarity", "mse_loss", "CosineSimilarity", "MSELoss", "smooth_l1_loss"})
_CUTS = ("detach", "stop_gradient", ".data", "no_grad")
_NEGATIVES = ("temperature", "tau", "InfoNCE", "info_nce", "nt_xent", "NTXent", "negatives")


def check(project: Project) -> Iterator[Finding]:
    """Look at every comparison of two outputs."""
    if not any("backward(" in f.text or "training_step" in f.text for f in project.files):
        return
    for file in project.files:
        if "torch" not in file.text or not any(c in file.text for c in _COMPARES):
            continue
        if any(n in file.text for n in _NEGATIVES):
            continue
        code = syntax(file)
        found = [(call, pair) for call in code.of(ast.Call)
                 if (pair := _pair(code, call)) is not None and not suspended(code, call)]  # fmt: skip
        for call, pair in found:
            together = [p for c, p in found if code.statement(c) is code.statement(call)]
            yield RULE.finding(
                f"{file.segment(call)} at {code.at(call)} compares a prediction with {written(pair)}, an output of the "
                "trained encoder, and does not detach it: both sides move, and a constant output is the optimum",
                code.place(call),
                file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "attached", "target": written(pair)},
                patch=graph.cut(file, pair) if len(together) == 1 else graph.all_cut(file, together),
            )


def _pair(code: Syntax, call: ast.Call) -> ast.expr | None:
    """The target of a comparison of p = predictor(z1) with z2, where z1 and z2 come from one module."""
    if len(call.args) < 2 or not _compares(code, call):
        return None
    for prediction, target in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
        first, second = _made(code, prediction), _made(code, target)
        inner = _made(code, first.args[0]) if first is not None and len(first.args) == 1 else None
        if first is None or second is None or inner is None or not isinstance(target, (ast.Name, ast.Call)):
            continue
        same = written(inner.func) == written(second.func) and written(inner.args[0]) != written(second.args[0])
        if same and written(first.func) != written(second.func) and not _cut(code, target, second):
            return target
    return None


def _made(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The call of a module with one input that a value is: `self.encoder(x)`, `model.predictor(z)`."""
    origin = code.origin(node)
    if not isinstance(origin, ast.Call) or len(origin.args) != 1 or origin.keywords or code.qualified(origin.func):
        return None
    return origin if isinstance(origin.func, (ast.Name, ast.Attribute)) else None


def _compares(code: Syntax, call: ast.Call) -> bool:
    """Whether it is a similarity or distance, also by a helper of the file that does not cut."""
    name = last_name(call.func)
    if name in _COMPARES:
        return True
    maker = code.origin(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
    if isinstance(maker, ast.Call) and last_name(maker.func) in _COMPARES:
        return True
    helpers = code.functions(name)
    text = written(helpers[0]) if len(helpers) == 1 and len(helpers[0].args.args) <= 3 else ""
    return any(f"{c}(" in text for c in _COMPARES) and not any(c in text for c in _CUTS) and len(text) < 600


def _cut(code: Syntax, target: ast.expr, made: ast.Call) -> bool:
    text = written(target) + written(made)
    return any(c in text for c in _CUTS) or suspended(code, made)
