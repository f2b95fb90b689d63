"""A file that does not belong to the run never changes a verdict, whatever is in it."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traindx_tools.examine import Examination, examine

FIXTURES = sorted((Path(__file__).parents[1] / "on_code" / "fixtures").rglob("*.py"))
TRAIN = """import torch
torch.manual_seed(0)
net = torch.nn.Linear(8, 1)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(400):
    x = torch.randn(64, 8)
    loss = ((net(x) - x.sum(1, keepdim=True)) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(f"{step:5d} | squared error {loss.item():.6f}")
"""
LOG = "".join(f"{i:5d} | squared error {8.0 * 0.99**i + 0.01:.6f}\n" for i in range(0, 400, 10))


def run_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "out.txt").write_text(LOG)
    return folder


def shown(seen: Examination) -> tuple[object, ...]:
    ranked = tuple((h.mode.id, h.confidence) for h in seen.verdict.hypotheses)
    return seen.verdict.status, ranked, tuple(map(str, seen.findings))


@functools.cache
def alone(folder: Path) -> tuple[object, ...]:
    return shown(examine([run_folder(folder)], root=folder))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(FIXTURES), min_size=1, max_size=6), st.booleans())
def test_faulty_files_beside_a_run_change_nothing(tmp_path_factory: pytest.TempPathFactory, files: set[Path],
                                                  below: bool) -> None:
    folder = run_folder(tmp_path_factory.mktemp("run") / "r")
    for file in files:
        place = folder / ("old" if below else ".") / f"{file.parent.name}_{file.name}"
        place.parent.mkdir(exist_ok=True)
        place.write_text(file.read_text())
    seen = examine([folder], root=folder)
    assert [p.name for p in seen.scope.judged] == ["train.py"]
    assert shown(seen) == alone(tmp_path_factory.getbasetemp() / "alone")


@pytest.mark.slow
def test_all_faulty_files_at_once_change_nothing(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "r")
    for file in FIXTURES:
        (folder / f"{file.parent.name}_{file.name}").write_text(file.read_text())
    assert shown(examine([folder], root=folder)) == alone(tmp_path / "alone")


def test_the_same_files_count_where_the_run_imports_them(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "r")
    faulty = next(f for f in FIXTURES if f.parent.name == "c113" and "bad" in f.name)
    (folder / "steps.py").write_text(faulty.read_text())
    (folder / "train.py").write_text("import steps\n" + TRAIN)
    seen = examine([folder], root=folder)
    assert any(f.rule == "C113" and (f.where.file or "").endswith("steps.py") for f in seen.findings)
