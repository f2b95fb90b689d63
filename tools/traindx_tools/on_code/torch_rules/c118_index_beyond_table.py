"""An index that can lie beyond the table it looks up.

Token ids at or above an embedding's `num_embeddings`, class labels at or above the number of logits, and positions at
or above the size of a positional table: a device-side assert on a GPU, reported at some later call, an IndexError on
a CPU. Where the bounds of the index are known the fault is certain. A positional table that is indexed by `arange` of
the input's length, while its size is checked, or used to cut the input, nowhere else in the project, is a likely one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import positions
from traindx_tools.on_code.shapes import literal
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import parameters, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C118",
    name="index-beyond-table",
    title="An index can lie beyond its table",
    severity=Severity.HIGH,
    sees=(
        "The bounds of indices at embeddings and of labels at cross entropy; positional tables without a length check."
    ),
    matters="IndexError, or on a GPU a device-side assert that surfaces at an unrelated call.",
    alike=("out of memory reported by cuBLAS after an assert", "a dtype mismatch"),
    confirm=("CUDA_LAUNCH_BLOCKING=1, or the same batch on the CPU", "assert ids.max() < table.num_embeddings"),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at embeddings and at losses over classes."""
    looked_up = [
        (event, event.receiver, event.args[0])
        for event in project.calls("__call__")
        if isinstance(event.receiver, Thing)
        and event.receiver.type == "torch.nn.Embedding"
        and event.args
        and isinstance(event.args[0], Tensor)
    ]
    known = {id(event.node) for event, _, index in looked_up if "ramp" in index.tags and index.high is not None}
    for event, table, index in looked_up:
        if id(event.node) not in known or index.high is not None:  # the program's own calls say how long inputs are
            yield from _embedding(project, event, table, index)
    for event in project.calls("cross_entropy", "nll_loss"):
        logits, target = event.argument(0, "input"), event.argument(1, "target")
        if (
            isinstance(logits, Tensor)
            and isinstance(target, Tensor)
            and logits.shape is not None
            and logits.shape.exact
        ):
            classes = logits.shape.dims[-1] if len(logits.shape.dims) == 2 else None
            if classes and target.high is not None and target.high >= classes and target.dtype == "int":
                yield RULE.finding(
                    f"The labels at {event.file.path}:{event.line} reach {target.high:g}, the logits have "
                    f"{classes} classes "
                    f"(0 to {classes - 1})",
                    location(event),
                    event.file.path,
                    bearing=Bearing.CAUSE,
                    severity=Severity.CRITICAL,
                    measured={"kind": "labels", "highest": target.high, "classes": classes},
                )


def _embedding(project: Project, event: Event, table: Thing, index: Tensor) -> Iterator[Finding]:
    size = literal(table.argument(0, "num_embeddings"))
    if size is None:
        return
    if index.high is not None and index.high >= size:
        yield RULE.finding(
            f"Indices up to {index.high:g} are looked up at {event.file.path}:{event.line} in the embedding made "
            f"at {table.site} "
            f"with {size} rows (0 to {size - 1})",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            severity=Severity.CRITICAL,
            measured={"kind": "embedding", "highest": index.high, "rows": size},
        )
    elif "ramp" in index.tags and index.high is None and not _mentioned_elsewhere(project, table, size):
        file = project.file(table.site.path)
        made = event if file is None else Event("call", event.name, event.method, table.node, file, event.function)
        yield RULE.finding(
            f"Positions of the input's length are looked up at {event.file.path}:{event.line} in a table of "
            f"{size} rows made at "
            f"{table.site}, and nothing in the project keeps inputs at or below {size}: a longer one is out of range",
            location(made),
            made.file.path,
            bearing=Bearing.SIGN,
            severity=Severity.MEDIUM,
            measured={"kind": "positions", "rows": size, "lookup_line": event.line},
            patch=_cut(project, event, made.file, table),
        )


def _cut(project: Project, event: Event, made: SourceFile, table: Thing) -> tuple[Patch, ...]:
    return positions.cut_where_padded(project.files, made, table.node) if _of_tokens(project, event) else ()


def _of_tokens(project: Project, event: Event) -> bool:
    """Whether the positions are those of the ids that a table beside it looks up, not of frames made of them."""
    for other in project.calls("__call__"):
        ids = other.node.args[0] if isinstance(other.node, ast.Call) and other.node.args else None
        if other.function is None or other.function is not event.function or not isinstance(ids, ast.Name):
            continue
        if isinstance(other.receiver, Thing) and other.receiver.type == "torch.nn.Embedding" and (
            ids.id in parameters(other.function.node)
            and re.search(rf"\b{re.escape(ids.id)}\.(shape|size)\b", written(other.function.node))
        ):
            return True
    return False


def _mentioned_elsewhere(project: Project, table: Thing, size: int) -> bool:
    """Whether the table's size, by its name or number, is used for anything but making the table."""
    node = table.node
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if project.mentions["keyword max_length"] or project.mentions["keyword truncation"]:
        return True
    if isinstance(first, ast.Name):
        return project.mentions[f"name {first.id}"] > 1
    if isinstance(first, ast.Constant):
        return project.mentions[f"int {size}"] > 1
    return True
