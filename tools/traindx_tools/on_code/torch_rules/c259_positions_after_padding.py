"""RoBERTa's table of positions has no rows for the offset of its position ids.

RoBERTa and its kin number positions from `padding_idx + 1`: with the usual padding index 1 a sequence of L tokens uses
the rows 2 to L + 1. A table of `max_position_embeddings = L` rows is too short by `padding_idx + 1`, and any sequence
that comes near the limit indexes beyond it: an IndexError on the CPU, a device-side assert on the GPU. The published
models have 514 rows for 512 tokens.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, syntax, written
from traindx_tools.on_code.values import whole
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C259",
    name="positions-after-padding",
    title="The table of positions is too short by the padding offset",
    severity=Severity.HIGH,
    sees="max_position_embeddings of a model whose positions start after the padding index, beside the longest input.",
    matters="Sequences of full length index beyond the table.",
    alike=("BERT, whose positions start at 0", "a limit for tokens that leaves the offset free"),
    confirm=("print(config.max_position_embeddings, config.pad_token_id, longest)",),
    thresholds={"offset": Threshold(2, "rows", "padding_idx + 1 with the usual padding index 1")},
)
_KIN = ("RobertaConfig", "XLMRobertaConfig", "CamembertConfig", "XLMRobertaXLConfig", "RobertaPreLayerNormConfig",
        "LongformerConfig", "MPNetConfig", "XmodConfig", "Data2VecTextConfig", "IBertConfig")  # fmt: skip
_LIMITS = ("max_length", "model_max_length", "max_len", "max_seq_length", "max_seq_len", "block_size", "max_tokens",
           "seq_len", "sequence_length")  # fmt: skip
_NAMES = re.compile(r"^(max|seq|block|context)\w*(len|length|tokens|size)$|^limit$", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every configuration of such a model."""
    files = [f for f in project.files if any(f"{k}(" in f.text for k in _KIN)]
    if not files:
        return
    limits = [limit for f in project.files for limit in _limits(syntax(f))]
    for code in (syntax(f) for f in files):
        for call in code.calls(*_KIN):
            rows = argument(call, 99, "max_position_embeddings")
            if rows is None:
                continue
            text, size = written(code.origin(rows)), code.number(rows)
            offset = (whole(code.number(argument(call, 99, "pad_token_id"))) or 1) + 1
            for limit_text, limit in limits:
                same = text == limit_text and not isinstance(code.origin(rows), ast.BinOp)
                short = size is not None and limit is not None and limit <= size < limit + offset
                if same if size is None or limit is None else short:
                    yield _finding(code, call, rows, limit_text, offset)
                    break


def _limits(code: Syntax) -> Iterator[tuple[str, float | None]]:
    """Text and number of what limits the length of inputs."""
    for call in code.of(ast.Call):
        for keyword in call.keywords:
            if keyword.arg in _LIMITS:
                yield written(code.origin(keyword.value)), code.number(keyword.value)
    for node in code.of(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Name) and _NAMES.search(target.id):
            yield written(code.origin(node.value)), code.number(node.value)


def _finding(code: Syntax, call: ast.Call, rows: ast.expr, limit: str, offset: int) -> Finding:
    change = Change(code.file, "leave rows for the offset")
    return RULE.finding(
        f"max_position_embeddings={written(rows)} at {code.at(rows)} equals the longest input ({limit}): position ids "
        f"of this model start at padding_idx + 1, so the table is {offset} rows too short and needs length + {offset}",
        code.place(rows),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "offset", "offset": offset},
        patch=change.replace(rows, f"{written(rows)} + {offset}").patches(),
    )
