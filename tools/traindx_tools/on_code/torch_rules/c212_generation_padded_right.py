"""A batch is padded on the right before generation.

A decoder-only model continues from the last position. Tokenizers of such models pad on the right by default: shorter
prompts of a batch end in padding, and the model continues from there. `padding_side="left"` puts the prompt's end last.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, last_name, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C212",
    name="generation-padded-right",
    title="A batch is padded on the right before generation",
    severity=Severity.INFO,
    sees="A tokenizer call with padding, generate() of a causal model, and padding_side nowhere in the project.",
    matters="Answers to the shorter prompts of a batch are poor: samples, rewards and metrics with them.",
    alike=(
        "encoder-decoder models, which want padding on the right",
        "a tokenizer that is saved with padding on the left",
    ),
    confirm=("generate one prompt alone and in a batch: the answers differ",),
)
_CAUSAL = re.compile(r"LMHeadModel|ForCausalLM")


def check(project: Project) -> Iterator[Finding]:
    """Look for all three in one project."""
    files = project.files
    if not any(".generate(" in f.text and "padding" in f.text for f in files):
        return
    if any("padding_side" in f.text or "Seq2Seq" in f.text for f in files):
        return
    if not any(f.mentions(_CAUSAL) for f in files):
        return
    for file in project.files:
        if ".generate(" not in file.text or "padding" not in file.text:
            continue
        code = syntax(file)
        for call in code.of(ast.Call):
            padding = argument(call, 99, "padding")
            batch = argument(call, 0, "text")
            pads = isinstance(padding, ast.Constant) and padding.value in (True, "longest", "max_length")
            several = batch is not None and not isinstance(batch, ast.Constant)
            if pads and several and "tok" in last_name(call.func).lower() and _generates(code.scope(call)):
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} pads a batch that a causal model continues, and "
                    "padding_side is set nowhere: the default of these tokenizers is the right side",
                    code.place(call),
                    file.path,
                    bearing=Bearing.SIGN,
                    measured={"kind": "side"},
                )
                return


def _generates(scope: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) == "generate" for n in below(scope))
