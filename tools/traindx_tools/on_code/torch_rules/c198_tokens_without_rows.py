"""Tokens are added and the embedding is not resized.

`tokenizer.add_tokens` and `add_special_tokens` make ids beyond the model's table. The first text with a new token is an
index error (a device-side assert on a GPU). `model.resize_token_embeddings(len(tokenizer))` adds the rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C198",
    name="tokens-without-rows",
    title="Tokens are added and the embedding is not resized",
    severity=Severity.HIGH,
    sees="add_tokens or add_special_tokens beside a pretrained model, and no resize_token_embeddings in the project.",
    matters="Index out of range in the embedding as soon as a new token occurs.",
    alike=("tokens that the vocabulary has already, for which nothing is added",),
    confirm=("print(len(tokenizer), model.get_input_embeddings().num_embeddings)",),
)
_MODELS = re.compile(r"(AutoModel\w*|\w+For\w+|\w+Model|\w+LMHead\w*)\.from_pretrained")
_OWN = re.compile(r"resize_token_embeddings|nn\.Embedding\(\s*len\(|vocab_size\s*=\s*len\(")


def check(project: Project) -> Iterator[Finding]:
    """Look for both halves in one project."""
    files = project.files
    if not any("add_tokens" in f.text or "add_special_tokens" in f.text for f in files):
        return
    if any(f.mentions(_OWN) for f in files):
        return
    if not any("from_pretrained" in f.text and f.mentions(_MODELS) for f in files):
        return
    for file in project.files:
        if "add_tokens" not in file.text and "add_special_tokens" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("add_tokens", "add_special_tokens"):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if owner is None or not call.args or "tok" not in written(owner).lower():
                continue
            yield RULE.finding(
                f"{file.segment(call)} at {code.at(call)} makes new token ids, and resize_token_embeddings is called "
                "nowhere: they lie beyond the model's embedding",
                code.place(call),
                file.path,
                bearing=Bearing.SIGN,
                measured={"kind": "tokens"},
            )
            return
