"""Files whose mix of values is another one by design: written in the order of the classes, or of one sensor each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d106_other_mix as d106
from traindx_tools.on_data.rules import d142_odd_part as d142

Seen = Callable[[ModuleType, Path], list[Finding]]


def serious(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity.rank >= Severity.MEDIUM.rank]


def files(folder: Path, parts: list[np.ndarray], **fields: list[str]) -> Path:  # type: ignore[type-arg]
    rng = np.random.default_rng(0)
    for i, labels in enumerate(parts):
        rows = [{"label": int(y), "x": float(rng.normal()), **{k: v[i] for k, v in fields.items()}} for y in labels]
        (folder / f"part_{i}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder


COMMON, RARE = np.zeros(200, int), np.arange(200) * 3 // 200


def test_a_file_of_another_mix_is_named(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    parts = [rng.integers(0, 3, 200) for _ in range(5)]
    parts[3] = np.where(rng.random(200) < 0.8, 2, parts[3])
    (one,) = serious(seen_by(d106, files(tmp_path, parts)))
    assert one.measured["shard"] == "part_3.jsonl"


def test_rows_in_the_order_of_their_classes_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    assert serious(seen_by(d106, files(tmp_path, [COMMON, COMMON, COMMON, RARE]))) == []
    assert serious(seen_by(d142, tmp_path)) == []


@pytest.mark.parametrize(("names", "told"), [
    (["RG11", "RG12", "RG13", "RG14", "RG15"], 0), (["a", "a", "a", "a", "a"], 1), (["1", "2", "3", "4", "5"], 1)])
def test_a_file_for_each_sensor_has_a_mix_of_its_own(names: list[str], told: int, tmp_path: Path, seen_by: Seen
                                                     ) -> None:
    rng = np.random.default_rng(2)
    parts = [rng.integers(0, 2, 300) for _ in range(5)]
    parts[1] = np.where(rng.random(300) < 0.7, 0, parts[1])
    assert len(serious(seen_by(d106, files(tmp_path, parts, gauge=names)))) == told
