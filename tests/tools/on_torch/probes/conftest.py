"""A training that probes watch through the real attachment, without a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))


class Notes:
    """A recorder that keeps what it is given; of findings at one place, one."""

    rank = 0

    def __init__(self):
        self.findings, self.numbers, self.marks, self.told = [], [], [], ""

    def facts(self, text):
        self.told = text

    def mark(self, kind, **fields):
        self.marks.append((kind, fields))

    def metrics(self, step, values):
        self.numbers.append((step, dict(values)))

    def finding(self, finding):
        if not any(f.rule == finding.rule and f.where.module == finding.where.module for f in self.findings):
            self.findings.append(finding)


class Watching:
    """`with Watching(Probe, ...) as w:` any training; afterwards `w.rules`, `w.findings`, `w.loud`."""

    def __init__(self, *kinds, **options):
        from traindx_tools.on_torch.attachment import Attachment
        from traindx_tools.on_torch.moments import Moments
        from traindx_tools.on_torch.probe import Scene

        self.notes = Notes()
        self.scene = Scene(self.notes, options=options)
        self.probes = [kind(self.scene) for kind in kinds]
        self.moments = Moments(self.probes, self.scene)
        session = SimpleNamespace(asleep=False, at_step=[], note_files=lambda: None)
        self.attachment = Attachment(self.scene, self.moments, session)

    def __enter__(self):
        self.attachment.patch()
        return self

    def __exit__(self, kind, error, trace):
        self.attachment.unpatch()
        if error is not None:
            self.attachment.failed(error)
        self.attachment.finish()
        assert len(self.moments.probes) == len(self.probes), "a probe was switched off"

    @property
    def findings(self):
        return self.notes.findings

    @property
    def rules(self):
        return [f.rule for f in self.findings]

    @property
    def loud(self):
        """What a person is alarmed by: medium and above."""
        return [f"{f.rule} {f.severity.value}: {f.statement}" for f in self.findings if f.severity.rank >= 2]

    def one(self, rule):
        found = [f for f in self.findings if f.rule == rule]
        assert len(found) == 1, f"{rule}: {len(found)} of {self.rules}"
        return found[0]


@pytest.fixture
def watching():
    pytest.importorskip("torch")
    return Watching


@pytest.fixture(autouse=True)
def _seed():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
