"""An averaged copy of the network gets the parameters, and never the buffers.

`parameters()` does not hold the running statistics of BatchNorm: they are buffers. A copy whose parameters follow the
network by a moving average, and whose buffers nobody writes, normalises in evaluation mode with the statistics of the
moment it was made, mean 0 and variance 1 for a new network. Its predictions are at chance whatever the decay is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C298",
    name="average-without-buffers",
    title="The averaged network never gets the running statistics",
    severity=Severity.HIGH,
    sees="The update of an averaged copy of a network with BatchNorm, which goes over parameters() alone.",
    matters="The copy evaluates with the running statistics of an untrained network.",
    alike=("an average over state_dict(), which holds the buffers", "weights that are swapped into the live network",
           "a teacher that runs in training mode and keeps its own statistics"),
    confirm=("print(average.bn.running_mean, net.bn.running_mean)",),
)
_AVERAGE = re.compile(r"(^|[^a-z])(ema|avg|swa)|ema([^a-z]|$)|averag|shadow|polyak|smooth|slow|moving", re.IGNORECASE)
_OTHER = re.compile(r"target|tgt|teacher|momentum_enc|key_enc|encoder_k|critic", re.IGNORECASE)
_NORM = re.compile(r"BatchNorm\d?d?\b|SyncBatchNorm|resnet\d+|torchvision\.models|mobilenet|efficientnet|densenet")
_BUFFERS = re.compile(r"buffers\(|running_mean|running_var|update_bn|\.load_state_dict\([^\n]*state_dict\(\)\)|"
                      r"state_dict\(\)\.(items|values|keys)|zip\([^\n]*state_dict|in \w+\.state_dict\(\)|_buffers")


def check(project: Project) -> Iterator[Finding]:
    """Look at every loop over the parameters of two networks."""
    files = [f for f in project.files if ".parameters()" in f.text and "zip(" in f.text]
    if not files or not any(f.mentions(_NORM) for f in project.files):
        return
    for code in (syntax(f) for f in files):
        if code.file.mentions(_BUFFERS):
            continue
        for loop in code.of(ast.For):
            average = _average(code, loop)
            if average is not None and _evaluated(project, average[0]):
                yield _finding(code, loop, *average)


def _evaluated(project: Project, average: str) -> bool:
    """Whether the copy is put in evaluation mode or evaluated: in training mode it keeps statistics of its own."""
    name = re.escape(average.rpartition(".")[2])
    used = re.compile(rf"\b{name}\b[^\n]*\.eval\(\)|"
                      rf"(eval|valid|test|score|accuracy|predict|sampl)\w*\([^)\n]*\b{name}\b")  # fmt: skip
    return any(used.search(f.text) for f in project.files)


def _average(code: Syntax, loop: ast.For) -> tuple[str, str] | None:
    """(the average, the network) of a loop that moves the parameters of the one towards the other's."""
    zipped, target = loop.iter, loop.target
    if not isinstance(zipped, ast.Call) or last_name(zipped.func) != "zip" or len(zipped.args) != 2:
        return None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    owners = [_owner(a) for a in zipped.args]
    names = [last_name(t) for t in target.elts]
    text = " ".join(written(s) for s in loop.body)
    for own, other, name in ((0, 1, names[0]), (1, 0, names[1])):
        moved = re.search(rf"\b{re.escape(name)}(\.data)?\.(lerp_|mul_|copy_)\(|\b{re.escape(name)}(\.data)? = ", text)
        if owners[own] and owners[other] and name and moved:
            around = f"{owners[own]} {getattr(code.owner(loop), 'name', '')} {getattr(code.function(loop), 'name', '')}"
            if _AVERAGE.search(around) and not _OTHER.search(around):
                return owners[own], owners[other]
    return None


def _owner(node: ast.expr) -> str:
    """`net` for `net.parameters()`."""
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters"
    return written(node.func.value) if call else ""  # type: ignore[attr-defined]


def _finding(code: Syntax, loop: ast.For, average: str, network: str) -> Finding:
    copied = f"for averaged, current in zip({average}.buffers(), {network}.buffers()):\n    averaged.copy_(current)"
    return RULE.finding(
        f"The loop at {code.at(loop)} averages only the parameters of {network} into {average}: the buffers of "
        f"BatchNorm (running_mean, running_var) are never copied and stay at their initial values 0 and 1",
        code.place(loop),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "buffers", "average": average},
        patch=Change(code.file, "copy the buffers, too").after(loop, copied).patches(),
    )
