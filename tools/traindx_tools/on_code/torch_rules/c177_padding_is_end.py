"""The padding token is the end token, and both are left out of the loss.

`tokenizer.pad_token = tokenizer.eos_token` and then `labels[labels == pad_token_id] = -100` (or a collator that does
it, or `ignore_index=pad_token_id`) also removes the real end of every text from the loss: the model never learns to
stop, and generates on until the length limit. Mask by the attention mask, or add a padding token of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C177",
    name="padding-is-end",
    title="The end token is left out of the loss together with the padding",
    severity=Severity.INFO,
    sees="pad_token set to eos_token, and labels that are ignored where they equal the padding token.",
    matters="The model does not learn where a text ends: generation runs to the limit.",
    alike=("a stop token that the generation does not know", "texts that were cut before their end"),
    confirm=("count the end token among the labels that are not -100: it is 0",),
)
_PAD = re.compile(r"pad_token_id|pad_id|pad_token")
_SMALL = 20
"""Files of a project that has one tokenizer."""


def check(project: Project) -> Iterator[Finding]:
    """Look for both halves in one project."""
    same = [
        (code, node) for f in project.files if "eos_token" in f.text for code in [syntax(f)] for node in _equal(code)
    ]
    if not same:
        return
    for file in project.files:
        if "pad" not in file.text:
            continue
        code = syntax(file)
        ignored = list(_ignored(code))
        near = next(((c, at) for c, at in same if _together(project, file, c.file)), None) if ignored else None
        if near is None:
            continue
        other, line = near
        for node, how in ignored:
            yield RULE.finding(
                f"{how} at {code.at(node)} leaves the padding token out of the loss, and {other.at(line)} makes it the "
                "end token: no text's end is ever learned",
                code.place(node),
                file.path,
                bearing=Bearing.SIGN,
                measured={"kind": "end", "pad_line": getattr(line, "lineno", 0)},
            )


def _together(project: Project, one: SourceFile, other: SourceFile) -> bool:
    """Whether two files are about the same tokenizer: in a large project only where one of them names the other."""
    if one is other or len(project.files) <= _SMALL:
        return True
    stems = [PurePath(f.path).stem for f in (one, other)]
    return re.search(rf"\b{re.escape(stems[1])}\b", one.text) is not None or (
        re.search(rf"\b{re.escape(stems[0])}\b", other.text) is not None)  # fmt: skip


def _equal(code: Syntax) -> Iterator[ast.AST]:
    for node in code.of(ast.Assign):
        ends = isinstance(node.value, ast.Attribute) and node.value.attr in ("eos_token", "eos_token_id")
        if ends and any(last_name(t) in ("pad_token", "pad_token_id") for t in node.targets):
            yield node


def _ignored(code: Syntax) -> Iterator[tuple[ast.AST, str]]:
    for node in code.of(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and code.number(node.value) == -100 and _is_padding(target.slice):
            yield node, f"{written(target)} = -100"
    for call in code.calls("masked_fill", "masked_fill_", "where"):
        if any(_is_padding(a) for a in call.args) and any(code.number(a) == -100 for a in call.args):
            yield call, code.file.segment(call)
    for call in code.calls("DataCollatorForLanguageModeling"):
        mlm = argument(call, 1, "mlm")
        if isinstance(mlm, ast.Constant) and mlm.value is False:
            yield call, "DataCollatorForLanguageModeling(mlm=False)"
    for keyword in code.of(ast.keyword):
        if keyword.arg == "ignore_index" and _PAD.search(written(keyword.value)):
            yield keyword.value, f"ignore_index={written(keyword.value)}"


def _is_padding(node: ast.AST) -> bool:
    """Whether it compares something with the padding token."""
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and any(
        _PAD.search(written(c)) for c in (node.left, *node.comparators))  # fmt: skip
