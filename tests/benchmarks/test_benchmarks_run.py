"""Every program in `benchmarks/` runs to its end in a small setting. What it measures there is not judged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SMALL = {
    "associations.py": (["--with", "1", "--without", "1", "--megabytes", "0.1"], "association first: 1/1", (0,)),
    "audit_false_alarms.py": (["--small"], "alarms at high or above", (0,)),
    "audit_peers.py": (["--small"], "| traindx audit |", (0,)),
    "corpus_record.py": (["--check"], "seen after rewriting", (0, 1)),
    "data_speed.py": (["0.2"], "npy", (0,)),
    "experiments.py": (["--experiments", "2", "--programs", "1"], "by hand (2 whole runs)", (0,)),
    "first_sight.py": (["{cases}", "--set", "small", "--level", "log", "--out", "{out}"], "right first", (0,)),
    "hook_latency.py": (["1"], "limit 60 ms", (0, 1)),
    "healthy_logs.py": (["--only", "generated 1", "--most", "400"], "0 with a false alarm", (0,)),
    "isolation.py": (["--only", "command line"], "found exactly: 1/1", (0,)),
    "jax_origins.py": (["--only", "log_of_zero"], "exact equation and line: 1/1", (0,)),
    "jax_overhead.py": (["--rounds", "1", "--steps", "1", "--model", "mlp"], "traindx always on", (0, 1)),
    "mangled.py": (["--count", "20", "--workers", "1", "--seed", "3"], "0 crashes or stalls", (0,)),
    "large_faults.py": (["2", "--only", "NaN"], "a NaN                       found", (0,)),
    "many_ranks.py": (["--ranks", "24", "--steps", "40", "--workers", "1", "--only", "shape"], "right 1/1", (0,)),
    "measure_precision.py": (["--out", "{out}"], "", (0,)),
    "nonfinite_origins.py": (["--only", "log_of_zero"], "exact operation and line: 1/1", (0,)),
    "observation_cost.py": (["--pairs", "2", "--only", "cnn"], "default probes", (0, 1)),
    "public_programs.py": ([], "", (0,)),
    "read_speed.py": (["0.02"], "diagnose", (0,)),
    "readers.py": (["--megabytes", "0.2", "--only", "logged,events"], "of its rival's speed", (0,)),
    "session_prompts.py": ([], "whole session (limit 12,000)", (0,)),
    "skill_cost.py": ([], "tokens in", (0, 1)),
    "startup.py": (["1"], "traindx --help", (0,)),
    "symptoms_understood.py": (["{cases}"], "1", (0,)),
    "torch_overhead.py": (["--pairs", "2", "--model", "mlp", "--only", "sentinel"], "traindx sentinel", (0, 1)),
    "weights_speed.py": (["--gigabytes", "0.02", "--sparse", "0.02"], "of memory at most (goal 1)", (0,)),
}
"""The arguments, a text that stands in what it prints at the end, and the exit codes of a run that came to its end (1
says that a limit of time was exceeded, which a busy machine may)."""
SLOW = {"associations.py", "audit_peers.py", "corpus_record.py", "data_speed.py", "experiments.py", "isolation.py",
        "jax_origins.py", "jax_overhead.py", "large_faults.py", "nonfinite_origins.py", "observation_cost.py",
        "readers.py", "skill_cost.py", "startup.py", "torch_overhead.py", "weights_speed.py"}  # fmt: skip
NEEDS = {"jax_origins.py": ("jax",), "jax_overhead.py": ("jax", "flax", "optax"), "nonfinite_origins.py": ("torch",),
         "observation_cost.py": ("torch",), "torch_overhead.py": ("torch",)}  # fmt: skip


def ran(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, str(BENCHMARKS / name), *arguments], capture_output=True, text=True,
                          check=False, env=environment)  # fmt: skip


def test_every_benchmark_has_a_small_setting() -> None:
    assert {p.name for p in BENCHMARKS.glob("*.py")} == set(SMALL)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in SMALL])
def test_runs_to_its_end(name: str, tmp_path: Path) -> None:
    for needed in NEEDS.get(name, ()):
        pytest.importorskip(needed)
    arguments, said, codes = SMALL[name]
    cases = Path(__file__).resolve().parents[1] / "evals" / "cases"
    shutil.copytree(next(iter(sorted(cases.iterdir()))), tmp_path / "cases" / "one")
    places = {"cases": tmp_path / "cases", "out": tmp_path / "out.json"}
    done = ran(name, *(a.format(**places) for a in arguments))
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode in codes, done.stderr[-2000:]
    assert said in done.stdout
    assert places["out"].exists() is ("{out}" in arguments)


def test_a_package_that_is_not_there_is_one_line() -> None:
    done = ran("audit_false_alarms.py", "no_such_package")
    assert done.returncode == 1
    assert done.stderr.strip() == "no_such_package: neither a path nor an installed package; pip install it first"


def test_nothing_to_audit_is_bad_usage() -> None:
    done = ran("audit_false_alarms.py")
    assert done.returncode == 2
    assert "--checkout FOLDER" in done.stderr.splitlines()[-1]


def test_a_checkout_is_held_beside_what_was_judged(tmp_path: Path) -> None:
    """A repository of the list is audited where it lies; the others are named, and a false alarm is exit code 1."""
    home = tmp_path / "pytorch" / "examples" / "dcgan"
    home.mkdir(parents=True)
    loop = "for x, y in loader:\n    loss = model(x).sum()\n    loss.backward()\n    opt.step()\n"
    (home / "main.py").write_text(
        "import torch\nmodel = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "loader = torch.utils.data.DataLoader([1, 2])\n" + loop
    )
    done = ran("audit_false_alarms.py", "--checkout", str(tmp_path), "--rules", "C101", "--show")
    assert "| pytorch/examples | 77f55b912142 | 1 | 1 |" in done.stdout
    assert "not judged" in done.stdout
    assert "karpathy/nanoGPT: no folder" in done.stderr
    assert done.returncode == 1


def test_judgements_are_of_listed_programs() -> None:
    rows = json.loads((BENCHMARKS / "judgements/public_programs.json").read_text())
    listed = (BENCHMARKS / "public_programs.toml").read_text()
    assert rows
    for row in rows:
        repository, _, rest = row["program"].partition("@")
        commit, _, path = rest.partition(":")
        assert f'name = "{repository}"\ncommit = "{commit}"' in listed
        assert path
        assert row["judgement"] in ("true", "false", "overrated")
        assert row["severity"] in ("medium", "high", "critical")


@pytest.mark.parametrize(("arguments", "said"), [(["--folder", "{file}/below"], "expected a folder"),
                                                 (["--only", "no_such_format"], "expected some of")])
def test_what_the_readers_cannot_take_is_told_in_a_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    done = ran("readers.py", *(a.format(file=file) for a in arguments))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_for_the_readers_that_is_not_there_is_made(tmp_path: Path) -> None:
    done = ran("readers.py", "--megabytes", "0.05", "--rounds", "1", "--only", "logged", "--folder",
               str(tmp_path / "new" / "one"))
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "new" / "one").iterdir())
