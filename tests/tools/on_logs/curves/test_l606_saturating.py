"""A discriminator that wins against the saturating generator loss log(1 - D(G(z))); critics are left alone."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.curves.l606_gan_imbalance import check


def kinds(tmp_path: Path, rows: list[tuple[float, float]]) -> list[object]:
    lines = [f"[{i * 20}/500] Loss_D: {d:.3e} Loss_G: {g:.3e}" for i, (d, g) in enumerate(rows, 1)]
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    return [f.measured["kind"] for f in check(read_run([tmp_path / "log.txt"]))]


def test_both_losses_near_zero_mean_that_the_discriminator_won(tmp_path: Path) -> None:
    assert kinds(tmp_path, [(0.08 * 0.7**i, -0.077 * 0.7**i) for i in range(20)]) == ["discriminator-wins"]


def test_a_game_in_balance_and_a_critic_are_left_alone(tmp_path: Path) -> None:
    assert kinds(tmp_path, [(1.38 + 0.02 * (i % 3), -0.69 + 0.02 * (i % 2)) for i in range(20)]) == []
    assert kinds(tmp_path, [(0.01 * (i % 3), -5.0 - 0.1 * i) for i in range(20)]) == []


def test_broken_values_do_no_harm(tmp_path: Path) -> None:
    assert kinds(tmp_path, [(float("nan"), float("inf"))] * 20) == []
