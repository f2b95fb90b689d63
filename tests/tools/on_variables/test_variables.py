"""Variables of a running program: stored entries that change, digits that a number format cannot hold."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from traindx_tools.live.reading import read_folder
from traindx_tools.live.settings import Settings, environment_for
from traindx_tools.on_variables.digits import judged, lost_digits
from traindx_tools.on_variables.equal import Equal, EqualArrays
from traindx_tools.on_variables.look import History, parts_of
from traindx_tools.on_variables.rules import v101_stored_items_change, v102_digits_lost
from traindx_tools.on_variables.stored import StoredItems
from traindx_tools.on_variables.watch import VariablesWatch

PLACE = ("train.py", "main", "memory")


class Transition(NamedTuple):
    """As a program of its own would have it."""

    state: np.ndarray
    reward: float
    next_state: np.ndarray


def found(looks):
    """What is told of these entries, look by look; a look is a function that stores and changes."""
    items, seen = StoredItems(), []
    for step, entries in enumerate(looks):
        history = History(PLACE, total=len(entries), entries=list(entries))
        seen += items.look(step, {PLACE: history})
    return list(v101_stored_items_change.check(seen))


def episodes(copied, changes=True):
    """Two looks into an episode whose environment changes its state in place."""
    state, entries = np.zeros(3), []
    for step in range(40):
        entries.append(Transition(state.copy() if copied else state, 1.0, state.copy() if copied else state))
        if changes:
            state += 1
        if step in (19, 39):
            yield list(entries)


def test_an_array_that_is_written_to_after_it_was_stored():
    (told,) = found(episodes(copied=False))
    assert told.rule == "V101"
    assert (told.measured["arrays"], told.measured["entries"], told.measured["changed"]) == (1, 40, 1)
    assert told.measured["twin"] == ".next_state"


def test_copies_and_shared_constants_are_left_alone():
    assert not found(episodes(copied=True))
    goal = np.ones(3)
    looks = ([(np.full(3, i), goal) for i in range(n)] for n in (20, 40))
    assert not found(looks)
    tall = np.arange(300.0).reshape(100, 3)
    assert not found([[tall[i] for i in range(n)] for n in (20, 40)])


def test_a_frame_that_is_the_next_state_of_one_step_and_the_state_of_another_is_no_alias():
    frames = [np.full(3, i, float) for i in range(41)]
    assert not found([[(frames[i], frames[i + 1]) for i in range(n)] for n in (20, 40)])


def test_arrays_of_a_list_of_fixed_length_may_be_updated_in_place():
    bank = np.zeros(4)
    entries = [{"bank": bank, "row": np.full(2, i)} for i in range(32)]

    def looks():
        yield entries
        bank[:] += 1
        yield entries

    assert not found(looks())


def test_a_buffer_that_is_filled_anew_and_appended():
    torch = pytest.importorskip("torch")
    buffer, kept = torch.zeros(2, 5), []

    def looks():
        for _ in range(2):
            for _ in range(20):
                buffer.copy_(torch.rand(2, 5))
                kept.append(buffer)
            yield list(kept)

    (told,) = found(looks())
    assert told.measured["part"] == "the entry"


def test_an_episode_that_is_over_is_known_by_its_equal_parts():
    entries = []

    def looks():
        for _ in range(2):
            for _ in range(4):
                state = np.random.default_rng(0).random(3)
                entries.extend((state, 0, state) for _ in range(10))
            yield list(entries)

    (told,) = found(looks())
    assert (told.measured["changed"], told.measured["twin"]) == (0, "[2]")
    pairs = [(x, x) for x in np.random.default_rng(0).random((40, 3))]
    assert not found([pairs[:20], pairs])  # an autoencoder's pairs: each array in one entry


def test_parts_are_arrays_in_the_host_memory_without_gradient():
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.zeros(3))
    assert dict(parts_of((np.zeros(2), 1.0, weight, "a", torch.ones(2)))).keys() == {"[0]", "[4]"}
    assert not list(parts_of(torch.nn.Linear(2, 2)))
    assert not list(parts_of(np.array(1.0)))
    assert not list(parts_of(np.array([None, "a"])))


TIMES = 1.7e9 + 10.0 * np.arange(2000)


def test_times_in_single_precision_lose_their_digits():
    (told,) = lost_digits(TIMES.astype(np.float32))
    assert (told.step, told.rows, told.distinct) == (128.0, 2000, 157)
    table = np.stack([np.random.default_rng(0).random(2000), TIMES], 1).astype(np.float32)
    assert [d.column for d in lost_digits(table)] == ["[:, 1]"]
    finding, = v102_digits_lost.check([(PLACE, told)])
    assert "steps of 128" in finding.statement


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_what_fits_or_has_no_offset_is_left_alone(dtype):
    rng = np.random.default_rng(0)
    for column in (rng.normal(size=500), rng.normal(size=500) * 1e9, np.exp(rng.normal(size=500) * 3 + 15),
                   np.full(500, 2e9), np.array([]), np.full(500, np.nan), np.array([1e30] * 499 + [np.inf])):
        assert judged("", dtype, column) is None
    hours = (1.7e9 + 36_000 * np.arange(500)).astype(np.float32)
    assert not list(lost_digits(hours))
    assert not list(lost_digits(TIMES))
    assert not list(lost_digits((TIMES - TIMES[0]).astype(np.float32)))


def test_tensors_of_half_precision():
    torch = pytest.importorskip("torch")
    years = torch.arange(2000, 2100).repeat(3).to(torch.bfloat16)
    assert [d.dtype for d in lost_digits(years)] == ["bfloat16"]


def test_tables_of_pandas():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"t": TIMES.astype(np.float32), "v": np.arange(2000, dtype=np.float32), "name": "a"})
    assert [d.column for d in lost_digits(table)] == ["['t']"]
    assert [d.column for d in lost_digits(table["t"])] == [""]
    assert not list(lost_digits(pandas.DataFrame()))


PROGRAM = """
import numpy as np
from collections import deque
{imports}
class Env:
    def reset(self):
        self.state = np.random.rand(4).astype(np.float32)
        return self.state
    def step(self):
        self.state += 0.1
        return self.state
