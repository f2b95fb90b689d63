"""A policy that acts in an environment has the suspects of such a policy, and none of a language model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from traindx_tools.domains import domains_of
from traindx_tools.examine import Examination, examine
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.run import Run

OF_TEXTS = {"rl.entropy-gibberish", "rl.generation-padded-right", "rl.group-of-one", "rl.groups-misaligned",
            "rl.logprob-mismatch", "rl.reward-shape", "rl.zero-advantages"}
OF_A_REFERENCE = {"rl.divergence-rewarded", "rl.kl-zero"}
WORDS = ("token", "prompt", "vocabulary", "padded")


def wave(i: int, size: float = 1.0) -> float:
    return size * math.sin(3.7 * i)


def in_environment(i: int) -> dict[str, float]:
    """What Stable-Baselines3 and its kin log of PPO; the return is flat."""
    return {"time/total_timesteps": 2048 * i, "rollout/ep_rew_mean": 21 + wave(i), "rollout/ep_len_mean": 21 + wave(i),
            "train/approx_kl": 0.011 + wave(i, 0.002), "train/clip_fraction": 0.1 + wave(i, 0.01),
            "train/entropy_loss": -0.6 + wave(i, 0.01), "train/explained_variance": 0.3 + wave(i, 0.05),
            "train/policy_gradient_loss": -0.01 + wave(i, 0.002), "train/value_loss": 30 + wave(i),
            "train/loss": 15 + wave(i), "train/learning_rate": 3e-4}


def of_text(i: int) -> dict[str, float]:
    """The same of a trainer of language models; the reward is flat."""
    return {"step": i, "reward": 0.4 + wave(i, 0.01), "kl": 0.011 + wave(i, 0.002), "loss": 0.01 + wave(i, 0.002),
            "completions/mean_length": 180 + wave(i, 8.0), "learning_rate": 1e-6, "grad_norm": 0.5 + wave(i, 0.05)}


def seen(folder: Path, row: Callable[[int], Mapping[str, float]], **changed: Callable[[int], float]) -> Examination:
    rows = [{k: next((f(i) for n, f in changed.items() if n in k), v) for k, v in row(i).items()} for i in range(60)]
    path = folder / "progress.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return examine([path])


def grounded(found: Examination) -> set[str]:
    return {h.mode.id for h in found.verdict.hypotheses if h.speaks_for and not h.unshown}


def falls_back(i: int) -> float:
    return 20 + 6.0 * i + wave(i) if i < 30 else 200 - 6.0 * (i - 30) + wave(i)


def explodes(i: int) -> float:
    return 0.011 + wave(i, 0.002) if i < 42 else 0.02 * 1.6 ** (i - 42)


@pytest.mark.parametrize("changed", [
    {}, {"ep_rew_mean": falls_back}, {"ep_rew_mean": falls_back, "approx_kl": explodes},
    {"entropy_loss": lambda i: -0.6 * math.exp(-i / 4)}, {"loss": lambda i: math.nan if i > 30 else 15 + wave(i)},
])
def test_a_policy_in_an_environment_has_no_suspect_of_a_language_model(
        tmp_path: Path, changed: dict[str, Callable[[int], float]]) -> None:
    found = seen(tmp_path, in_environment, **changed)
    assert found.verdict.status == "needs_more_data"
    first = [h for h in found.verdict.hypotheses if h.speaks_for][:5]
    assert not {h.mode.id for h in first} & (OF_TEXTS | OF_A_REFERENCE)
    assert not [h.claim for h in first if any(word in h.claim for word in WORDS) and h.mode.id.startswith("rl.")]


def test_a_kl_between_successive_policies_is_told_as_that(tmp_path: Path) -> None:
    found = seen(tmp_path, in_environment, ep_rew_mean=falls_back, approx_kl=explodes)
    (told,) = [h for h in found.verdict.hypotheses if h.mode.id == "rl.kl-explosion"]
    assert told.claim.startswith("Each update moves the policy too far from the one that collected its data")
    assert "reference" not in told.claim


def test_a_kl_that_is_calm_speaks_against_one_that_explodes(tmp_path: Path) -> None:
    found = seen(tmp_path, in_environment, ep_rew_mean=falls_back)
    assert "rl.kl-explosion" not in grounded(found)
    (finding,) = [f for f in found.findings if f.rule == "L604"]
    assert finding.measured["kl"] == "calm"


def test_returns_of_episodes_are_rewards_under_the_names_of_every_trainer(tmp_path: Path) -> None:
    for name in ("charts/episodic_return", "env_runners/episode_return_mean", "AverageEpRet", "rollout/ep_rew_mean"):
        path = tmp_path / "events.jsonl"
        path.write_text("".join(json.dumps({"global_step": 1024 * i, name: 21 + wave(i)}) + "\n" for i in range(60)))
        assert [f.rule for f in examine([path]).findings] == ["L604"], name


def test_a_policy_that_writes_text_keeps_its_suspects(tmp_path: Path) -> None:
    assert OF_TEXTS & grounded(seen(tmp_path, of_text))
    found = seen(tmp_path, of_text, kl=explodes, reward=falls_back)
    (told,) = [h for h in found.verdict.hypotheses if h.mode.id == "rl.kl-explosion"]
    assert told.claim.startswith("The KL to the reference explodes")


def test_a_log_of_episodes_alone_is_not_of_tokens_and_an_unknown_one_may_be() -> None:
    episodes = read_run(["-"], stdin=b"".join(b"total_timesteps %d ep_rew_mean %d\n" % (i, i) for i in range(9)))
    assert "tokens" not in domains_of(episodes)
    assert "tokens" in domains_of(episodes, symptom="its tokens are cut")
    assert "tokens" in domains_of(Run())


@pytest.mark.parametrize("text", [
    "{}\n", '{"rollout/ep_rew_mean": "high"}\n' * 20, '{"rollout/ep_rew_mean": NaN}\n' * 20])
def test_broken_logs_of_a_policy_have_no_suspects(tmp_path: Path, text: str) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_text(text)
    assert not [h for h in examine([path]).verdict.hypotheses if h.confidence >= 0.4]
