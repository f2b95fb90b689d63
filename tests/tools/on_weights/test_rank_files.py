"""Files of ranks: two that are the same, parts that are not the model's, and folders of them within a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.examine import examine as diagnose
from traindx_tools.finding import Finding
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.checkpoint_folders import folders_of, without_rank

torch = pytest.importorskip("torch")
Parts = list[Any]


def zero(folder: Path, change: Callable[[Parts], Parts] = list, *, ranks: int = 4, moved: tuple[str, ...] = (),
         form: str = "zero_pp_rank_{}_mp_rank_00_optim_states.pt", dtype: Any = torch.bfloat16,
         steps: Sequence[int] = (90,) * 8) -> Path:
    """A model in half precision and, in a file a rank, the slices of its float32 weights and of their moments."""
    torch.manual_seed(0)
    shapes = {f"blocks.{i}.{n}": s for i in range(4) for n, s in (("w1", (48, 24)), ("b1", (48,)), ("w2", (24, 48)))}
    weights = {n: 0.1 * torch.randn(s) for n, s in shapes.items()}
    flat = torch.cat([w.reshape(-1) for w in weights.values()])
    flat = torch.cat([flat, torch.zeros(-len(flat) % ranks)])
    parts = change([(c.clone(), 1e-3 * torch.randn(len(c)), torch.rand(len(c))) for c in flat.chunk(ranks)])
    folder.mkdir(parents=True)
    module = {n: (w + 0.01 if n.startswith(moved) and moved else w).to(dtype) for n, w in weights.items()}
    torch.save({"module": module, "global_steps": 90}, folder / "mp_rank_00_model_states.pt")
    for i, (master, mean, square) in enumerate(parts):
        torch.save({"optimizer_state_dict": {
            "single_partition_of_fp32_groups": [master], "zero_stage": 1,
            "base_optimizer_state": {"state": {0: {
                "step": torch.tensor(float(steps[i])), "exp_avg": mean, "exp_avg_sq": square}},
                                     "param_groups": [{"lr": 1e-3, "params": [0]}]}}}, folder / form.format(i))
    return folder


def told(folder: Path) -> list[Finding]:
    report = examine(folder)
    assert not [n for n in report.notes if "failed" in n]
    assert {f.rule for f in report.findings} <= {"W139"}
    return list(report.findings)


@pytest.mark.parametrize("form", ["zero_pp_rank_{}_mp_rank_00_optim_states.pt", "optimizer_rank{}.pt", "rank-{}.pt"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_rank_that_was_overwritten_by_another_one(form: str, dtype: Any, tmp_path: Path) -> None:
    found = told(zero(tmp_path / "step90", lambda p: [p[0], p[1], p[1], p[3]], form=form, dtype=dtype))
    assert [f.measured["kind"] for f in found] == ["copies", "master"]
    assert found[0].measured["files"] == (form.format(1), form.format(2))
    assert found[1].measured["file"] == form.format(2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_weights_of_another_step_than_their_parts(dtype: Any, tmp_path: Path) -> None:
    (found,) = told(zero(tmp_path / "step90", moved=("blocks.2",), dtype=dtype))
    assert found.measured["kind"] == "master"
    assert "blocks.2.w1" in found.statement


@pytest.mark.parametrize("change", [
    list, lambda p: [p[0]] * 4, lambda p: [p[0], p[0], p[1], p[1]], lambda p: [p[0], p[1]], lambda p: [p[0]],
])
def test_parts_that_are_whole_and_copies_by_design(change: Callable[[Parts], Parts], tmp_path: Path) -> None:
    assert not [f for f in told(zero(tmp_path / "a", change)) if f.measured["kind"] == "copies"]


def test_parts_that_are_the_model_and_other_models_beside_them(tmp_path: Path) -> None:
    assert told(zero(tmp_path / "a")) == []
    assert told(zero(tmp_path / "b", moved=("blocks",))) == []  # a model of quite another step
    assert told(zero(tmp_path / "c", lambda p: [(torch.zeros(len(q[0])), *q[1:]) for q in p])) == []


def test_a_folder_of_ranks_is_read_as_one_within_a_run(tmp_path: Path) -> None:
    zero(tmp_path / "global_step90", lambda p: [p[0], p[1], p[1], p[3]])
    (tmp_path / "run.log").write_text("\n".join(f"step {i} loss {2 * 0.99**i:.4f}" for i in range(90)))
    assert {f.rule for f in diagnose([tmp_path]).findings if f.rule.startswith("W")} == {"W139"}
    (tmp_path / "global_step90" / "zero_pp_rank_2_mp_rank_00_optim_states.pt").write_bytes(b"PK\x03\x04cut")
    diagnose([tmp_path])  # a file that is damaged ends nothing


def test_names_of_ranks() -> None:
    assert without_rank("bf16_zero_pp_rank_12_mp_rank_00_optim_states.pt") == without_rank(
        "bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt")
    assert without_rank("lora_rank16.pt") != "lora_rank16.pt"
    assert folders_of(["a/model.pt", "a/rank.pt", "-", "s3://b/rank_0.pt", "s3://b/rank_1.pt"]) == {}
    assert set(folders_of(["c/7/_METADATA", "c/8/default/_METADATA", "d/__0_0.distcp"])) == {"c/7", "c/8", "d"}


def test_a_rank_of_an_earlier_step(tmp_path: Path) -> None:
    def older(parts: Parts) -> Parts:
        return [(m + 0.02 * torch.randn(len(m)) if i == 2 else m, *rest) for i, (m, *rest) in enumerate(parts)]

    found = told(zero(tmp_path / "a", older, steps=(90, 90, 45, 90)))
    assert [f.measured["kind"] for f in found] == ["master", "steps"]
    assert {f.measured.get("file", f.measured["name"]) for f in found} == {
        "zero_pp_rank_2_mp_rank_00_optim_states.pt"}
    assert [f.measured["kind"] for f in told(zero(tmp_path / "b", older))] == ["master"]


@pytest.mark.parametrize("steps", [(90, 90, 45, 45), (90, 80, 70, 60)])
def test_steps_of_ranks_without_a_majority(steps: tuple[int, ...], tmp_path: Path) -> None:
    assert told(zero(tmp_path / "a", steps=steps)) == []


def tensor_parallel(folder: Path, *, older: int = -1, ranks: int = 4, average: bool = False,
                    own: bool = False) -> Path:
    """A slice of each matrix in a file a rank, and the scales and biases, which every rank keeps whole."""
    generator = torch.Generator().manual_seed(2)
    first = {f"h.{i}.{n}": 0.2 * torch.randn(s, generator=generator)
             for i in range(3) for n, s in (("fc.weight", (96, 64)), ("out.bias", (64,)), ("norm.weight", (64,)))}
    last = {n: t + 0.05 * torch.randn(t.shape, generator=generator) for n, t in first.items()}
    folder.mkdir(parents=True)
    for rank in range(ranks):
        source = first if rank == older else last
        module = {n: t.chunk(ranks)[rank].clone() if t.dim() == 2 else t for n, t in source.items()}
        module["rotary.inv_freq"] = 1.0 / 10000 ** (torch.arange(128) / 128)
        if own:
            module |= {f"bn.{i}.running_mean": torch.randn(64, generator=generator) for i in range(4)}
        if average:
            module |= {f"average.{n}": t if rank else 0.5 * (t + first[n]) for n, t in last.items() if t.dim() == 1}
        torch.save({"module": module, "global_steps": 90}, folder / f"mp_rank_{rank:02d}_model_states.pt")
    return folder


@pytest.mark.parametrize("older", [0, 2, 3])
def test_one_rank_is_of_an_earlier_save(older: int, tmp_path: Path) -> None:
    (found,) = told(tensor_parallel(tmp_path / "step90", older=older))
    assert found.measured["kind"] == "shared"
    assert found.measured["name"] == f"mp_rank_0{older}_model_states.pt"
    assert "of 6 tensors that the other 3 ranks hold alike" in found.statement


@pytest.mark.parametrize("more", [{}, {"average": True}, {"own": True}, {"older": 1, "ranks": 2}])
def test_what_ranks_keep_for_themselves(more: dict[str, Any], tmp_path: Path) -> None:
    """An average on the first rank alone, statistics of each rank's own; of two ranks either may be the older one."""
    report = examine(tensor_parallel(tmp_path / "step90", **more))
    assert [f for f in report.findings if f.rule == "W139"] == []


def test_a_folder_of_checkpoints_names_them(tmp_path: Path) -> None:
    tensor_parallel(tmp_path / "step_90")
    with pytest.raises(UnreadableInput, match=r"name one of the folders in it: step_90$"):
        examine(tmp_path)
