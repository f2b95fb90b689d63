"""A data set changes its stored samples while it hands them out.

`self.images[i]` of an array or a tensor is no copy: it is a view of row i, and an element of a list is the very object
in the list. `img -= mean`, `img += noise`, `img.div_(255)` or a function with `out=img` in `__getitem__` therefore
writes into the data set. In the next epoch the sample is taken as the last one left it: scaled twice, then three
times, with the noise and the holes of all epochs so far. A loader whose workers start anew each epoch hides it, since
each of them changes a copy of its own that is thrown away.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.kept_samples import Changed, changed_samples
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import argument
from traindx_tools.rules import Rule

RULE = Rule(
    id="C300",
    name="stored-sample-changed",
    title="A data set changes its stored samples while it hands them out",
    severity=Severity.HIGH,
    sees="A change in place, in __getitem__ or a function that it calls, of a row that the data set keeps.",
    matters="Every epoch scales or disturbs the data further; inputs drift away and evaluation sees other data.",
    alike=("a copy that is changed", "a file that is read anew for each sample", "a change that is made only once"),
    confirm=("a = ds[0][0].clone(); b = ds[0][0]; print((a - b).abs().max())",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every data set of the project."""
    if not any("__getitem__" in f.text for f in project.files):
        return
    look = lookup(project)
    for change in changed_samples(look):
        hidden = _workers_start_anew(look)
        certain = change.certain and not hidden
        name = f"self.{change.attribute}"
        yield RULE.finding(
            f"{change.what} at {change.code.at(change.node)} changes what {name} holds, and not a copy of it: each "
            "time the sample is fetched it is changed once more"
            + (" (workers that start anew in each epoch hide it)" if hidden else ""),
            change.code.place(change.node),
            change.code.file.path,
            bearing=Bearing.CAUSE if certain else Bearing.SIGN,
            severity=None if certain else Severity.MEDIUM,
            measured={"kind": "in place", "attribute": change.attribute},
            patch=_copied(look, change),
        )


def _workers_start_anew(look: Lookup) -> bool:
    """Whether every loader of the project has workers that are not persistent."""
    loaders = [(code, call) for code in look.codes for call in code.calls("DataLoader")]
    for code, call in loaders:
        workers = argument(call, 5, "num_workers")
        if workers is None or argument(call, 99, "persistent_workers") is not None:
            return False
        if (look.number(code, workers) or 0) <= 0:
            return False
    return bool(loaders)


def _copied(look: Lookup, change: Changed) -> tuple[Patch, ...]:
    """A copy where the sample is taken out of the data set."""
    source = change.source
    if source is None or not isinstance(source, ast.Subscript) or change.code.function(source) is not change.fetch:
        return ()
    bound = [v for _, v in change.code.bindings(source.value)]
    text = " ".join(ast.unparse(v) for v in bound)
    statement = change.code.statement(source)
    if not isinstance(statement, ast.Assign) or "[" in ast.unparse(statement.targets[0]):
        return ()
    kind = _method(text)
    return Change(change.code.file, "change a copy").insert(
        source.end_lineno or 0, source.end_col_offset or 0, f".{kind}()").patches() if kind else ()  # fmt: skip


def _method(text: str) -> str:
    if "torch." in text or ".float()" in text:
        return "clone"
    return "copy" if "np." in text or "numpy" in text or ".astype(" in text or text.endswith("]") else ""
