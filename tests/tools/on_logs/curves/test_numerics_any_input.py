"""No rule crashes, hangs, warns or speaks of a place that is not there, whatever the series hold."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numerics_builder import RULES, findings, note, run, series

from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import rules_in

NAMES = ("loss", "loss/kl", "grad_norm", "grad_norm/encoder", "grad_norm/head", "learning_rate", "learning_rate/1",
         "loss_scale", "memory", "memory/gpu", "data_time", "step_time", "throughput", "nan_steps", "perplexity",
         "reward", "accuracy", "nll", "generator_loss", "batches")

values = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([0.0, -0.0, 1.0, 1e-320, 1e308, -1e308, math.nan, math.inf, -math.inf, 2.0**16]),
    st.floats(0, 10),
)
counters = st.one_of(st.floats(0, 1e6), st.integers(0, 50).map(float),
                     st.sampled_from([math.nan, 1e308, -1e308, math.inf]))


@st.composite
def any_series(draw: st.DrawFn) -> Series:
    y = draw(st.one_of(st.lists(values, max_size=40),
                       st.builds(lambda v, n: [v] * n, values, st.integers(0, 40)),
                       st.builds(lambda a, r, n: [a * r**i for i in range(n)], st.floats(1e-3, 1e3), st.floats(0.1, 3),
                                 st.integers(5, 40))))
    n = len(y)
    kind = draw(st.sampled_from(["regular", "none", "any", "wraps"]))
    step = {"regular": list(range(0, 10 * n, 10)), "none": None, "wraps": [i % 7 for i in range(n)],
            "any": draw(st.lists(counters, min_size=n, max_size=n))}[kind]
    epoch = draw(st.one_of(st.none(), st.lists(counters, min_size=n, max_size=n)))
    when = draw(st.one_of(st.none(), st.lists(counters, min_size=n, max_size=n)))
    return series(draw(st.sampled_from(NAMES)), y, step=step, epoch=epoch, time=when,
                  group=draw(st.sampled_from(["train", "train", "validation"])),
                  rank=draw(st.sampled_from([None, None, 0, 1, 3])))


@st.composite
def any_run(draw: st.DrawFn) -> Run:
    found = draw(st.lists(any_series(), max_size=6))
    texts = ["Resuming from x", "[rank0] 12 batches", "[rank1] 11 batches", "world size: 4", "steps/epoch 0"]
    notes = [note(draw(st.sampled_from(["resume", "world_size", "other"])), text, draw(st.integers(1, 40)),
                  rank=draw(st.sampled_from([None, 0, 1])))
             for text in draw(st.lists(st.sampled_from(texts), max_size=4))]
    config = draw(st.dictionaries(st.sampled_from(["optimizer", "lr", "max_steps", "epochs", "lr_scheduler_type",
                                                   "warmup_steps", "gradient_accumulation_steps"]),
                                  st.one_of(st.sampled_from(["sgd", "cosine", "AdamW", "", "nan"]), values, st.none()),
                                  max_size=4))
    return run(*found, notes=tuple(notes), config=config,
               planned_steps=draw(st.one_of(st.none(), values)), planned_unit=draw(st.sampled_from(["step", "epoch"])),
               world_size=draw(st.one_of(st.none(), st.integers(0, 64))))


def well_formed(f: Finding) -> None:
    assert "\n" not in f.statement
    assert "  " not in f.statement
    assert len(f.statement) < 600
    json.dumps(f.to_json(), allow_nan=False)
    assert Finding.from_json(json.loads(json.dumps(f.to_json()))).statement == f.statement


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(any_run())
def test_arbitrary_runs(r: Run) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in findings(r):
            well_formed(f)


@pytest.mark.parametrize("y", [[], [1.0], [math.nan] * 20, [math.inf] * 20, [0.0] * 20, [1e308, -1e308] * 10,
                               [5e-324] * 20, [1e308] * 20], ids=lambda y: f"{len(y)}x{y[0] if y else ''}")
def test_degenerate_series_under_every_name(y: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in ("auto", None):
            for f in findings(run(*(series(name, y, step=step) for name in NAMES))):
                well_formed(f)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-6, 1e-3, 10.0, 1e4]))
def test_divergence_and_spikes_do_not_depend_on_the_scale_of_the_loss(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    loss = (0.3 + 3 * np.exp(-np.arange(80) / 15)) * np.exp(rng.normal(0, 0.05, 80))
    if seed % 2:
        loss[50:] *= np.linspace(1, 12, 30)
    plain = {f.rule for f in findings(run(series("loss", loss)), "l106_divergence", "l107_spike")}
    scaled = {f.rule for f in findings(run(series("loss", loss * factor)), "l106_divergence", "l107_spike")}
    assert plain == scaled


@pytest.mark.slow
def test_half_a_million_values_take_seconds(within: Any) -> None:
    n = 500_000
    t = np.arange(n)
    rng = np.random.default_rng(0)
    loss = 1 + 3 * np.exp(-t / 1e5) + rng.normal(0, 0.05, n)
    r = run(*(series(name, loss) for name in ("loss", "grad_norm", "step_time", "memory", "data_time")),
            series("learning_rate", np.linspace(1e-3, 0, n)))
    with within(50):
        findings(r)


def test_the_list_of_rules_is_complete() -> None:
    ours = [m.module.rpartition(".")[2] for m in rules_in("traindx_tools.on_logs.curves") if m.rule.id[1] in "1347"]
    assert ours == list(RULES)