memory, copied = deque(maxlen=2000), {copied}
def store(*parts):
    memory.append(tuple(p.copy() if copied else p for p in parts))
def main():
    env, times = Env(), (1.7e9 + np.arange(500) * 10).astype(np.{dtype})
    {setup}
    for episode in range(24):
        state = env.reset()
        for _ in range(10):
            after = env.step()
            store(state, after)
            state = after
            x = np.stack([m[0] for m in list(memory)[-10:]])
            {step}
main()
"""
TORCH = {
    "imports": "import torch", "setup": "net = torch.nn.Linear(4, 1); opt = torch.optim.SGD(net.parameters(), 1e-3)",
    "step": "opt.zero_grad(); net(torch.tensor(x)).pow(2).mean().backward(); opt.step()",
}
JAX = {
    "imports": "import jax, jax.numpy as jnp",
    "setup": "w = jnp.ones((4, 1)); loss = lambda v, x: ((x @ v) ** 2).mean(); "
             "step = jax.jit(lambda w, x: w - 1e-3 * jax.grad(loss)(w, x))",
    "step": "w = step(w, x if len(x) == 10 else np.zeros((10, 4), np.float32))",
}


def run(tmp_path: Path, framework: dict[str, str], copied: bool, dtype: str) -> set[str]:
    (tmp_path / "train.py").write_text(PROGRAM.format(**framework, copied=copied, dtype=dtype))
    given = environment_for(Settings(str(tmp_path / "live"), probes=("variables",)), dict(os.environ))
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=given, check=True, capture_output=True, timeout=300)
    return {f.rule for f in read_folder(tmp_path / "live").seen_from(tmp_path)}


@pytest.mark.slow
@pytest.mark.parametrize("framework", [TORCH, JAX], ids=["torch", "jax"])
def test_a_program_of_each_framework(tmp_path: Path, framework: dict[str, str]) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "good").mkdir()
    assert run(tmp_path / "bad", framework, copied=False, dtype="float32") == {"V101", "V102"}
    assert run(tmp_path / "good", framework, copied=True, dtype="float64") == set()


def test_a_deque_that_turns_over_is_a_history_too():
    kept, state = deque(maxlen=20), np.zeros(2)

    def looks():
        for _ in range(3):
            for _ in range(20):
                kept.append((state, len(kept)))
                state[:] += 1
            yield list(kept)

    assert [f.rule for f in found(looks())] == ["V101"]


def pairs_of(*looks):
    """What is told of arrays of one object, look by look: name and array."""
    seen, told, kept = EqualArrays(), [], {name: array.copy() for name, array in looks[0].items()}
    for step, arrays in enumerate(looks):
        for name, array in arrays.items():
            kept[name][:] = array
        told += seen.look(step, [(("train.py", "", name), kept[name]) for name in arrays])
    return [(e.one[2], e.other[2]) for e in told]


def test_two_arrays_that_are_filled_with_the_same_rows():
    rng = np.random.default_rng(0)
    one, two = np.zeros((64, 2)), np.zeros((64, 2))
    one[:32] = rng.random((32, 2))
    two[:64] = rng.random((64, 2))
    assert pairs_of({"m.s": one, "m.s2": one}, {"m.s": two, "m.s2": two}) == [("m.s", "m.s2")]
    (finding,) = v101_stored_items_change.check((), [Equal(("t.py", "", "m.s"), ("t.py", "", "m.s2"), 64, 64, 0, 1)])
    assert finding.measured["kind"] == "equal-arrays"


@pytest.mark.parametrize("shift", [0, 1])
def test_a_memory_of_uninitialised_rows_is_judged_by_the_rows_that_were_written(shift):
    rng = np.random.default_rng(0)
    states = rng.random((201, 3))
    one, two = rng.random((2, 5000, 3))  # what the memory held before: no row of the one is that of the other
    seen, told, at = EqualArrays(), [], 0
    for step, until in ((4, 60), (8, 120), (16, 200)):
        while at < until:
            one[at], two[at] = states[at], states[at + shift]
            at += 1
        told += seen.look(step, [(("rl.py", "", "memory.obs"), one), (("rl.py", "", "memory.nxt"), two)])
    assert [(e.one[2], e.other[2], e.step) for e in told] == [] if shift else [("memory.obs", "memory.nxt", 16)]


def test_what_is_made_anew_at_each_look_is_no_memory():
    seen, told = EqualArrays(), []
    kept = []
    for step in range(4):
        now = np.random.default_rng(step).random((32, 2))
        kept.append((now, now.copy()))  # the observation of the step before, kept apart: equal at the end of each step
        told += seen.look(step, [(("e.py", "", "env.now"), now), (("e.py", "", "env.last"), kept[-1][1])])
    assert not told


def test_a_series_and_half_precision_among_the_arrays_end_nothing():
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    series = pandas.Series(np.arange(32.0))
    low, same = torch.zeros(32, 2, dtype=torch.bfloat16), torch.zeros(32, 2, dtype=torch.bfloat16)
    seen, told = EqualArrays(), []
    for step in range(3):
        low[:] = same[:] = torch.randn(32, 2, generator=torch.Generator().manual_seed(step))
        told += seen.look(step, [(("t.py", "", "d.y"), series), (("t.py", "", "d.z"), series),
                                 (("t.py", "", "d.a"), low), (("t.py", "", "d.b"), same)])
    assert {(e.one[2], e.other[2]) for e in told} == {("d.a", "d.b")}


def test_arrays_that_are_never_written_to_or_of_two_objects_or_constant_say_nothing():
    rows, later = np.random.default_rng(0).random((2, 64, 2))
    assert not pairs_of({"d.x": rows, "d.y": rows}, {"d.x": rows, "d.y": rows})
    assert not pairs_of({"a.x": rows, "b.x": rows}, {"a.x": later, "b.x": later})
    assert not pairs_of({"m.s": rows, "m.s2": rows[::-1]}, {"m.s": later, "m.s2": later[::-1]})
    assert not pairs_of(*({"m.s": np.full((64, 2), i), "m.s2": np.full((64, 2), i)} for i in (1.0, 2.0)))
    assert not pairs_of({"m.s": rows, "m.s2": np.array(["a"] * 64)}, {})


def only(monkeypatch, **variables):
    """A look sees these alone: the process of the tests holds the variables of hundreds of modules."""
    found = [(__file__, "main", name, value) for name, value in variables.items()]
    monkeypatch.setattr("traindx_tools.on_variables.look.roots", lambda: iter(found))


def test_moments_of_two_parameters_with_one_gradient_are_the_optimizer_s_own(monkeypatch):
    torch = pytest.importorskip("torch")
    net = torch.nn.LSTM(2, 16)  # the two biases of a gate get the same gradient at each step
    optimizer = torch.optim.Adam(net.parameters())
    watch = VariablesWatch()
    only(monkeypatch, net=net, opt=optimizer)
    for step in range(1, 9):
        optimizer.zero_grad()
        net(torch.randn(5, 3, 2, generator=torch.Generator().manual_seed(step)))[0].pow(2).mean().backward()
        optimizer.step()
        watch.stepped(step)
    moments = [state["exp_avg"] for state in optimizer.state.values()]
    assert torch.equal(moments[2], moments[3])
    assert not list(watch.findings())


def test_two_arrays_of_an_object_of_the_program_are_found_by_a_look(monkeypatch):
    class Memory:
        def __init__(self):
            self.state, self.after = np.zeros((32, 3)), np.zeros((32, 3))

    memory, watch = Memory(), VariablesWatch()
    only(monkeypatch, memory=memory)
    for step in range(1, 9):
        memory.state[:] = memory.after[:] = np.random.default_rng(step).normal(size=(32, 3))
        watch.stepped(step)
    (told,) = watch.findings()
    assert told.measured["kind"] == "equal-arrays"
