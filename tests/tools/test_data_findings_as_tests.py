"""What data files show of a cause: a test that undoes its claim is its own measure, and nothing found is an answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.artifact import Artifact
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.catalog.precision import load_precision
from traindx_tools.domains import domains_of
from traindx_tools.examine import Examination, examine
from traindx_tools.finding import SURE, Bearing, Finding, Location, Severity
from traindx_tools.on_data.run_data import told_as_data
from traindx_tools.on_data.significance import share_bound
from traindx_tools.on_logs.run import Run

SPIKY = "".join(f"step {i} loss {3.0 if i in (20, 21) else 1 - i / 100:.3f}\n" for i in range(60))


def _shards(folder: Path, shifted: bool = False, rows: int = 400, spread: float = 0.6) -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(6, 12)) * 1.5
    for i in range(4):
        y = rng.integers(0, 6, rows)
        x = (means[y] + rng.normal(size=(rows, 12)) * spread).astype("f4")
        np.savez(folder / f"shard_{i}.npz", x=x, y=(y + 1) % 6 if shifted and i == 2 else y)


def _first(seen: Examination) -> tuple[str, float, str]:
    first = seen.verdict.hypotheses[0]
    return first.mode.id, first.confidence, seen.verdict.status


def test_a_permutation_that_nearly_all_rows_confirm_is_the_cause(tmp_path: Path) -> None:
    _shards(tmp_path, shifted=True)
    mode, confidence, status = _first(examine([tmp_path], root=tmp_path))
    assert (mode, status) == ("data.shard-labels", "diagnosis_complete")
    assert confidence >= 0.9


def test_one_that_half_of_the_rows_confirm_carries_what_its_kind_does(tmp_path: Path) -> None:
    _shards(tmp_path, shifted=True, spread=4.0)
    seen = examine([tmp_path], root=tmp_path)
    found = next(f for f in seen.findings if f.rule == "D108")
    prior = load_precision().of("D108", "cause", Bearing.CAUSE).bound
    assert found.undone is not None
    assert found.undone < prior
    assert _first(seen)[1] == pytest.approx(prior, abs=0.03)


@pytest.mark.parametrize("measured", [
    {"undone": 0.95}, {"undone": 0.95, "p": 2 * SURE}, {"undone": None, "p": 0.0}, {"undone": "0.95", "p": 0.0},
    {"undone": 1.5, "p": 0.0}, {"p": 0.0}])
def test_without_a_p_value_or_a_share_nothing_is_undone(measured: dict[str, float]) -> None:
    made = Finding("D108", "t", Severity.HIGH, Bearing.CAUSE, "s.", Location(file="a.npz"), "a.npz", measured)
    assert made.undone is None


def test_a_share_is_told_by_its_lower_bound() -> None:
    assert share_bound(0, 0) == share_bound(0, 100) == 0.0
    assert 0.90 < share_bound(95, 100) < 0.95
    assert share_bound(9500, 10_000) == pytest.approx(0.947, abs=1e-3)
    assert share_bound(3, 3) < 0.7


def test_what_judged_files_would_have_shown_is_no_suspect_on_a_hint(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(SPIKY)
    words = "the loss spikes"
    before = {h.mode.id for h in examine([tmp_path], symptom=words, root=tmp_path).verdict.hypotheses if h.speaks_for}
    assert "data.shard-scale" in before
    _shards(tmp_path)
    after = {h.mode.id for h in examine([tmp_path], symptom=words, root=tmp_path).verdict.hypotheses if h.speaks_for}
    assert "data.shard-scale" not in after
    with np.load(tmp_path / "shard_2.npz") as held:
        np.savez(tmp_path / "shard_2.npz", x=held["x"] * 300, y=held["y"])
    assert _first(examine([tmp_path], symptom=words, root=tmp_path))[0] == "data.shard-scale"


def test_tokens_are_a_part_that_code_shows_and_a_log_alone_leaves_open(tmp_path: Path) -> None:
    code = tmp_path / "train.py"
    assert "tokens" in domains_of(Run())
    code.write_text("from torch import nn\nmodel = nn.Linear(4, 2)\n")
    assert "tokens" not in domains_of(Run(), [code])
    assert "tokens" in domains_of(Run(), [code], "the perplexity is too good")
    code.write_text("from torch import nn\nmodel = nn.Embedding(64, 2)\n")
    assert "tokens" in domains_of(Run(), [code])
    assert load_catalog()["label.not-shifted"].domain == "tokens"


def test_arrays_are_told_as_data_and_other_archives_as_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    (tmp_path / "b.zip").write_bytes(b"PK\x03\x04 no arrays")
    names = ("a.npz", "b.zip", "gone.npz")
    given = [Artifact(str(tmp_path / n), "archive", note="refused: a zip archive") for n in names]
    told = told_as_data([*given, Artifact("train.log", "free_text")])
    assert [a.format for a in told] == ["npz", "archive", "archive", "free_text"]
    assert told[0].note == "data: `traindx data` tells what it holds"
