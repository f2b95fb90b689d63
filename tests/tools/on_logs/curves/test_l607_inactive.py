"""Posterior collapse where the log counts active units, and where the KL only shrinks; their healthy twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.curves.l607_posterior_collapse import check


def kinds(tmp_path: Path, lines: list[str]) -> list[object]:
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    return [f.measured["kind"] for f in check(read_run([tmp_path / "log.txt"]))]


@pytest.mark.parametrize("name", ["active_units", "active dims", "AU"])
def test_no_active_unit_from_beginning_to_end(tmp_path: Path, name: str) -> None:
    count = name.replace(" ", "_")
    lines = [f"epoch={i} recon={5.0 - 0.05 * i:.3f} kl={0.02 - 0.0005 * i:.4f} {count}=0" for i in range(14)]
    assert kinds(tmp_path, lines) == ["inactive"]


def test_a_kl_that_only_shrinks_below_the_floor(tmp_path: Path) -> None:
    lines = [f"epoch={i} recon={5.0 - 0.05 * i:.3f} kl={0.04 * 0.8**i:.5f}" for i in range(14)]
    assert kinds(tmp_path, lines) == ["never-used"]


def test_a_code_in_use_is_left_alone(tmp_path: Path) -> None:
    rising = [f"epoch={i} recon={5.0 - 0.2 * i:.3f} kl={0.01 + 0.003 * i:.4f} active_units={i // 2}" for i in range(14)]
    assert kinds(tmp_path, rising) == []
    per_element = [f"epoch={i} recon={0.5 - 0.02 * i:.3f} kl={0.02 + 0.0001 * i:.4f}" for i in range(14)]
    assert kinds(tmp_path, per_element) == []


def test_broken_counts_do_no_harm(tmp_path: Path) -> None:
    assert kinds(tmp_path, [f"epoch={i} recon=nan kl=nan active_units=nan" for i in range(14)]) == []


def test_a_small_kl_that_falls_to_a_hundredth_beside_a_reconstruction_that_rests(tmp_path: Path) -> None:
    lines = [f"epoch={i} recon={0.23 if i == 0 else 0.067:.3f} kl={max(0.08 * 0.3**i, 1e-4):.6f}" for i in range(14)]
    assert kinds(tmp_path, lines) == ["collapsed"]
    only, = check(read_run([tmp_path / "log.txt"]))
    assert "while recon goes from 0.067 to 0.067" in only.statement


def test_a_small_kl_that_keeps_a_tenth_is_left_alone(tmp_path: Path) -> None:
    lines = [f"epoch={i} recon={0.23 / (i + 1):.3f} kl={0.08 * (0.1 + 0.9 * 0.5**i):.6f}" for i in range(14)]
    assert kinds(tmp_path, lines) == []
