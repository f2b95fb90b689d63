"""The last batch of an epoch holds a single row, and the model normalises over the batch.

BatchNorm in training mode needs more than one value for each channel: a row alone raises "Expected more than 1 value
per channel when training", at the end of the first epoch. Seen where the number of rows and the batch size are known
and one row is left over, or the batch size is 1. `drop_last=True` leaves it out; feature maps with more than one
position have enough values and are left alone (BatchNorm2d and 3d).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.training import sent_backward
from traindx_tools.on_code.values import Bag, Instance, Tensor, Thing, Value, number, truth

(RULE,) = pages("torch", ("C220",))


def check(project: Project) -> Iterator[Finding]:
    """Look at the loaders of training loops."""
    for loop in project.training_loops:
        layers = _norms(loop)
        for loader in {id(x): x for x in _loaders(loop)}.values() if layers else ():
            given = loader.argument(1, "batch_size")
            rows, size = _rows(loader.argument(0, "dataset")), 1.0 if given is None else number(given)
            if not size:  # read from a configuration, or no batches at all
                continue
            left = 1 if size == 1 else rows % size if rows is not None else None
            if left != 1 or truth(loader.kwargs.get("drop_last")) is not None:
                continue
            event = next((e for e in project.calls("DataLoader") if e.result is loader), None)
            if event is None or "batch_sampler" in loader.kwargs:
                continue
            many = f"{rows:g} rows in batches of {size:g} leave one over" if size > 1 else "the batch size is 1"
            yield RULE.finding(
                f"The training loader at {event.file.path}:{event.line} yields a batch of a single row ({many}), which "
                f"the {layers[0].short} made at {layers[0].site} cannot normalise",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "last batch" if size > 1 else "batch size", "rows": rows, "batch_size": size},
                patch=forms.keyword_given(event.file, event.node, "drop_last", "True", "leave the odd row out")
                if size > 1
                else (),
            )


def _norms(loop: TrainingLoop) -> list[Thing]:
    """BatchNorm1d of the models behind the losses."""
    trained = {m for p in loop.backwards if isinstance(v := sent_backward(p.event), Tensor) for m in v.models}
    calls = [p.event.receiver for p in loop.of("__call__")]
    models = [m for m in calls if isinstance(m, (Thing, Instance)) and id(m) in trained]
    parts = [part for m in models for part in submodules(m) or [m]]
    return [p for p in parts if isinstance(p, Thing) and p.short == "BatchNorm1d"]


def _loaders(loop: TrainingLoop) -> Iterator[Thing]:
    for place in loop.backwards:
        for block in place.loops:
            if isinstance(block.subject, Thing) and block.subject.short == "DataLoader":
                yield block.subject


def _rows(dataset: Value | None) -> float | None:
    """How many rows a data set has, where it is made of arrays of a known shape."""
    if isinstance(dataset, Thing) and dataset.short == "TensorDataset" and dataset.args:
        return next((rows for a in dataset.args if isinstance(a, Tensor) and (rows := _of(a)) is not None), None)
    if isinstance(dataset, Bag):
        return number(dataset.size) if dataset.open else float(len(dataset.items))
    if isinstance(dataset, Instance):
        sizes = {r for v in dataset.attrs.values() if isinstance(v, (Tensor, Bag)) and (r := _of(v)) is not None}
        return sizes.pop() if len(sizes) == 1 else None
    return None


def _of(value: Value) -> float | None:
    if isinstance(value, Tensor):
        return value.shape.dims[0] if value.shape is not None and value.shape.exact and value.shape.dims else None
    return _rows(value)
