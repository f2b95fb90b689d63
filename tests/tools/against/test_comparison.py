"""A broken run beside one that works: where they part, what differs, and what could explain it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from traindx_tools.against import Comparison, compare
from traindx_tools.against.code import code_differences
from traindx_tools.against.families import family_of
from traindx_tools.against.metrics import metric_differences
from traindx_tools.against.picture import draw_comparison
from traindx_tools.against.settings import same, setting_differences
from traindx_tools.against.versions import versions_in
from traindx_tools.examine import examine
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.plots.picture import drawn

CODE = """\
import torch
from torch import nn

# a comment
LR = 1e-3


def train(data):
    net = nn.Linear(3, 4)
    opt = torch.optim.Adam(net.parameters(), lr=LR)
    for x, y in data:
        opt.zero_grad()
        nn.CrossEntropyLoss()(net(x), y).backward()
        opt.step()


class Tracker:
    def update(self, value):
        self.value = value
"""


def curve(seed: int, steps: int = 200, noise: float = 0.03) -> list[float]:
    drawn = random.Random(seed)
    return [(0.3 + 3.7 * 2.718 ** (-s / 40)) * (1 + drawn.gauss(0, noise)) for s in range(steps)]


def series(values: list[float], name: str = "loss", every: int = 10, first: int = 0) -> Series:
    n = len(values)
    steps = np.arange(n, dtype=np.float64) * every + first
    return Series(name, name, "train", "log", np.array(values, dtype=np.float64), steps, np.full(n, np.nan),
                  np.full(n, np.nan), np.arange(1, n + 1))


def parting(here: list[float], there: list[float]) -> float | None:
    (found,), _, _ = metric_differences(Run((series(here),)), Run((series(there),)))
    return found.step


# metrics


@pytest.mark.parametrize("seed", range(8))
def test_two_seeds_of_one_training_do_not_part(seed: int) -> None:
    assert parting(curve(seed), curve(100 + seed)) is None
    assert parting(curve(seed, 12), curve(100 + seed, 12)) is None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("fault", "about"), [
    (lambda v, i: v * 1.02 ** max(0, i - 60), (600, 900)), (lambda v, i: v if i < 120 else v + 0.5, (1180, 1230)),
    (lambda v, i: v if i < 100 else 2.3, (980, 1030)), (lambda v, i: v if i < 77 else float("nan"), (770, 770)),
    (lambda v, i: v if i < 77 else float("inf"), (770, 770)),
])
def test_a_fault_parts_them_where_it_begins(seed: int, fault: Callable[[float, int], float],
                                            about: tuple[int, int]) -> None:
    here = [fault(v, i) for i, v in enumerate(curve(seed))]
    step = parting(here, curve(100 + seed))
    assert step is not None
    assert about[0] <= step <= about[1]


def test_a_spike_that_passes_does_not_part_them() -> None:
    here = curve(1)
    here[50] *= 20
    assert parting(here, curve(2)) is None


def test_equal_runs_are_told_to_be_equal_until_they_are_not() -> None:
    good = curve(1)
    bad = [v if i < 80 else v * 1.5 for i, v in enumerate(good)]
    (found,), _, _ = metric_differences(Run((series(bad),)), Run((series(good),)))
    assert (found.step, found.same_until) == (800, 790)
    assert "equal digit for digit until step 790, then parts at step 800" in found.statement()
    (found,), _, _ = metric_differences(Run((series(good),)), Run((series(good),)))
    assert (found.step, found.same_until) == (None, 1990)


def test_other_intervals_are_compared_between_records() -> None:
    good = [1 / (1 + s / 100) for s in range(0, 2000, 25)]
    bad = [1 / (1 + s / 100) if s < 1000 else 3.0 for s in range(7, 1900, 10)]
    (found,), _, _ = metric_differences(Run((series(bad, every=10, first=7),)), Run((series(good, every=25),)))
    assert found.step is not None
    assert 980 <= found.step <= 1020


def test_metrics_of_one_run_alone_are_named() -> None:
    shared, here, there = metric_differences(Run((series([1, 2, 3]), series([1, 2, 3], "kl"))),
                                             Run((series([1, 2, 3], "reward"), series([1.0], "loss"))))
    assert (shared, here, there) == ([], ["kl"], ["reward"])


@given(st.lists(st.floats(width=32), min_size=1, max_size=30), st.lists(st.floats(width=32), min_size=1, max_size=30))
@hypothesis_settings(max_examples=50, deadline=None)
def test_any_values_are_compared(here: list[float], there: list[float]) -> None:
    shared, _, _ = metric_differences(Run((series(here),)), Run((series(there),)))
    for found in shared:
        found.statement()
        assert found.step is None or found.step in series(here).step


@pytest.mark.slow
@given(st.lists(st.floats(), min_size=3, max_size=12), st.lists(st.floats(), min_size=3, max_size=12))
@hypothesis_settings(max_examples=12, deadline=None)
def test_any_values_are_drawn_or_left_out(tmp_path_factory: pytest.TempPathFactory, here: list[float],
                                          there: list[float]) -> None:
    one, other = Run((series(here),)), Run((series(there),))
    out = tmp_path_factory.mktemp("pictures") / "comparison.png"
    made = drawn(lambda: draw_comparison(metric_differences(one, other)[0], one, other, out))
    assert made == out
    assert out.read_bytes().startswith(b"\x89PNG")


def test_without_a_metric_in_common_there_is_no_picture(tmp_path: Path) -> None:
    one, other = Run((series([1, 2, 3], "kl"),)), Run((series([1, 2, 3], "reward"),))
    assert draw_comparison(metric_differences(one, other)[0], one, other, tmp_path / "x.png") is None


# settings, versions, code


def test_values_that_mean_the_same_do_not_differ() -> None:
    assert same("3e-4", "0.0003")
    assert same("True", "true")
    assert same("nan", "NaN")
    assert not same("1e-3", "1e-2")
    here = {"optim.lr": "1e-2", "fp16": True, "a": 1, "b": None}
    found = setting_differences(here, {"optim.lr": 0.001, "fp16": "true", "c": "x", "b": None})
    assert [d.statement() for d in found] == [
        "optim.lr: 1e-2 here, 0.001 there (10 times as much)", "a: 1 here, not set there", "c: not set here, x there"]


@pytest.mark.parametrize(("key", "family"), [
    ("lr", "learning rate"), ("learning_rate", "learning rate"), ("max_lr", "learning rate"),
    ("warmup_steps", "warm-up"), ("lr_scheduler_type", "schedule"), ("scheduler", "schedule"), ("bf16", "precision"),
    ("torch_dtype", "precision"),
    ("max_grad_norm", "clipping"), ("gradient_accumulation_steps", "accumulation"), ("batch_size", "batch size"),
    ("per_device_train_batch_size", "batch size"), ("output_dir", "label"), ("run_name", "label"), ("seed", "seed"),
    ("weight_decay", "regularisation"), ("hidden_size", "model"), ("num_train_epochs", "length"),
    ("max_steps", "length"),
    ("num_workers", "workers"), ("commitment_weight", "loss"), ("train_data_path", "data"), ("adam_beta2", "optimizer"),
    ("logging_steps", "label"), ("resume_from_checkpoint", "checkpoint"), ("frobnicate", "other"),
])
def test_settings_belong_to_families(key: str, family: str) -> None:
    assert family_of(key).name == family


@pytest.mark.parametrize(("text", "expected"), [
    ("PyTorch version: 2.1.0+cu121\nCUDA Version: 12.1\n", {"torch": "2.1.0+cu121", "cuda": "12.1"}),
    ("torch==2.3.1 transformers==4.40.0", {"torch": "2.3.1", "transformers": "4.40.0"}),
    ('{"transformers_version": "4.41.2"}', {"transformers": "4.41.2"}),
    ("Python 3.10.12 | torch 2.4.0 | cuDNN version 8.9", {"python": "3.10.12", "torch": "2.4.0", "cudnn": "8.9"}),
    ("torch.__version__ = 2.0.1", {"torch": "2.0.1"}),
    ("GPU 0: NVIDIA A100-SXM4-80GB, 80 GiB", {"device": "NVIDIA A100-SXM4-80GB"}),
    ("step 10 loss 2.31 torch 0\nnumpy loss 1.5 cuda:0 2.5", {}),
    ("/usr/lib/python3.10/site-packages/torch/nn/modules.py:1.2", {}),
])
def test_versions_are_read_from_what_a_run_prints(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    (tmp_path / "log.txt").write_text(text)
    assert versions_in([tmp_path / "log.txt"]) == expected


def test_versions_are_read_from_pins(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# pinned\nfoo-bar==1.2.3\nTorch==2.2.0  # gpu\nloose>=1\n")
    (tmp_path / "binary.txt").write_bytes(b"torch==2.0.0\0")
    assert versions_in(sorted(tmp_path.iterdir())) == {"foo-bar": "1.2.3", "torch": "2.2.0"}


def code_of(tmp_path: Path, here: str, there: str) -> list[tuple[str, tuple[str, ...]]]:
    for name, text in (("here", here), ("there", there)):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "train.py").write_text(text)
    return [(d.name, d.functions) for d in code_differences([tmp_path / "here" / "train.py"],
                                                            [tmp_path / "there" / "train.py"])]


@pytest.mark.parametrize(("old", "new", "functions"), [
    ("        opt.zero_grad()\n", "", ("train",)), ("# a comment", "# another", ()),
    ("LR = 1e-3", "LR = 1", ("the top level",)), ("self.value = value", "self.value += value", ("Tracker.update",)),
    ("class Tracker:", "class Tracker(dict):", ("Tracker",)),
    ("import torch\n", "import torch (\n", ("the whole file (it cannot be parsed)",)),
])
def test_code_differs_in_functions(tmp_path: Path, old: str, new: str, functions: tuple[str, ...]) -> None:
    assert old in CODE
    assert code_of(tmp_path, CODE.replace(old, new), CODE) == [("train.py", functions)]
    assert code_of(tmp_path, CODE, CODE) == []


# together


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name, seed in (("good", 1), ("bad", 2)):
        folder = tmp_path / name
        folder.mkdir()
        values = curve(seed)
        if name == "bad":
            values = [v if i < 60 else v * 1.02 ** (i - 60) if i < 140 else float("nan") for i, v in enumerate(values)]
        rate = {"good": 0.001, "bad": 0.01}[name]
        lines = [f"PyTorch version: {'2.3.0' if name == 'bad' else '2.1.0'}"]
        lines += [f"step {10 * i} loss {v:.4f} lr {rate}" for i, v in enumerate(values)]
        (folder / "log.txt").write_text("\n".join(lines) + "\n")
        (folder / "config.yaml").write_text(f"optim: {{lr: {rate}}}\nname: {name}\nbatch_size: 64\nseed: {seed}\n")
        (folder / "train.py").write_text(CODE)
    return tmp_path


def compared(runs: Path) -> Comparison:
    return compare(examine([runs / "bad"]), examine([runs / "good"]))


def test_the_learning_rate_explains_the_divergence(runs: Path) -> None:
    found = compared(runs)
    assert found.parting is not None
    assert {m.name: m.step for m in found.metrics}["loss"] is not None
    first = found.ranked[0]
    assert (first.kind, first.undo) == ("setting", "set optim.lr to 0.001")
    assert "10 times as much" in first.statement
    kinds = [e.statement.split(":")[0] for e in found.ranked]
    assert kinds.index("torch") < kinds.index("name")
    assert kinds[-1] == "name"
    assert not found.code
    json.dumps(found.to_json(), allow_nan=False)


def test_code_that_a_finding_blames_comes_first(runs: Path) -> None:
    (runs / "bad" / "train.py").write_text(CODE.replace("        opt.zero_grad()\n", ""))
    first = compared(runs).ranked[0]
    assert (first.kind, first.undo) == ("code", "take train.py from the working run")
    assert "C101 is on a line that differs" in first.why[0]


def test_findings_that_the_working_run_shows_too_are_told(runs: Path) -> None:
    for name in ("good", "bad"):
        (runs / name / "train.py").write_text(CODE.replace("        opt.zero_grad()\n", ""))
    assert any(r.startswith("the run that works shows C101 too") for r in compared(runs).remarks)


def test_equal_runs_leave_nothing_to_explain(runs: Path) -> None:
    for name in ("log.txt", "config.yaml", "train.py"):
        (runs / "bad" / name).write_text((runs / "good" / name).read_text())
    found = compared(runs)
    assert not found.ranked
    assert "no metric of the two runs differs beyond noise" in found.remarks[0]
    assert found.remarks[1].startswith("no setting, version, data file or line of code")


def test_a_worse_run_without_a_fault_of_its_own_is_told(tmp_path: Path) -> None:
    for name, level in (("good", 0.0), ("bad", 0.4)):
        (tmp_path / name).mkdir()
        rows = [f"step {10 * i} loss {v + level:.4f}" for i, v in enumerate(curve(1, noise=0.01))]
        (tmp_path / name / "log.txt").write_text("\n".join(rows) + "\n")
        (tmp_path / name / "config.yaml").write_text(f"label_smoothing: {level}\n")
    found = compared(tmp_path)
    assert found.ranked[0].undo == "set label_smoothing to 0.0"
    assert any(r.startswith("by itself the first run shows no fault") for r in found.remarks)


def test_runs_without_anything_in_common(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nKeyError: 'a'\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "log.txt").write_text("".join(f"step {i} loss {1 / (i + 1)}\n" for i in range(30)))
    found = compare(examine([tmp_path / "a.log"]), examine([tmp_path / "b"]))
    assert found.only_there == ("loss",)
    assert any("no metric in common" in r for r in found.remarks)
    assert any("so that code was not compared" in r for r in found.remarks)


@pytest.mark.parametrize("name", ["mse", "r2"])
def test_a_run_ruined_from_the_start_parts_whatever_its_own_scatter(name: str) -> None:
    drawn = random.Random(3)
    wild = [3000 * 2.718 ** -(s / 2) + 74 + drawn.gauss(0, 12) for s in range(30)]
    calm = [1.07 * 2.718 ** -(s / 3) + 0.047 * (1 + drawn.gauss(0, 0.02)) for s in range(30)]
    if name == "r2":
        wild, calm = [1 - w for w in wild], [1 - c for c in calm]
    (found,), _, _ = metric_differences(Run(series=(series(wild, name),)), Run(series=(series(calm, name),)))
    assert found.step == 0, found.statement()


def test_the_same_run_with_half_as_much_scatter_again_does_not_part() -> None:
    (found,), _, _ = metric_differences(Run(series=(series(curve(5, noise=0.045)),)), Run(series=(series(curve(6)),)))
    assert found.step is None, found.statement()
