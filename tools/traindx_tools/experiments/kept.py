"""Runs that were made, kept by what went into them: the files that were read, the command, the environment, the change.

A control is run once for all experiments on the same state of the files. What is stored is the trace, not the copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.experiments.place import Prepared
from traindx_tools.experiments.trace import Applied, Curve, Trace
from traindx_tools.finding import Finding
from traindx_tools.unlinked import made, opened

TRACE_FILE, OUTPUT = "trace.json", "output.log"
VERSION = 2


@dataclass(frozen=True)
class Kept:
    """A folder of runs, one folder each, named by a digest of what went into it."""

    folder: Path

    def key(self, fingerprint: str, prepared: Prepared) -> str:
        """The name of a run. `fingerprint`: of the files of the workspace and what else runs depend on."""
        told = [VERSION, fingerprint, prepared.command, sorted(prepared.environment.items()),
                sorted((p, None if c is None else hashlib.sha256(c).hexdigest()) for p, c in prepared.files.items()),
                [c.to_json() for c in prepared.inside], sorted(prepared.probes),
                json.dumps(prepared.options, sort_keys=True, default=str), sys.version, platform.machine()]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def path(self, key: str) -> Path:
        """Where a run of this name lies or will lie."""
        return self.folder / key

    def get(self, key: str) -> Trace | None:
        """The trace of a run; None where there is none, or it was cut off before it was written."""
        try:
            return from_json(json.loads((self.path(key) / TRACE_FILE).read_text("utf-8")), self.path(key))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, trace: Trace) -> Trace:
        """Keeps a run, with its output and records, which are moved here. Raises OSError."""
        home = self.path(key)
        made(home.parent)  # a link on the way is found before anything is removed
        shutil.rmtree(home, ignore_errors=True)
        if (trace.folder / OUTPUT).is_file():
            shutil.move(trace.folder, home)
        home.mkdir(exist_ok=True)
        part = home / f"{TRACE_FILE}.part"
        with opened(part) as file:
            json.dump(to_json(trace), file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(home / TRACE_FILE)
        return replace(trace, folder=home)


def to_json(trace: Trace) -> dict[str, Any]:
    """Plain values; numbers that are not finite as Python's JSON writes them: nobody else reads this file."""
    return {"curves": {n: [c.steps.tolist(), c.values.tolist()] for n, c in trace.curves.items()},
            "ended": trace.ended, "exit_code": trace.exit_code, "stopped": trace.stopped, "error": trace.error,
            "seconds": trace.seconds, "peak_bytes": trace.peak_bytes, "quiet": trace.quiet,
            "originals": list(trace.originals), "parts": dict(trace.parts),
            "changes": {n: [a.times, a.where, a.problem] for n, a in trace.changes.items()},
            "findings": [f.to_json() for f in trace.findings]}


def from_json(data: Mapping[str, Any], folder: Path) -> Trace:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
    curves = {str(n): Curve(np.array(s, dtype=np.float64), np.array(v, dtype=np.float64))
              for n, (s, v) in data["curves"].items()}
    return Trace(folder, curves, bool(data["ended"]), data["exit_code"], str(data["stopped"]), str(data["error"]),
                 float(data["seconds"]), data["peak_bytes"], quiet=float(data["quiet"]),
                 originals=tuple(map(str, data["originals"])),
                 parts={str(k): str(v) for k, v in data.get("parts", {}).items()},
                 changes={str(n): Applied(int(a[0]), str(a[1]), str(a[2])) for n, a in data["changes"].items()},
                 findings=tuple(Finding.from_json(f) for f in data["findings"]))
