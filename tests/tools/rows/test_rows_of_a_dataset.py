"""What rows are told apart by, where targets stand, and labels off in pieces: values in, facts out."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools.rows.groupings import groupings
from traindx_tools.rows.host_values import profile_of
from traindx_tools.rows.jumps import StepSeen, jumps
from traindx_tools.rows.positions import column_of, target_shift
from traindx_tools.rows.profile import Profile, together
from traindx_tools.rows.relation import relation


class Held:
    """A dataset of so many rows with attributes of its own."""

    def __init__(self, rows, **fields):
        self.rows = rows
        vars(self).update(fields)

    def __len__(self):
        if self.rows < 0:
            raise RuntimeError("no length")
        return self.rows


@pytest.mark.parametrize(("fields", "names"), [
    ({"sites": ["a", "b"] * 10}, ["sites"]),
    ({"samples": [(f"/data/{'xy'[k % 2]}/{k}.png", 0) for k in range(20)]}, ["samples"]),
    ({"frame": {"unit": np.arange(20) % 3, "value": np.arange(20.0)}}, ["frame['unit']"]),
    ({"cumulative_sizes": [5, 20]}, ["datasets"]),
    ({"ids": list(range(20)), "one": [1] * 20, "text": "x" * 20}, []),
    ({"odd": [object()] * 20, "ragged": [[1], [2, 3]] * 10}, []),
])
def test_what_a_dataset_keeps_one_of_for_each_row(fields, names):
    assert [g.name for g in groupings(Held(20, **fields))] == names


def test_a_dataset_without_a_length_says_nothing():
    assert groupings(Held(-1, sites=["a"])) == ()
    assert groupings(object()) == ()


def test_the_kind_of_each_row():
    found = groupings(Held(4, site=["b", "a", "b", "b"]))[0]
    assert (found.kinds, found.codes.tolist()) == (("a", "b"), [1, 0, 1, 1])


@pytest.mark.parametrize("shift", [-1, 0, 1, 2, 3])
def test_where_targets_stand(shift):
    ids = np.random.default_rng(0).integers(0, 50, (8, 24))
    width = 24 - max(shift, 1)
    at = np.arange(width) + shift
    target = np.where(at >= 0, ids[:, at.clip(0)], -100)
    found = target_shift(ids, target, -100)
    assert found is not None
    assert found.shift == shift


def test_targets_of_another_form_or_that_repeat_say_nothing():
    ids = np.random.default_rng(0).integers(0, 50, (8, 24))
    assert target_shift(ids, ids[:, :10], None) is None
    assert target_shift(ids, ids[:4], None) is None
    assert target_shift(np.ones((8, 24), np.int64), np.ones((8, 24), np.int64), None) is None


def test_a_column_that_is_nearly_the_target_is_not_it():
    x = np.random.default_rng(0).normal(size=(100, 5))
    assert column_of(x, 3 * x[:, 2] - 1) == (2, pytest.approx(1 / 3))
    assert column_of(x, x[:, 2] + 0.01 * x[:, 0]) is None
    assert column_of(x, np.ones(100)) is None


def steps(high, row_of):
    """A loss of about 1 with jumps to 20."""
    noise = np.random.default_rng(0).normal(0, 0.05, 120)
    return [StepSeen(k, 20.0 if k in high else 1 + noise[k], row_of(k), 18.0 if k in high else 0.1,
                     0.9 if k in high else 0.1) for k in range(120)]


def test_jumps_of_one_row_and_of_many():
    high = {30, 50, 70, 90}
    found = jumps(steps(high, lambda k: 7), 500)
    assert found is not None
    assert (found.steps, found.rows) == ((30, 50, 70, 90), (7,))
    assert jumps(steps(high, lambda k: k), 50) is None
    assert jumps(steps(set(), lambda k: 7), 500) is None
    assert jumps([StepSeen(k, float("nan"), 0, 1.0, 1.0) for k in range(60)], 500) is None


def profiles(make, batches=6):
    random = np.random.default_rng(1)
    out = []
    for _ in range(batches):
        x = make(random.normal(size=(200, 6)))
        features = np.stack([x.mean(0), x.std(0)])
        out.append(Profile("x", (6,), "float32", float(x.min()), float(x.max()), 0.0, 0.0, float(x.mean()),
                           float(x.std()), features, np.zeros(0), len(x)))
    return together(out)


def test_relations_of_numbers():
    level = np.arange(6) * 3.0
    trained = profiles(lambda x: x + level)
    assert relation(trained, profiles(lambda x: x + level)) is None
    assert relation(trained, profiles(lambda x: 1.3 * x + level)) is None
    assert relation(trained, profiles(lambda x: 100 * (x + level))).kind == "scaled"
    assert relation(trained, profiles(lambda x: x + level[::-1])).kind == "permuted"
    assert relation(trained, profiles(lambda x: x + level + 2)).kind == "differs"
    filled = profiles(lambda x: np.where(np.arange(6) == 1, 0.0, x + level))
    assert relation(trained, filled).kind == "constant-features"


@pytest.mark.parametrize(("rows", "evaluated", "told"), [
    (7, 400, False), (1, 400, False), (700, 400, True), (700, 1, False), (40, 400, False),
])
def test_a_feature_that_is_rare_is_absent_from_a_small_part_by_chance(rows, evaluated, told):
    """Of 1,400 trained rows so many hold another value than 0 in one of 64 features; the others are alike."""
    random = np.random.default_rng(0)
    x = random.normal(size=(1400 + evaluated, 64))
    x[:, 5] = 0.0
    x[:rows, 5] = 1 / 16
    x[:1400] = random.permutation(x[:1400])
    found = relation(of_rows(x[:1400], 64), of_rows(x[1400:], 128))
    assert (found is not None and found.kind == "constant-features") is told
    again = relation(of_rows(x[:1400], 64), of_rows(np.tile(x[1400:], (12, 1)), evaluated))  # evaluated in each epoch
    assert (again is not None and again.kind == "constant-features") is told


def test_noise_that_evaluation_alone_adds_is_told_from_another_domain():
    random = np.random.default_rng(0)
    scale = random.uniform(0.0, 0.4, 64) * (np.arange(64) > 4)
    x = random.normal(size=(1800, 64)) * scale + 1
    trained, plain = of_rows(x[:1400], 64), x[1400:]
    noised = relation(trained, of_rows(plain + random.normal(size=plain.shape) * 0.4, 128))
    assert noised.kind == "noise-added"
    assert noised.measured["noise"] == pytest.approx(0.4, rel=0.05)
    assert "noise of standard deviation" in noised.text
    assert relation(trained, of_rows(plain, 128)) is None
    augmented = of_rows(x[:1400] + random.normal(size=(1400, 64)) * 0.4, 64)  # training alone: augmentation
    assert getattr(relation(augmented, of_rows(plain, 128)), "kind", "differs") == "differs"
    other = random.normal(size=(400, 64)) * scale[::-1] * 3 + 1
    assert getattr(relation(trained, of_rows(other, 128)), "kind", "") != "noise-added"


def of_rows(x, size):
    """Batches of so many of these rows."""
    return together([profile_of("x", x[k : k + size]) for k in range(0, len(x), size)])


def test_too_little_and_what_is_not_finite_say_nothing():
    one = profiles(lambda x: x, 1)
    assert relation(one, profiles(lambda x: 100 * x)) is None
    assert profiles(lambda x: x * np.nan) is None
    assert together([]) is None
