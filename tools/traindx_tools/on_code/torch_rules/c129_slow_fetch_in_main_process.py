"""Samples are fetched one after the other in the training process.

With `num_workers=0` the loader calls `__getitem__` between two steps. Where that waits (a network or storage round
trip) or decodes (images, audio), the accelerator idles for batch_size times its duration. Workers fetch the next
batches meanwhile. What only reads or decodes is a remark: how long it takes beside a step is not in the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import data
from traindx_tools.on_code.trace import Place, walk
from traindx_tools.on_code.values import Const, Instance, Thing, number
from traindx_tools.rules import Rule

RULE = Rule(
    id="C129",
    name="slow-fetch-in-main-process",
    title="Slow samples are fetched without workers",
    severity=Severity.MEDIUM,
    sees="A DataLoader without workers over a data set whose __getitem__ waits, reads files or decodes.",
    matters="Most of each step is spent waiting for data.",
    alike=("a slow device-to-host copy", "a synchronising call in every step"),
    confirm=("log data time beside step time", "num_workers=4 and compare the steps a second"),
)
_WAITS = {
    "time.sleep": "waits",
    "requests.get": "reads from the network",
    "urllib.request.urlopen": "reads from the network",
    "PIL.Image.open": "decodes an image",
    "cv2.imread": "decodes an image",
    "torchaudio.load": "decodes audio",
    "librosa.load": "decodes audio",
    "soundfile.read": "decodes audio",
    "torchvision.io.read_image": "decodes an image",
    "numpy.load": "reads a file",
    "torch.load": "reads a file",
    "builtins.open": "reads a file",
    "decord.VideoReader": "decodes a video",
    "imageio.imread": "decodes an image",
    "h5py.File": "reads a file",
    "boto3.client": "reads from the network",
    "httpx.get": "reads from the network",
    "skimage.io.imread": "decodes an image",
}

_IDLE = ("waits", "reads from the network")
"""What leaves the processor idle, so that more workers than cores pay."""


def check(project: Project) -> Iterator[Finding]:
    """Look at loaders without workers."""
    made = [
        e
        for e in project.calls("DataLoader")
        if isinstance(e.result, Thing) and e.name == "torch.utils.data.DataLoader"
    ]
    waiting = _waiting(project) if made else []
    for event in made:
        loader = event.result
        assert isinstance(loader, Thing)
        workers = loader.kwargs.get("num_workers", loader.args[5] if len(loader.args) > 5 else Const(0))
        dataset = loader.argument(0, "dataset")
        if number(workers) != 0 or not isinstance(dataset, Instance):
            continue
        slow = _slow(waiting, dataset)
        if slow is not None:
            at = slow.event
            yield RULE.finding(
                f"The loader at {event.file.path}:{event.line} has no workers, and each sample {_WAITS[at.name]} "
                f"({at.file.segment(at.node)} at {at.file.path}:{at.line}): samples are fetched one after the "
                "other between steps",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                severity=None if _WAITS[at.name] in _IDLE else Severity.INFO,
                measured={"kind": "fetch", "call": at.name, "call_line": at.line},
                patch=data.with_workers(event.file, event.node, _WAITS[at.name] in _IDLE),
            )


def _waiting(project: Project) -> list[Place]:
    """Every slow call."""
    return [p for root in project.roots for p in walk(root, _METHODS) if p.event.name in _WAITS]


def _slow(waiting: list[Place], dataset: Instance) -> Place | None:
    """A slow call below the data set's own __getitem__ or __iter__."""
    names = {m.info.node for n in ("__getitem__", "__iter__") if (m := dataset.klass.info.method(n)) is not None}
    for place in waiting:
        if any(b.kind == "call" and b.function and b.function.node in names for b in place.path):
            return place
    return None


_METHODS = frozenset(name.rpartition(".")[2] for name in _WAITS)
