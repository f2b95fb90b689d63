"""Files of one model beside each other (conversions, averages, earlier parts); modules of a kind; moments."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import of_run

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
WIDTH, BLOCKS = 24, 4
Tensors = dict[str, "torch.Tensor"]


def told(rule: str, *files: Path) -> list[Finding]:
    return [f for f in of_run([str(f) for f in files]).findings if f.rule == rule]


def net(seed: int, step: float = 0.0) -> Tensors:
    """A stack of blocks; those of one seed lie `step` apart from each other."""
    made = {}
    for i in range(BLOCKS):
        for name, shape in (("up", (2 * WIDTH, WIDTH)), ("down", (WIDTH, 2 * WIDTH))):
            start, way = (torch.randn(shape, generator=torch.Generator().manual_seed(s + i + 100 * len(name)))
                          for s in (seed, 1000 + int(step)))
            made[f"blocks.{i}.{name}.weight"] = start / 5 + way * (0.02 if step else 0.0)
    return made


def saved(path: Path, tensors: Tensors, step: int | None = None) -> Path:
    torch.save({"model": tensors} | ({} if step is None else {"step": step}), path)
    return path


# W160: what two tensors of a module have to do with each other


def flows(wrong: int | None, bound: bool = True) -> Tensors:
    """Permutations and their inverses; in module `wrong` that of another, or anywhere where they are not bound."""
    orders = [torch.randperm(12, generator=torch.Generator().manual_seed(i)) for i in range(5)]
    made = {}
    for i, order in enumerate(orders):
        other = orders[(i + 1) % 5] if i == wrong or not bound else order
        made |= {f"flows.{i}.perm": order, f"flows.{i}.inverse": torch.argsort(other),
                 f"flows.{i}.net.weight": net(i)["blocks.0.up.weight"]}
    return made


def test_an_inverse_order_of_another_module(tmp_path: Path) -> None:
    (found,) = told("W160", saved(tmp_path / "flow.pt", flows(wrong=2)))
    assert (found.severity, found.measured["name"].rpartition(".")[0]) == (Severity.HIGH, "flows.2")


@pytest.mark.parametrize("bound", [True, False])
def test_orders_that_fit_or_were_drawn_each_by_itself(bound: bool, tmp_path: Path) -> None:
    assert told("W160", saved(tmp_path / "flow.pt", flows(None, bound))) == []


# W161: a file that was made from another one


def exported(source: Tensors, path: Path) -> Path:
    turned = {f"layers.{n.split('.', 1)[1]}": t.T.contiguous().half() for n, t in source.items()}
    safetensors.save_file(turned, path)
    return path


def test_a_tensor_that_was_converted_otherwise(tmp_path: Path) -> None:
    source = net(1)
    sound = saved(tmp_path / "model.pt", source)
    turned = source | {"blocks.2.up.weight": source["blocks.2.up.weight"].flip(0)}
    (found,) = told("W161", sound, exported(turned, tmp_path / "out.safetensors"))
    assert (found.severity, found.measured["name"]) == (Severity.HIGH, "layers.2.up.weight")


def test_a_tensor_of_another_block(tmp_path: Path) -> None:
    source = net(1)
    other = source | {"blocks.3.down.weight": source["blocks.1.down.weight"].clone()}
    found = told("W161", saved(tmp_path / "model.pt", source), exported(other, tmp_path / "out.safetensors"))
    assert [f.measured["name"] for f in found] == ["layers.3.down.weight"]


def test_conversions_that_are_sound_and_models_that_are_no_conversion(tmp_path: Path) -> None:
    sound = saved(tmp_path / "model.pt", net(1))
    assert told("W161", sound, exported(net(1), tmp_path / "out.safetensors")) == []
    assert told("W161", sound, exported(net(9), tmp_path / "other.safetensors")) == []


@pytest.mark.parametrize("first", ["model.pt", "out.pt"])
def test_which_file_is_the_older_one_says_nothing(first: str, tmp_path: Path) -> None:
    """Both are of one width: the one that holds a block of the other twice is told, whichever was written first."""
    source = net(1)
    other = {n: t.T.contiguous() for n, t in source.items()}
    other["blocks.3.down.weight"] = other["blocks.1.down.weight"].clone()
    files = saved(tmp_path / "model.pt", source), saved(tmp_path / "out.pt", other)
    for file in files:
        os.utime(file, (1e9, 1e9) if file.name == first else (1.5e9, 1.5e9))
    (found,) = told("W161", *files)
    assert (Path(found.where.file or "").name, found.measured["name"]) == ("out.pt", "blocks.3.down.weight")


def test_which_of_two_was_made_is_left_open_where_nothing_tells(tmp_path: Path) -> None:
    source = net(1)
    other = {n: t.T.contiguous() for n, t in source.items()}
    other["blocks.2.up.weight"] = source["blocks.2.up.weight"].flip(0)
    found = told("W161", saved(tmp_path / "model.pt", source), saved(tmp_path / "out.pt", other))
    assert [f.statement.endswith("which of the two was made from the other, the values do not say") for f in found] == [
        True]


# W162: a part that went back


def series(folder: Path, back: str = "") -> list[Path]:
    """Three steps of a run; the tensors called `back` of the last are those of the first."""
    states = {s: net(3, s) for s in (100, 200, 300)}
    states[300] |= {n: t for n, t in states[100].items() if back and back in n}
    return [saved(folder / f"step_{s}.pt", tensors, s) for s, tensors in states.items()]


def test_a_part_that_went_back(tmp_path: Path) -> None:
    (found,) = told("W162", *series(tmp_path, "blocks.1"))
    assert (found.severity, found.measured["tensors"], found.measured["step"]) == (Severity.HIGH, 2, 100)


def test_runs_that_go_on_and_copies_of_whole_files(tmp_path: Path) -> None:
    files = series(tmp_path)
    assert told("W162", *files) == []
    assert told("W162", *files, saved(tmp_path / "step_400.pt", net(3, 100), 400)) == []


# W163: sums of the others


def soup(folder: Path, odd: float, total: float = 3.0) -> list[Path]:
    members = [net(3, s) for s in (100, 200, 300)]
    mean = {n: sum(m[n] for m in members) / total for n in members[0]}
    mean["blocks.2.up.weight"] = mean["blocks.2.up.weight"] * odd
    return [*(saved(folder / f"step_{k}.pt", m, k) for k, m in zip((100, 200, 300), members, strict=True)),
            saved(folder / "soup.pt", mean)]


def test_a_tensor_that_was_averaged_otherwise(tmp_path: Path) -> None:
    (found,) = told("W163", *soup(tmp_path, 1.5))
    assert (found.severity, found.measured["name"]) == (Severity.HIGH, "blocks.2.up.weight")
    assert found.measured["factor"] == pytest.approx(1.5, abs=0.01)


def test_shares_that_do_not_add_up(tmp_path: Path) -> None:
    (found,) = told("W163", *soup(tmp_path, 1.0, total=2.0))
    assert (found.measured["kind"], found.measured["factor"]) == ("total", pytest.approx(1.5, abs=0.01))


def test_an_even_average_and_one_of_files_that_are_gone(tmp_path: Path) -> None:
    files = soup(tmp_path, 1.0)
    assert told("W163", *files) == []
    assert told("W163", *files[:3], saved(tmp_path / "ema.pt", net(3, 700))) == []


# W140: moments of another network


def state(path: Path, made: int, step: int, foreign: bool, units: int = 48) -> Path:
    """A small network after some steps, with its own optimizer's state or that of another one."""
    def trained(seed: int, steps: int) -> tuple[Tensors, dict[str, object]]:
        torch.manual_seed(seed)
        model = torch.nn.Sequential(*(m for i, o in ((8, units), (units, units), (units, units), (units, 3))
                                      for m in (torch.nn.Linear(i, o), torch.nn.Tanh())))[:-1]
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        rows = torch.randn(512, 8)
        wanted = torch.sin(2 * rows[:, :3]) + rows[:, 3:6] * rows[:, :3]
        for at in range(steps):
            some = slice(at * 32 % 512, at * 32 % 512 + 32)
            optimizer.zero_grad()
            ((model(rows[some]) - wanted[some]) ** 2).mean().backward()
            optimizer.step()
        return model.state_dict(), optimizer.state_dict()

    weights, own = trained(1, made)
    torch.save({"model": weights, "optimizer": trained(2, made)[1] if foreign else own, "step": step}, path)
    return path


