"""Rules about codebooks, policies, games and variational models on logs as they are printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from learning_builder import findings, only, read, run, series, serious

from traindx_tools.finding import Severity


def test_perplexity_against_the_size_in_the_same_line(tmp_path: Path) -> None:
    log = "".join(
        f"step {50 * k} recon {0.9 - 0.002 * k:.3f} vq_loss 0.03{k % 9} perplexity {3.1 + 0.2 * (k % 3):.2f} / 256\n"
        for k in range(1, 20)
    )
    f = only(read(tmp_path, log=log), "l601_codebook_collapse")
    assert f.measured["size"] == 256
    assert f.measured["kind"] == "never-used"
    assert f.measured["utilisation"] == pytest.approx(3.3 / 256, rel=0.05)


def test_collapse_after_use_and_revival_without_effect() -> None:
    n = 40
    r = run(
        series("codebook_perplexity", np.concatenate([np.linspace(200, 5, 10), np.full(30, 4.0)])),
        series("codebook_size", np.full(n, 512)),
        series("dead_codes_replaced", np.arange(n) * 100.0),
    )
    f = only(r, "l601_codebook_collapse")
    assert f.measured["kind"] == "collapsed"
    assert f.measured["replaced"] == 3900
    assert "without effect" in f.statement


@pytest.mark.parametrize("perplexity", [np.linspace(2, 60, 30), np.full(30, 60.0), np.linspace(5, 30, 30)])
def test_codebook_in_use_or_recovering(perplexity: np.ndarray) -> None:
    r = run(series("codebook_perplexity", perplexity), codebook_size=128)
    assert not findings(r, "l601_codebook_collapse")


def test_utilisation_in_per_cent() -> None:
    assert findings(run(series("codebook_utilization", np.full(10, 3.5))), "l601_codebook_collapse")
    assert not findings(run(series("codebook_utilization", np.full(10, 0.8))), "l601_codebook_collapse")


def rewards_log(advantage: float, reward_std: str = "") -> str:
    return "".join(
        f"step:{k} - actor/pg_loss:{0.0 if advantage == 0 else 0.01:.4f} - actor/grad_norm:{advantage:.4f} - "
        f"critic/rewards/mean:{0.2 + 0.03 * (k % 4):.4f} - critic/advantages/max:{advantage:.4f} - "
        f"critic/advantages/min:{-advantage:.4f}{reward_std}\n"
        for k in range(1, 15)
    )


def test_zero_advantages_although_rewards_vary(tmp_path: Path) -> None:
    f = only(read(tmp_path, log=rewards_log(0.0)), "l602_advantages_zero")
    assert f.measured["kind"] == "variance-present"
    assert f.measured["gradient_zero"] is True
    assert f.severity is Severity.CRITICAL


def test_advantages_that_vary(tmp_path: Path) -> None:
    assert not findings(read(tmp_path, log=rewards_log(1.2)), "l602_advantages_zero")


@pytest.mark.parametrize(("reward", "severity"), [(0.0, Severity.HIGH), (1.0, Severity.INFO)])
def test_rewards_that_are_all_equal(reward: float, severity: Severity) -> None:
    r = run(
        series("reward", np.full(10, reward)), series("reward_std", np.zeros(10)), series("advantage_max", np.zeros(10))
    )
    f = only(r, "l602_advantages_zero")
    assert (f.measured["kind"], f.severity) == ("no-variance", severity)


def test_policy_loss_of_zero_with_a_gradient_is_usual() -> None:
    r = run(
        series("loss/pg", np.zeros(20), original="pg_loss"),
        series("grad_norm", np.full(20, 0.3) + 0.01 * np.arange(20)),
        series("reward", np.linspace(0.1, 0.8, 20)),
    )
    assert not serious(r)


def test_entropy_near_its_maximum() -> None:
    n = 20
    r = run(
        series("entropy", 10.2 + 0.01 * np.sin(np.arange(n))),
        series("reward", 0.1 + 0.01 * np.sin(7 * np.arange(n))),
        vocab_size=32000,
    )
    f = only(r, "l603_entropy_collapse")
    assert f.measured["kind"] == "near-max"
    assert f.measured["share"] > 0.9


def test_low_entropy_of_a_solved_task_is_a_remark() -> None:
    r = run(series("entropy", np.geomspace(1.5, 0.01, 30)), series("reward", np.linspace(0.2, 0.98, 30)))
    assert not serious(r)


def test_reward_that_falls_back() -> None:
    reward = np.concatenate([np.linspace(0.1, 0.8, 30), np.linspace(0.7, 0.12, 20), np.full(20, 0.12)])
    r = run(series("reward", reward + 0.02 * np.random.default_rng(0).standard_normal(70)))
    f = only(r, "l604_reward_flat")
    assert f.measured["kind"] == "collapsed"


@pytest.mark.parametrize(
    ("reward", "course", "severity"),
    [
        (0.5 + 0.02 * np.sin(11 * np.arange(20)), "flat", Severity.HIGH),
        (np.linspace(0.1, 0.9, 20), "rising", Severity.MEDIUM),
    ],
)
def test_kl_of_zero(reward: np.ndarray, course: str, severity: Severity) -> None:
    r = run(series("reward", reward), series("kl", np.zeros(20)), series("grad_norm", np.full(20, 0.1)))
    f = only(r, "l605_kl_anomaly")
    assert f.measured["reward_course"] == course
    assert f.severity is severity


def test_kl_of_zero_at_first_or_with_a_weight_of_zero() -> None:
    reward = series("reward", np.linspace(0.1, 0.9, 20))
    assert not findings(run(reward, series("kl", np.r_[0, 0, np.linspace(1e-4, 0.1, 18)])), "l605_kl_anomaly")
    assert not serious(run(reward, series("kl", np.zeros(20)), beta=0.0))


def test_kl_that_explodes() -> None:
    r = run(
        series("reward", np.linspace(0.1, 0.9, 30)), series("kl", np.r_[np.full(22, 0.05), np.geomspace(1, 400, 8)])
    )
    assert only(r, "l605_kl_anomaly").measured["kind"] == "exploding"


def test_discriminator_without_a_contest(tmp_path: Path) -> None:
    log = "".join(
        f"[{k}/200] Loss_D: {1.3863 + 0.0002 * (-1) ** k:.4f} Loss_G: 0.6931 D(x): 0.5000\n" for k in range(1, 20)
    )
    assert only(read(tmp_path, log=log), "l606_gan_imbalance").measured["kind"] == "no-contest"


def test_discriminator_that_always_wins(tmp_path: Path) -> None:
    log = "".join(
        f"[{k}/200] Loss_D: 0.00{k % 5} Loss_G: {7 + 0.1 * (k % 7):.2f} D(x): 0.998 D(G(z)): 0.001\n"
        for k in range(1, 20)
    )
    f = only(read(tmp_path, log=log), "l606_gan_imbalance")
    assert f.measured["kind"] == "discriminator-wins"


def test_game_that_swings() -> None:
    t = np.arange(60)
    r = run(series("discriminator_loss", 1.3 + 0.15 * np.sin(t)), series("generator_loss", 0.9 + 0.3 * np.cos(t)))
    assert not serious(r)


@pytest.mark.parametrize(
    ("kl", "kind"),
    [
        (np.r_[np.geomspace(4, 0.005, 10), np.full(20, 0.005)], "collapsed"),
        (np.zeros(20), "zero"),
        (np.full(20, 2e-4), "never-used"),
        (np.r_[np.full(8, 0.01), np.linspace(0.05, 12, 20)], None),
        (np.linspace(4, 9, 20), None),
        (np.full(20, 0.03), None),
    ],
)
def test_kl_of_a_variational_model(kl: np.ndarray, kind: str | None) -> None:
    r = run(series("loss/recon", np.geomspace(200, 120, len(kl))), series("kl", kl))
    assert [f.measured["kind"] for f in findings(r, "l607_posterior_collapse")] == ([kind] if kind else [])


def test_norm_at_a_configured_clamp(tmp_path: Path) -> None:
    log = "".join(f"step {k} loss {2 - 0.02 * k:.3f} lora_norm {min(15.0, 2.0 * k):.3f}\n" for k in range(1, 30))
    f = only(read(tmp_path, log=log, config="lora_norm_max: 15.0\n"), "l608_clip_or_norm_at_bound")
    assert f.measured["bound"] == 15.0
    assert f.severity is Severity.MEDIUM


def test_gradient_norm_logged_after_clipping_is_a_remark() -> None:
    r = run(series("grad_norm", np.full(30, 1.0)), series("loss", np.geomspace(5, 2, 30)), max_grad_norm=1.0)
    f = only(r, "l608_clip_or_norm_at_bound")
    assert f.severity is Severity.INFO


def test_clip_fraction() -> None:
    assert findings(run(series("clip_fraction", np.full(20, 0.93))), "l608_clip_or_norm_at_bound")
    assert not findings(run(series("clip_fraction", np.full(20, 0.2))), "l608_clip_or_norm_at_bound")
