"""Weights of a ZeRO-3 model are read without gathering them.

Under ZeRO stage 3 every rank holds a shard; between forward passes a parameter has size 0. `state_dict()` of the inner
model, or `.data` of a layer, then holds empty tensors: a checkpoint of nothing. `deepspeed.zero.GatheredParameters`, or
the engine's `save_checkpoint` and `save_16bit_model`, put them together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import argument, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C215",
    name="sharded-weights-read",
    title="Weights of a ZeRO-3 model are read without gathering them",
    severity=Severity.INFO,
    sees="torch.save of a state_dict in a DeepSpeed script with stage 3, and nothing that gathers parameters.",
    matters="The saved weights are empty: training is lost.",
    alike=("stages 1 and 2, where every rank holds all weights",),
    confirm=("print({k: v.shape for k, v in torch.load(path).items()})",),
)
_STAGE = re.compile(r"[\"']stage[\"']\s*:\s*3|stage3_|zero3|zero_stage\s*=\s*3")
_GATHERS = re.compile(r"GatheredParameters|save_checkpoint|save_16bit_model|zero_to_fp32|consolidated|gather_16bit")


def check(project: Project) -> Iterator[Finding]:
    """Look at every save of a DeepSpeed project."""
    files = project.files
    if not any("deepspeed" in f.text for f in files) or not any(f.mentions(_STAGE) for f in files):
        return
    if any(f.mentions(_GATHERS) for f in files):
        return
    for file in project.files:
        if "torch.save" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("save"):
            content = argument(call, 0, "obj")
            text = written(code.origin(content)) if isinstance(content, ast.expr) else ""
            if code.qualified(call.func) == "torch.save" and ".state_dict()" in text and "optim" not in text:
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} saves the weights of a model that ZeRO stage 3 has "
                    "sharded, and nothing gathers them: the tensors are empty",
                    code.place(call),
                    file.path,
                    bearing=Bearing.SIGN,
                    measured={"kind": "sharded"},
                )
