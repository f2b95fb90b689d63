"""Unfamiliar names get their meaning from the code, the words of the field, or the course of the values."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_logs import FORMATS, cosine, noisy_fall, rows, run_of

from traindx_tools.finding import Bearing, Severity
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.role_names import role_of_name
from traindx_tools.on_logs.roles import assign_roles
from traindx_tools.on_logs.run import Run, Series

COMBINED = list(itertools.islice(itertools.product(
    FORMATS, ("s", "it", "upd", "i", "n"), ("huber", "hinge", "triplet", "smooth_l1", "energy"),
    ("eta", "lr-Adam", "stepsize", "group0/lr")), 0, None, 9))


@pytest.mark.parametrize(("form", "step", "loss", "rate"), COMBINED)
def test_names_of_the_field_in_any_format(tmp_path: Path, form: str, step: str, loss: str, rate: str) -> None:
    n = 40
    text = FORMATS[form](rows(step, 20, **{loss: noisy_fall(n, 3), rate: cosine(n)}))
    r = run_of(tmp_path, text, form)
    assert r.loss is not None
    assert (r.loss.name, r.loss.original, r.loss.unit) == ("loss", loss, "step")
    assert r.loss.position[:2].tolist() == [20.0, 40.0]
    assert any(s.name.split("/")[0] == "learning_rate" and s.original == rate for s in r.series)
    assert not any(s.inferred for s in r.series)
    assert [f for f in judge_run(r) if f.severity is not Severity.INFO] == []


CODE = """
for k in range(100):
    q = criterion(net(x), y)
    q.backward()
    opt.step()
    sched.step()
    print(json.dumps({"zz": k, "q": q.item(), "ww": sched.get_last_lr()[0]}))
"""


@pytest.mark.parametrize("form", FORMATS)
def test_the_code_explains_names_that_say_nothing(tmp_path: Path, form: str) -> None:
    text = FORMATS[form](rows("zz", 20, q=noisy_fall(40, 1), ww=cosine(40)))
    r = run_of(tmp_path, text, form, CODE)
    assert r.loss is not None
    assert (r.loss.original, r.loss.unit) == ("q", "step")
    rate = r.first("learning_rate")
    assert rate is not None
    assert rate.original == "ww"
    assert not rate.inferred


def test_without_code_the_course_gives_a_guess_that_counts_as_a_pattern(tmp_path: Path) -> None:
    turned = np.concatenate([cosine(20), cosine(20)[::-1]])
    r = run_of(tmp_path, FORMATS["pairs"](rows("step", 20, q=noisy_fall(40, 1), ww=turned)), "pairs")
    rate = r.first("learning_rate")
    assert rate is not None
    assert rate.inferred
    assert r.loss is not None
    assert r.loss.inferred
    found = [f for f in judge_run(r) if f.rule == "L310"]
    assert [(f.bearing, f.severity) for f in found] == [(Bearing.COMPANION, Severity.MEDIUM)]
    assert "guessed from its course" in found[0].statement


@pytest.mark.parametrize("name", ["temperature", "beta", "teacher_forcing", "mask_ratio", "kl_weight", "dropout"])
def test_other_schedules_are_no_learning_rate(tmp_path: Path, name: str) -> None:
    r = run_of(tmp_path, FORMATS["pairs"](rows("step", 10, loss=noisy_fall(40, 2), **{name: cosine(40, 0.1)})), "pairs")
    assert r.first("learning_rate") is None


def test_time_that_is_left_is_no_learning_rate(tmp_path: Path) -> None:
    left = np.arange(40, 0, -1) * 12.0
    for form in FORMATS:
        r = run_of(tmp_path / form, FORMATS[form](rows("step", 10, loss=noisy_fall(40, 2), eta=left)), form)
        assert [s.name for s in r.series] == ["loss"]


def test_a_temperature_of_reinforcement_learning_is_no_learning_rate(tmp_path: Path) -> None:
    r = run_of(tmp_path, FORMATS["pairs"](rows("step", 10, reward=noisy_fall(40, 2)[::-1], alpha=cosine(40, 0.2))),
               "pairs")
    assert r.first("learning_rate") is None


def test_a_known_loss_stays_the_main_one(tmp_path: Path) -> None:
    text = FORMATS["pairs"](rows("step", 10, loss=noisy_fall(40, 2), hinge=noisy_fall(40, 5), rmse=noisy_fall(40, 4)))
    r = run_of(tmp_path, text, "pairs")
    assert r.loss is not None
    assert r.loss.original == "loss"
    assert {s.name for s in r.series} == {"loss", "hinge", "rmse"}


def test_two_losses_of_the_field_are_terms(tmp_path: Path) -> None:
    r = run_of(tmp_path, FORMATS["pairs"](rows("step", 10, hinge=noisy_fall(40, 2), triplet=noisy_fall(40, 5))),
               "pairs")
    assert {s.name for s in r.series} == {"loss/hinge", "loss/triplet"}


def test_what_an_evaluation_prints_is_held_out(tmp_path: Path) -> None:
    code = """
model = Net(); opt = Adam(model.parameters())
def evaluate(model, data):
    model.eval()
    return sum((model(x).argmax(1) == y).float().mean().item() for x, y in data) / len(data)
