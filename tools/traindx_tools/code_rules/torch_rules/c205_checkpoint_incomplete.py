"""A checkpoint that is resumed from lacks a part of the state.

The script saves a step or an epoch and goes on from it, and what it saves has no optimizer state, or no average of the
weights (EMA) although one is kept: after a resumption Adam's moments are empty, the average starts from scratch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, syntax, written

(RULE,) = pages("state", ("C205",))
_POSITION = re.compile(r"epoch|step|iteration", re.IGNORECASE)
_OPTIMIZER = re.compile(r"optim|\bopt|\bo\b", re.IGNORECASE)
"""Of the keys and of what is saved under them: `"o": opt.state_dict()`."""
_AVERAGE = re.compile(
    r"\bema\w*\s*=\s*(EMA|ExponentialMovingAverage|AveragedModel|ModelEma)|\bself\.ema\w*\s*=\s*\w*(EMA|Ema|Averag)"
)

_GENERATORS = re.compile(r"rng_state|get_state\(|random_states|set_state|manual_seed\([^)]*(epoch|step)", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every dictionary that is saved."""
    texts = "\n".join(f.text for f in project.files if "torch" in f.text)
    if "torch.load" not in texts or not re.search(r"\[[\"'](epoch|step|iteration|global_step)[\"']\]", texts):
        return
    saved = [
        (code, c, t) for f in project.files if "torch.save" in f.text for code in [syntax(f)] for c, t in _saved(code)
    ]
    everything = " ".join(written(t) for _, _, t in saved)
    for code, call, table in saved:
        keys = [str(k.value) for k in table.keys if isinstance(k, ast.Constant)]
        if not any(_POSITION.search(k) for k in keys) or any(k is None for k in table.keys):
            continue
        if "state_dict" not in written(table):
            continue  # a schedule's or a sampler's own file
        if not _OPTIMIZER.search(everything) and "optim" in code.file.text:
            yield _finding(code, call, "the optimizer's state", "optimizer")
        if code.file.mentions(_AVERAGE) and "ema" not in everything.lower():
            yield _finding(code, call, "the average of the weights (EMA)", "ema")
        if "optim" in everything.lower() and "shuffle=True" in texts and not _GENERATORS.search(texts):
            yield _finding(code, call, "the state of the random generators: the order of the data begins anew", "rng",
                           Severity.INFO)


def _saved(code: Syntax) -> Iterator[tuple[ast.Call, ast.Dict]]:
    for call in code.calls("save"):
        content = argument(call, 0, "obj")
        made = code.origin(content) if content is not None else None
        if code.qualified(call.func) == "torch.save" and isinstance(made, ast.Dict):
            yield call, made


def _finding(code: Syntax, call: ast.Call, what: str, kind: str, severity: Severity | None = None) -> Finding:
    return RULE.finding(
        f"The checkpoint saved at {code.at(call)} holds a position to resume from and not {what}",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=severity,
        measured={"kind": kind},
    )
