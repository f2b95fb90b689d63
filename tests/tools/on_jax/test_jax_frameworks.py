"""flax linen, nnx, equinox, optax and orbax under the instruments: same bits, the fault named, whole ones silent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "planted"))

import jax
import jax.numpy as jnp
import jax_programs as programs
from watching import origin_of, watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.probes.keys import Keys

TEXT = Path(programs.__file__).read_text(encoding="utf-8").splitlines()
Program = Callable[[bool, Path], bytes]


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


CASES = [("linen", "flax", "J702"), ("equinox", "equinox", "J203"), ("scheduled", "optax", "J701"),
         ("orbax", "orbax.checkpoint", "J701")]
MARKED = [c if c[0] == "scheduled" else pytest.param(*c, marks=pytest.mark.slow) for c in CASES]


def both(name: str, fault: bool, folder: Path) -> list[Finding]:
    """What is seen of a program, whose results are compared with those of a run without instruments."""
    program: Program = getattr(programs, name)
    kept: list[Any] = []
    found = watched(lambda: kept.append(program(fault, folder / "watched")), Settings(str(folder / "run"), ("always",)))
    assert kept == [program(fault, folder / "plain")]
    return [f for f in found if f.severity.rank >= 2]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "package", "rule"), MARKED)
def test_the_fault_is_named_and_the_results_are_the_same(name: str, package: str, rule: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    found = both(name, True, tmp_path)
    assert [f.rule for f in found] == [rule]
    if rule != "J701":
        assert found[0].where.line == line(name)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "package"), [*((c[0], c[1]) for c in CASES), ("nnx", "flax.nnx")])
def test_the_healthy_twin_is_silent_and_its_results_are_the_same(name: str, package: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    assert both(name, False, tmp_path) == []


@pytest.mark.slow
def test_the_origin_inside_nnx_jit_is_named(tmp_path: Path) -> None:
    pytest.importorskip("flax.nnx")
    found = origin_of(lambda: programs.nnx(True, tmp_path), tmp_path)
    assert found is not None
    assert (found.where.line, found.where.step, found.measured["reason"]) == (line("nnx"), 7, "log-of-zero")


def test_a_fault_of_an_instrument_costs_itself_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(Keys, "compiled", broken)
    kept: list[Any] = []

    def program() -> None:
        step = jax.jit(lambda x: x * 2)
        kept.extend(float(step(jnp.float32(i))) for i in range(5))

    watched(program, Settings(str(tmp_path), ("always",)))
    assert kept == [0.0, 2.0, 4.0, 6.0, 8.0]
    said = [x for x in capsys.readouterr().err.splitlines() if "is off" in x]
    assert said == ["traindx: the probe keys is off: ZeroDivisionError: ours; the training goes on"]