for epoch in range(9):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    print(json.dumps({"epoch": epoch, "xent": loss.item(), "acc": evaluate(model, held)}))
"""
    text = FORMATS["json"](rows("epoch", 1, xent=noisy_fall(9, 1), acc=1 - 0.3 * noisy_fall(9, 2)))
    r = run_of(tmp_path, text, "json", code)
    assert {(s.name, s.group) for s in r.series} == {("loss", "train"), ("accuracy", "validation")}


def test_a_score_that_is_written_beside_the_loss_is_no_term_of_it(tmp_path: Path) -> None:
    code = """
writer.writerow(["epoch", "xent", *("recall_" + s for s in KINDS)])
for epoch in range(9):
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        total += loss.item()
    writer.writerow([epoch, total, *recalls(net, held)])
"""
    text = FORMATS["csv"](rows("epoch", 1, xent=noisy_fall(9, 1), recall_ball=np.zeros(9), specificity=np.zeros(9)))
    r = run_of(tmp_path, text, "csv", code)
    assert r.components() == []
    assert [f.rule for f in judge_run(r) if f.rule == "L210"] == []


def test_a_table_of_data_is_still_no_log(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").write_text("id,area,rooms,price\n" + "".join(
        f"{k},{50 + k},{k % 5},{1000 + 7 * k}\n" for k in range(1, 60)))
    (tmp_path / "items.jsonl").write_text("".join(f'{{"n": {k}, "text": "a", "label": {k % 3}}}\n' for k in range(50)))
    from traindx_tools.on_logs import read_run

    assert read_run([tmp_path]).series == ()


@pytest.mark.parametrize(("name", "role"), [
    ("‖g‖", "grad_norm"), ("|g|", "grad_norm"), ("||grad||", "grad_norm"), ("InfoNCE", "loss"), ("NT-Xent", "loss"),
    ("Smooth L1", "loss"), ("eta", "learning_rate"), ("optim/lr", "learning_rate"), ("beat loss", "loss"),
    ("nse", "r2"), ("labelled_px", None), ("gap", None), ("n_tokens", None), ("", None),
])
def test_words_of_the_field(name: str, role: str | None) -> None:
    assert role_of_name(name) == role


def _series(name: str, values: list[float], group: str, source: str) -> Series:
    v = np.array(values, dtype=np.float64)
    nothing = np.full(len(v), np.nan)
    return Series(name, name, group, source, v, nothing, nothing, nothing, np.arange(1, len(v) + 1))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(
    st.sampled_from(["s", "n", "hinge", "eta", "alpha", "loss", "rmse", "q", "|g|", "lr-x", "temperature", "énergie",
                     "", "%"]),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=30),
    st.sampled_from(["train", "validation", "test"]), st.sampled_from(["a", "b"])), max_size=6))
def test_any_series_keep_their_values(given_series: list[tuple[str, list[float], str, str]]) -> None:
    before = Run(series=tuple(_series(*g) for g in given_series))
    after = assign_roles(before)
    kept = {id(s.values) for s in before.series}
    assert all(id(s.values) in kept for s in after.series)
    assert len(after.series) <= len(before.series)
    assert {s.original for s in after.series} <= {s.original for s in before.series}
    assert [s.name for s in assign_roles(after).series] == [s.name for s in after.series]


@pytest.mark.parametrize("line", [
    "i={s} seg loss={v} stepsize=1e-4 kept={c}\n", "[{s}] mse {v} stepsize 1e-4 kept {c}\n"])
def test_a_broken_value_before_a_name_that_begins_like_a_unit(tmp_path: Path, line: str) -> None:
    text = "".join(line.format(s=10 * k, v="nan" if k > 5 else 1.0 + 0.1 * k, c=0 if k == 6 else 9)
                   for k in range(1, 9))
    r = run_of(tmp_path, text, "pairs")
    assert r.loss is not None
    assert np.isnan(r.loss.values).sum() == 3
    assert [f.measured["kind"] for f in judge_run(r) if f.rule == "L109"] == ["zero-count"]


ADVERSARIAL = """
for k in range(100):
    d = bce(net_d(real), one) + bce(net_d(fake.detach()), zero)
    d.backward()
    opt_d.step()
    g = bce(net_d(fake), one)
    g.backward()
    opt_g.step()
    print(f"step {k} %s {d.item():.3f} %s {g.item():.3f}")
"""


@pytest.mark.parametrize("names", [("d", "g"), ("disc", "gen"), ("D", "G")])
def test_two_adversaries_have_no_main_loss(tmp_path: Path, names: tuple[str, str]) -> None:
    rng = np.random.default_rng(0)
    d, g = (1.386 - np.exp(-np.arange(40) / 4) + 0.004 * rng.standard_normal(40),
            0.693 + 0.01 * rng.standard_normal(40))
    pairs = enumerate(zip(d, g, strict=True))
    lines = "\n".join(f"step {i} {names[0]} {a:.3f} {names[1]} {b:.3f}" for i, (a, b) in pairs)
    r = run_of(tmp_path, lines, "log", ADVERSARIAL % names)
    assert {s.original: s.name for s in r.series} == {names[0]: "discriminator_loss", names[1]: "generator_loss"}
    assert r.loss is None
    assert [f for f in judge_run(r) if f.severity is not Severity.INFO] == []


def test_a_distance_and_a_gradient_norm_are_no_adversaries(tmp_path: Path) -> None:
    lines = "\n".join(f"step {i} loss {2 / (i + 1):.3f} d {i % 3 + 0.5} g {1 / (i + 1):.3f}" for i in range(40))
    r = run_of(tmp_path, lines, "log")
    assert not {"discriminator_loss", "generator_loss"} & {s.name for s in r.series}
