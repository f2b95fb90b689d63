"""No rule about learning or domains crashes, hangs, warns or breaks the form of findings, whatever the series hold."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from learning_builder import RULES, findings, run, series

from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import Note, Run, Series

NAMES = (
    "loss",
    "mse",
    "nll",
    "loss/recon",
    "loss/commit",
    "loss/pg",
    "loss/a",
    "loss/b",
    "kl",
    "accuracy",
    "r2",
    "prediction_std",
    "reward",
    "reward_std",
    "advantage_max",
    "advantage_min",
    "entropy",
    "grad_norm",
    "learning_rate",
    "codebook_perplexity",
    "codebook_size",
    "codebook_used",
    "discriminator_loss",
    "generator_loss",
    "clip_fraction",
    "lora_norm",
    "weight_norm",
    "data_var",
    "unique_outputs",
    "score_before",
    "score_after",
    "d_g_z",
)
KEYS = (
    "num_classes",
    "vocab_size",
    "classes",
    "codebook_size",
    "max_grad_norm",
    "lora_norm_clamp",
    "commitment",
    "beta",
    "label_smoothing",
    "gradient_accumulation_steps",
    "target_var",
    "n_actions",
    "kl_coef",
)

values = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0, 12),
    st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e308, -1e308, math.nan, math.inf, math.log(10), 0.7437]),
)
counters = st.one_of(
    st.integers(0, 30).map(float), st.floats(0, 1e6), st.sampled_from([math.nan, math.inf, 1e308, -1e308])
)


@st.composite
def any_series(draw: st.DrawFn) -> Series:
    y = draw(
        st.one_of(
            st.lists(values, max_size=30),
            st.builds(lambda v, n: [v] * n, values, st.integers(0, 30)),
            st.builds(
                lambda a, r, n: [a * r**i for i in range(n)],
                st.floats(1e-3, 1e3),
                st.floats(0.2, 2),
                st.integers(3, 30),
            ),
            st.builds(
                lambda a, b, n: [a + b * (i % 5) for i in range(n)],
                st.floats(-2, 5),
                st.floats(-1, 1),
                st.integers(3, 40),
            ),
        )
    )
    n = len(y)
    s = series(
        draw(st.sampled_from(NAMES)),
        y,
        group=draw(st.sampled_from(["train", "train", "validation", "test"])),
        epoch=draw(
            st.one_of(st.none(), st.lists(counters, min_size=n, max_size=n), st.just([i // 5 for i in range(n)]))
        ),
        epochs=False,
        lines=draw(st.one_of(st.none(), st.lists(st.integers(1, 60), min_size=n, max_size=n))),
        source=draw(st.sampled_from(["a.log", "b.csv"])),
    )
    steps = draw(
        st.one_of(st.none(), st.lists(counters, min_size=n, max_size=n), st.just([float(i % 7) for i in range(n)]))
    )
    return (
        s
        if steps is None
        else Series(
            s.name,
            s.original,
            s.group,
            s.source,
            s.values,
            np.asarray(steps, dtype=np.float64),
            s.epoch,
            s.time,
            s.line,
        )
    )


@st.composite
def any_run(draw: st.DrawFn) -> Run:
    texts = ["Resuming from x", "10 classes", "vocab size: 99999999999", "reward before 0.5123 after 0.5123", "epoch 3"]
    notes = tuple(
        Note(draw(st.sampled_from(["resume", "epoch", "other"])), text, "a.log", draw(st.integers(1, 40)))
        for text in draw(st.lists(st.sampled_from(texts), max_size=4))
    )
    config = draw(
        st.dictionaries(
            st.sampled_from(KEYS),
            st.one_of(
                values, st.integers(-3, 10**400), st.none(), st.text(max_size=3), st.booleans(), st.just(["cat", "dog"])
            ),
            max_size=5,
        )
    )
    return Run(
        series=tuple(draw(st.lists(any_series(), max_size=6))),
        notes=notes,
        config=config,
        world_size=draw(st.one_of(st.none(), st.integers(0, 10**6))),
    )


def well_formed(f: Finding) -> None:
    assert "\n" not in f.statement
    assert len(f.statement) < 800
    json.dumps(f.to_json(), allow_nan=False)
    assert Finding.from_json(json.loads(json.dumps(f.to_json()))).statement == f.statement


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(any_run())
def test_arbitrary_runs(r: Run) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in findings(r):
            well_formed(f)


@pytest.mark.parametrize(
    "y",
    [
        [],
        [1.0],
        [math.nan] * 20,
        [math.inf] * 20,
        [0.0] * 20,
        [1e308, -1e308] * 10,
        [5e-324] * 20,
        [1e308] * 20,
        [math.log(10)] * 20,
    ],
    ids=lambda y: f"{len(y)}x{y[0] if y else ''}",
)
def test_degenerate_series_under_every_name(y: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for group in ("train", "validation"):
            for f in findings(run(*(series(name, y, group=group) for name in NAMES), num_classes=10, beta=0.0)):
                well_formed(f)


def test_two_hundred_thousand_values_take_seconds(within: Any) -> None:
    n = 200_000
    loss = 1 + 3 * np.exp(-np.arange(n) / 5e4) + 0.05 * np.random.default_rng(0).standard_normal(n)
    r = run(
        *(series(name, loss) for name in ("loss", "loss/recon", "loss/commit", "kl", "entropy", "reward", "grad_norm")),
        series("loss", loss, group="validation", epoch=np.arange(n) // 1000),
    )
    with within(15):
        findings(r)


def test_the_list_of_rules_is_complete() -> None:
    from traindx_tools.rules import rules_in

    mine = [m for m in rules_in("traindx_tools.on_logs.curves") if m.rule.id[:2] in ("L2", "L6")]
    assert sorted(m.module.rsplit(".", 1)[1] for m in mine) == sorted(RULES)
    for m in mine:
        assert m.module.endswith(f"{m.rule.id.lower()}_{m.rule.name.replace('-', '_')}")
        assert len(m.doc) > 300, f"{m.rule.id} has no page"
        assert m.rule.thresholds
        assert m.rule.alike
        assert m.rule.confirm
