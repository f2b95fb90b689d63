"""Values, versions, restarts and speeds that differ between ranks."""

from __future__ import annotations

from pathlib import Path

from .job_texts import banner, job, rules, steps


def nothing(rank: int) -> list[str]:
    return []


def test_the_loss_of_one_rank_is_nan_first(tmp_path: Path) -> None:
    def before(rank: int) -> list[str]:
        return [*banner(rank), *steps(rank, 0, 20, lambda t: "nan" if t >= (15 if rank == 3 else 16) else "2.0")]

    many = job(tmp_path, {}, usual=nothing, before=before)
    assert many is not None
    found = many.findings[0]
    assert (found.rule, found.measured["ranks"], found.measured["step"]) == ("R205", (3,), 15.0)
    assert "7 of the other 7 ranks follow from step 16 on" in found.statement


def test_nan_everywhere_at_once_is_no_ranks(tmp_path: Path) -> None:
    many = job(tmp_path, {}, usual=nothing,
               before=lambda rank: [*banner(rank), *steps(rank, 0, 20, lambda t: "nan" if t > 15 else "2.0")])
    assert rules(many) == []


def test_another_version_on_one_rank(tmp_path: Path) -> None:
    many = job(tmp_path, {}, before=lambda rank: [*banner(rank, nccl="2.19.3" if rank == 4 else "2.21.5"),
                                                  *steps(rank, 0, 20)])
    assert many is not None
    assert (many.findings[0].rule, many.findings[0].measured["name"], many.findings[0].measured["ranks"]) == (
        "R206", "nccl", (4,))


def test_another_driver_is_a_remark_and_seeds_are_nothing(tmp_path: Path) -> None:
    many = job(tmp_path, {}, usual=nothing,
               before=lambda rank: [*banner(rank, driver="550.90" if rank == 4 else "550.54"), *steps(rank, 0, 20)])
    assert many is not None
    assert [(f.rule, f.severity.value) for f in many.findings] == [("R206", "low")]


def restarted(rank: int, worlds: tuple[int, int], batch: int | None = None) -> list[str]:
    out: list[str] = []
    for i, world in enumerate(worlds):
        if rank < world:
            told = {"global_batch_size": batch} if batch is not None else {}
            out += [*banner(rank, world, **told), *(["resuming from checkpoint at step 15"] if i else [])]
            out += steps(rank, 15 * i, 20 + 20 * i)
    return out


def test_a_restart_with_fewer_ranks(tmp_path: Path) -> None:
    many = job(tmp_path, {}, usual=nothing, before=lambda rank: restarted(rank, (8, 6)))
    assert many is not None
    found = many.findings[0]
    assert (found.rule, found.measured["before"], found.measured["world_size"], found.measured["ranks"]) == (
        "R207", 8, 6, (6, 7))
    assert found.measured["step"] == 15.0


def test_a_restart_of_the_same_size_and_one_that_keeps_its_batch(tmp_path: Path) -> None:
    for name, worlds, batch in (("same", (8, 8), None), ("kept", (8, 6), 512)):
        (tmp_path / name).mkdir()
        many = job(tmp_path / name, {}, usual=nothing, before=lambda rank, w=worlds, b=batch: restarted(rank, w, b))
        assert rules(many) == []


def test_a_slow_rank_is_a_remark(tmp_path: Path) -> None:
    many = job(tmp_path, {}, usual=nothing,
               before=lambda rank: [*banner(rank), *steps(rank, 0, 20, step_time=0.9 if rank == 2 else 0.5)])
    assert many is not None
    assert [(f.rule, f.severity.value, f.measured["rank"]) for f in many.findings] == [("R208", "low", 2)]
