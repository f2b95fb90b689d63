"""What changes did is read back over all ranks; what is missing is said, and no fault of ours reaches the training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from traindx_tools.experiments.change import Change, parse_change
from traindx_tools.experiments.live import attach
from traindx_tools.experiments.live.applied import applied_in, applied_of
from traindx_tools.experiments.live.on_torch import batches, gradients
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings


def record(folder: Path, rank: int, *records: dict[str, Any]) -> None:
    lines = [{"traindx": "live", "kind": "start", "rank": rank}, *({"kind": "applied", **r} for r in records)]
    (folder / f"rank{rank:05d}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines) + '{"kind": "appl')


def test_every_rank_counts_and_the_last_record_of_each_holds(tmp_path: Path) -> None:
    one = {"change": "no-decay", "where": "a.py:1", "problem": ""}
    record(tmp_path, 0, {**one, "times": 0, "problem": "not yet"}, {**one, "times": 8})
    record(tmp_path, 1, {**one, "times": 4})
    found = applied_in(tmp_path)["no-decay"]
    assert (found.times, found.where, found.problem) == (4, "a.py:1", "")


def test_a_problem_of_one_rank_is_the_runs(tmp_path: Path) -> None:
    record(tmp_path, 0, {"change": "no-decay", "times": 8, "where": "a.py:1", "problem": ""})
    record(tmp_path, 1, {"change": "no-decay", "times": 0, "where": "", "problem": "no optimizer"})
    found = applied_in(tmp_path)["no-decay"]
    assert (found.times, found.problem) == (0, "rank00001: no optimizer")


def test_a_run_without_records_says_so(tmp_path: Path) -> None:
    assert applied_in(tmp_path / "none") == {}
    (tmp_path / "rank00000.jsonl").write_bytes(b'\xff\xfe "applied"\n[1]\n{"kind": "applied"')
    found = applied_of(parse_change("one-batch"), tmp_path)
    assert (found.times, "has recorded it" in found.problem) == (0, True)


def test_a_change_is_found_by_its_name_with_the_defaults_of_its_options(tmp_path: Path) -> None:
    record(tmp_path, 0, {"change": "learning-rate:times=0.1", "times": 3, "where": "", "problem": ""})
    assert applied_of(Change("learning-rate"), tmp_path).times == 3


@pytest.mark.parametrize(("owner", "method", "change"), [
    (batches.OneBatch, "_batch", "one-batch"), (gradients.ClearGradients, "_clear", "clear-gradients"),
    (gradients.ClearGradients, "_stepped", "clear-gradients"),
    (gradients.NoAccumulation, "_forward", "no-accumulation"),
    (batches.InputsZeroed, "changed", "inputs-zeroed"), (gradients.NoClipping, "attach", "no-clipping")])
def test_a_fault_of_ours_costs_the_change_and_never_the_training(changed: Any, programs: Any, owner: Any, method: str,
                                                                change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    expected = programs.weights(programs.train()[1])

    def fails(*_: Any) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(owner, method, fails)
    with changed(change) as told:
        torch.manual_seed(3)
        found = programs.weights(programs.train()[1])
    assert programs.equal(expected, found)
    assert told.applied.times == 0
    assert "ZeroDivisionError: ours" in told.applied.problem


def test_changes_that_cannot_be_read_cost_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Any] = [{"name": "no-such"}, 5, {"name": "seed", "options": {"by": "x"}}, {"name": "no-decay"}, {}]
    session = open_session(Settings(str(tmp_path), (), options={"changes": told}))
    try:
        assert [c.name for c in attach.changes_of(session)] == ["no-decay"]
    finally:
        close_session()
    said = capsys.readouterr().err
    assert "no change is named 'no-such'" in said
    assert "by='x'" in said


def test_two_changes_at_once_each_keep_their_book(changed: Any, programs: Any, tmp_path: Path) -> None:
    with changed("no-clipping"):
        books = [b.change for b in attach.books()]
    assert books == ["no-clipping"]
    assert attach.books() == ()