def test_moments_of_another_network(tmp_path: Path) -> None:
    (found,) = told("W140", state(tmp_path / "state.pt", 120, 450, foreign=True))
    assert (found.severity, found.measured["kind"], found.measured["what"]) == (Severity.HIGH, "foreign", "optimizer")


@pytest.mark.parametrize(("step", "foreign", "units"), [(450, False, 48), (120, True, 48), (450, True, 12)])
def test_an_optimizer_of_a_phase_of_its_own(step: int, foreign: bool, units: int, tmp_path: Path) -> None:
    assert told("W140", state(tmp_path / "state.pt", 120, step, foreign, units)) == []


def test_moments_that_are_not_finite(tmp_path: Path) -> None:
    path = state(tmp_path / "state.pt", 30, 450, foreign=True)
    held = torch.load(path, weights_only=True)
    for one in held["optimizer"]["state"].values():
        one["exp_avg_sq"].fill_(np.nan)
    torch.save(held, path)
    assert told("W140", path) == []


def test_files_that_are_cut(tmp_path: Path) -> None:
    files = [*series(tmp_path, "blocks.1"), exported(net(1), tmp_path / "out.safetensors")]
    for path in files[1:]:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert [f.rule for f in of_run([str(f) for f in files]).findings if f.rule in ("W161", "W162", "W163")] == []
