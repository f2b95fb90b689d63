"""Values and messages in a few words: dtype and shape in place of rows of numbers, names in place of addresses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.examine import examine
from traindx_tools.finding import Bearing, Location, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.table import extract_training_metrics
from traindx_tools.rules import Rule
from traindx_tools.short import in_short, without_dumps
from traindx_tools.sources import as_paths


def test_an_array_is_its_dtype_and_shape() -> None:
    assert in_short(np.zeros((64, 3), np.float32)) == "float32[64, 3]"
    assert in_short({"x": np.zeros(5), "y": [1, 2, 3, 4]}) == "{'x': float64[5], 'y': [1, 2, 3, 1 more]}"
    assert in_short(object()) == "<object>"
    assert len(in_short("x" * 500)) < 90


@pytest.mark.parametrize(("text", "told"), [
    (f"got {np.arange(30)!r}.", "got int array of shape (30,)."),
    (f"{np.zeros((2, 3, 4))!r} and {np.arange(3)!r}", "array of shape (2, 3, 4) and array([0, 1, 2])"),
    (f"{np.zeros(5000)!r}", "array of shape (5000,)"),
    ("tensor([[nan, nan, nan, nan],\n        [nan, nan, nan, nan]], device='cuda:0', grad_fn=<AddmmBackward0>) here",
     "tensor of shape (2, 4) here"),
    ("tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], dtype=torch.int64)", "int64 tensor of shape (10,)"),
    ("in <torch.utils.data.dataloader.DataLoader object at 0x7f753a510210>", "in <DataLoader>"),
    ("loss is 0.3 (0.2 before)", "loss is 0.3 (0.2 before)"),
    ("array([1, 2", "array([1, 2"),
])
def test_a_message_tells_what_an_array_is(text: str, told: str) -> None:
    if "shape=" not in repr(np.zeros(5000)) and "5000" in told:
        told = "array of at least shape (7,)"  # an older numpy leaves the shape out
    assert without_dumps(text) == told


@pytest.mark.parametrize("hostile", ["tensor([" * 20_000, "array([" + "[" * 50_000, "array([1" + ", 1" * 50_000,
                                     "(" * 100_000, "tensor([[1,2]," * 10_000])
def test_hostile_texts_take_no_time(hostile: str, within: Callable[[float], AbstractContextManager[None]]) -> None:
    with within(2.0):
        assert isinstance(without_dumps(hostile), str)


def test_a_finding_quotes_no_rows() -> None:
    rule = Rule(id="L521", name="x", title="x", severity=Severity.HIGH, sees="x", matters="x",
                alike=(), confirm=())
    found = rule.finding(f"AssertionError: {np.arange(40)!r}", Location(file="x", line=1), "x", bearing=Bearing.SIGN)
    assert found.statement == "AssertionError: int array of shape (40,)"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {i} loss {2 - i / 100:.2f} lr 0.1\n" for i in range(50)), encoding="utf-8")
    return path


def test_what_a_notebook_prints_of_a_log_is_a_line_without_arrays(log: Path) -> None:
    run = read_run(log)
    shown = [repr(run), repr(run.series[0]), repr(extract_training_metrics(log)), repr(examine([log]))]
    assert all(len(s) < 300 and "array(" not in s for s in shown), shown
    assert "50 values, 2 to 1.51, step 0 to 49" in shown[1]


@pytest.mark.parametrize("given", [np.zeros(500), {"loss": [1, 2]}, 3, None, [np.zeros(300)], [0.5, 0.4]])
def test_what_is_no_path_is_refused_in_a_line_that_says_what_to_give(given: object) -> None:
    with pytest.raises(BadUsage, match="expected the path of a log") as refused:
        as_paths(given)
    assert len(str(refused.value)) < 300


def test_paths_stay_as_they_are() -> None:
    assert as_paths("a") == ("a",)
    assert as_paths(iter(["a", Path("b")])) == ("a", Path("b"))


def test_a_table_in_a_notebook_shows_its_beginning_and_nothing_of_it_is_markup(tmp_path: Path) -> None:
    log = tmp_path / "a<b>.log"
    log.write_text("".join(f"step {i} loss {3 - i / 20:.2f}\n" for i in range(40)))
    page = extract_training_metrics(str(log))._repr_html_()
    assert page.startswith("<pre>&lt;MetricsTable of 40 values: ")
    assert "a&lt;b&gt;.log" in page
    assert page.count("\n") < 25
