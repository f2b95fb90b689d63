"""Error rules on logs of runs that really failed so, on their healthy twins, and on logs that are cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run
from traindx_tools.on_logs.tracebacks import read_errors
from traindx_tools.rules import rules_in

ROOM = "traindx_tools.on_logs.tracebacks"
ERRORS = Path(__file__).parents[3] / "fixtures" / "errors"


def findings(run: Run) -> list[Finding]:
    return [f for module in rules_in(ROOM) for f in module.check(run)]


def of(name: str) -> list[Finding]:
    return findings(read_run(ERRORS / f"{name}.log"))


FAULTS = {
    "gpu/assert_embedding": ("L501", "embedding-index", 61),
    "gpu/assert_label_interleaved": ("L501", "class-target", 57),
    "gpu/assert_windows": ("L501", "embedding-index", 31),
    "gpu/illegal_access": ("L502", "illegal-access", 64),
    "gpu/cublas_alloc": ("L503", "alloc-failed", 34),
    "embedding_index": ("L504", "embedding", 11),
    "list_index": ("L504", "sequence", 11),
    "tensor_index": ("L504", "tensor", 11),
    "gather_index": ("L504", "tensor", 11),
    "numpy_index": ("L504", "tensor", 3),
    "chained": ("L504", "sequence", 12),
    "formats/jupyter_old": ("L504", "embedding", 4),
    "matmul_shapes": ("L505", "matmul", 11),
    "broadcast_shapes": ("L505", "broadcast", 19),
    "conv_channels": ("L505", "channels", 11),
    "view_size": ("L505", "view", 11),
    "cat_sizes": ("L505", "cat", 11),
    "collate_stack": ("L505", "collate", 24),
    "jax_broadcast": ("L505", "broadcast", 9),
    "jax_dot": ("L505", "matmul", 9),
    "numpy_broadcast": ("L505", "broadcast", 3),
    "backward_vector": ("L505", "gradient-not-scalar", 20),
    "dtype_matmul": ("L506", "operands", 11),
    "dtype_half": ("L506", "operands", 11),
    "dtype_indices": ("L506", "index", 11),
    "dtype_conv": ("L506", "input-weight", 11),
    "dtype_not_implemented": ("L506", "not-implemented", 11),
    "dtype_inplace_cast": ("L506", "result-cast", 11),
    "dtype_mean_long": ("L506", "needs-float", 11),
    "device_meta": ("L507", "operands", 11),
    "gpu/device_mismatch": ("L507", "operands", 40),
    "gpu/oom_total": ("L508", "total", 21),
    "gpu/oom_fragmentation": ("L508", "fragmentation", 21),
    "gpu/oom_other_process": ("L508", "other-process", 21),
    "gpu/oom_creeping_old_wording": ("L508", "creeping", 60),
    "gpu/oom_late_peak": ("L508", "late-peak", 21),
    "gpu/killed": ("L509", "killed", 9),
    "gpu/bash_killed": ("L509", "killed", 9),
    "gpu/slurm_oom": ("L509", "oom-killer", 9),
    "rank_killed": ("L509", "killed", 20),
    "worker_killed": ("L509", "worker-killed", 24),
    "cpu_allocator": ("L509", "allocation-absurd", 11),
    "numpy_allocate": ("L509", "allocation-absurd", 3),
    "gpu/cuda_in_fork": ("L510", "cuda-in-fork", 22),
    "gpu/shared_memory": ("L510", "shared-memory", 50),
    "worker_exit": ("L510", "exited", 24),
    "worker_pickle": ("L510", "unpicklable", 24),
    "worker_open_file": ("L510", "unpicklable", 24),
    "worker_segfault": ("L510", "killed-by-signal", 24),
    "graph_freed": ("L511", "graph-freed", 20),
    "inplace_modified": ("L512", "in-place", 20),
    "inplace_leaf": ("L512", "leaf", 19),
    "amp_half_weights": ("L513", "unscale-fp16", None),
    "amp_unscale_twice": ("L513", "unscale-twice", 18),
    "amp_no_inf_checks": ("L513", "no-inf-checks", 19),
    "no_grad_path": ("L514", "detached", 20),
    "argmax_path": ("L514", "detached", 20),
    "gloo_timeout": ("L515", "timeout", 14),
    "gpu/nccl_timeout": ("L515", "mismatch", 11),
    "jax_if_tracer": ("L516", "bool-conversion", 11),
    "jax_numpy_on_tracer": ("L516", "array-conversion", 11),
    "jax_int_tracer": ("L516", "integer-conversion", 11),
    "jax_shape_tracer": ("L516", "shape-concretization", 11),
    "jax_bool_mask": ("L516", "boolean-mask", 11),
    "jax_leak": ("L516", "leak", 15),
    "jax_carry_dtype": ("L517", "dtype", 12),
    "jax_carry_shape": ("L517", "shape", 12),
    "jax_carry_structure": ("L517", "structure", 12),
    "jax_while_dtype": ("L517", "dtype", 9),
    "jax_cond_branches": ("L517", "shape", 9),
    "state_prefix": ("L518", "prefix-mismatch", 15),
    "state_compiled": ("L518", "prefix-mismatch", 15),
    "state_sizes": ("L518", "size-mismatch", 15),
    "state_missing": ("L518", "missing-keys", 15),
    "optimizer_groups": ("L518", "optimizer-groups", 15),
    "batchnorm_one_value": ("L519", "one-value", 11),
    "target_out_of_bounds": ("L520", "target-out-of-bounds", 11),
    "target_float": ("L520", "target-dtype", 11),
    "bce_range": ("L520", "input-outside-0-1", 11),
    "bce_size": ("L520", "target-size", 11),
    "ddp_unused": ("L521", "unused", 20),
    "file_missing": ("L522", "missing", 11),
    "file_corrupt": ("L522", "corrupt-checkpoint", 11),
    "gpu/checkpoint_cut": ("L522", "corrupt-checkpoint", 20),
    "weights_only": ("L522", "weights-only", 11),
    "json_corrupt": ("L522", "corrupt-text", 3),
    "anomaly_log": ("L523", "anomaly-backward", 19),
    "multinomial_nan": ("L523", "probabilities", 11),
    "categorical_nan": ("L523", "distribution-constraint", 11),
    "var_degrees": ("L523", "var-degrees-of-freedom", 11),
    "linalg_singular": ("L523", "singular", 11),
    "jax_debug_nans": ("L523", "debug-nans", 10),
    "attribute_gone": ("L524", "attribute-missing", 3),
    "import_gone": ("L524", "import-name", 2),
    "module_missing": ("L524", "module-missing", 2),
    "keyword_unexpected": ("L525", "unexpected-keyword", 11),
    "config_keyerror": ("L525", "missing-key", 4),
    "scheduler_first": ("L526", "scheduler-before-optimizer", 16),
    "target_broadcast": ("L526", "target-size-broadcast", 14),
    "checkpoint_no_grad": ("L526", "no-input-requires-grad", 1),
    "gpu/vocabulary_size": ("L527", "size", 20),
    "port_in_use": ("L528", "port-in-use", 13),
    "jax_memory": ("L529", "memory-absurd", 9),
    "gpu/jax_oom": ("L529", "memory", 70),
    "unknown_exception": ("L530", "raised-by-the-project", 11),
    "rank_raises": ("L530", "raised-by-the-project", 8),
    "gpu/nccl_timeout_after_exception": ("L530", "raised-by-the-project", 18),
    "worker_keyerror": ("L530", "raised-by-the-project", 20),
    "syntax_error": ("L530", "syntax", 2),
    "segfault": ("L530", "segmentation-fault", 5),
    "half_constant": ("L531", "mask", 3),
    "jax_donated_same_call": ("L532", "same-call", 32),
    "jax_donated_deleted": ("L532", "deleted", 14),
    "jax_donated_twice": ("L532", "twice", 26),
    "early_stop_metric": ("L533", "early-stop", None),
}
"""Log, rule, kind, line: the only finding above INFO that the log may give."""


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_seen_once_by_its_own_rule_at_its_line(name: str) -> None:
    rule, kind, line = FAULTS[name]
    found = [f for f in of(name) if f.severity is not Severity.INFO]
    assert [f.rule for f in found] == [rule]
    assert found[0].measured["kind"] == kind
    assert line is None or found[0].where.line == line


def test_every_rule_has_a_fault_that_it_sees() -> None:
    assert {rule for rule, _, _ in FAULTS.values()} == {m.rule.id for m in rules_in(ROOM)}


def test_every_rule_has_a_page() -> None:
    for module in rules_in(ROOM):
        assert len(module.doc) > 150, module.rule.id
        assert module.rule.confirm, module.rule.id
        assert module.rule.alike, module.rule.id
        assert module.module.rsplit(".", 1)[1].startswith(module.rule.id.lower())


TWINS = sorted(p.stem for p in (ERRORS / "healthy").glob("*.log"))


@pytest.mark.parametrize("name", TWINS)
def test_healthy_twins_are_left_alone(name: str) -> None:
    assert [f for f in of(f"healthy/{name}") if f.severity is not Severity.INFO] == []


def test_words_and_warnings_of_a_healthy_run_are_left_alone() -> None:
    found = of("formats/healthy_noise")
    assert {f.rule for f in found} == {"L526"}
    assert {f.severity for f in found} == {Severity.INFO}


@pytest.mark.parametrize("name", [*FAULTS, "exception_group", "gpu/oom_skipped_batches"])
def test_logs_cut_anywhere_are_read_without_error(name: str) -> None:
    text = (ERRORS / f"{name}.log").read_text(errors="replace")
    for share in (0.1, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97):
        cut = text[: int(len(text) * share)]
        for finding in findings(Run(errors=read_errors(enumerate(cut.splitlines(), 1), "log.txt"))):
            assert finding.statement
            assert Finding.from_json(finding.to_json()) == finding


@pytest.mark.parametrize("name", ["caught_and_logged", "gpu/oom_skipped_batches"])
def test_an_error_that_the_run_survived_is_low(name: str) -> None:
    (found,) = of(name)
    assert (found.severity, found.bearing) == (Severity.LOW, Bearing.COMPANION)
    assert "the run went on" in found.statement


def test_the_same_error_at_the_end_of_the_run_is_critical() -> None:
    text = (ERRORS / "caught_and_logged.log").read_text().splitlines()
    ending = [*text, *text[12:19]]
    (found,) = findings(Run(errors=read_errors(enumerate(ending, 1), "log.txt")))
    assert found.severity is Severity.CRITICAL


def test_an_interruption_by_hand_is_a_remark() -> None:
    (found,) = of("interrupted")
    assert (found.rule, found.severity) == ("L530", Severity.INFO)


@pytest.mark.parametrize(
    "name",
    ["gpu/assert_embedding", "gpu/illegal_access", "gpu/cublas_alloc", "gpu/nccl_timeout", "worker_exit", "jax_leak",
             "no_grad_path", "gpu/oom_late_peak"])
def test_a_line_where_it_only_surfaced_is_called_so(name: str) -> None:
    found = next(f for f in of(name) if f.severity is Severity.CRITICAL)
    assert found.measured["surfaced_only"] is True


def test_anomaly_mode_points_to_the_forward_line_and_not_to_backward() -> None:
    (found,) = of("anomaly_log")
    assert found.where.quote == "loss = loss + (model(x)[0, 0] * 0).sqrt()"
    assert found.measured["surfaced_only"] is False


MEASURED = {
    "gpu/assert_embedding": {"threads": 96, "kernel": "Indexing.cu:1308", "condition": "srcIndex < srcSelectDimSize"},
    "tensor_index": {"index": 10, "dimension": 0, "size": 5},
    "matmul_shapes": {"shape_a": "32x512", "shape_b": "256x10"},
    "conv_channels": {"expected": "3", "got": "1"},
    "collate_stack": {"shape_a": "[1]", "shape_b": "[2]"},
    "dtype_matmul": {"dtype_a": "Double", "dtype_b": "Float"},
    "gpu/device_mismatch": {"device_a": "cuda:0", "device_b": "cpu"},
    "gpu/oom_fragmentation": {"tried_gib": 3.0, "total_gib": 23.65, "free_gib": 1.66, "allocated_gib": 12.09,
                              "reserved_gib": 19.93, "unallocated_gib": 7.84},
    "gpu/oom_creeping_old_wording": {"tried_gib": 0.02, "total_gib": 11.17, "reserved_gib": 10.7, "device": 0},
    "gpu/oom_other_process": {"others_gib": 68.4},
    "inplace_modified": {"shape": "[64, 3]", "operation": "Add", "version": "1", "expected": "0"},
    "gloo_timeout": {"backend": "gloo", "waited_s": 4.0, "ranks": (0,)},
    "gpu/nccl_timeout": {"backend": "nccl", "operation": "ALLREDUCE", "sequence": 1580, "timeout_s": 600.0,
                         "waited_s": 600.026, "last_enqueued": 1581, "last_completed": 1579, "ranks": (0, 1),
                         "operations": ("ALLREDUCE", "BROADCAST")},
    "jax_if_tracer": {"traced_function": "loss_fn", "transform": "jit", "argument": "x"},
    "jax_carry_dtype": {"leaf": "s['hits']", "input_type": "int32[]", "output_type": "float32[]", "loop": "scan"},
    "jax_carry_shape": {"leaf": "h", "input_type": "float32[4]", "output_type": "float32[8]"},
    "state_prefix": {"prefix": "module.", "prefix_on": "checkpoint", "missing": 4, "unexpected": 4},
    "state_compiled": {"prefix": "_orig_mod."},
    "state_sizes": {"key": "2.weight", "checkpoint_shape": "[10, 16]", "model_shape": "[3, 16]", "sizes": 2},
    "batchnorm_one_value": {"input_size": "[1, 6]"},
    "target_out_of_bounds": {"target": "3"},
    "ddp_unused": {"indices": (2, 3), "parameters": 2},
    "file_missing": {"path": "checkpoints/last.pt"},
    "attribute_gone": {"module": "numpy", "name": "float"},
    "target_broadcast": {"target": "torch.Size([8])", "input": "torch.Size([8, 1])"},
    "gpu/vocabulary_size": {"checkpoint_rows": 32016, "model_rows": 32000},
    "port_in_use": {"port": 29555},
    "gpu/jax_oom": {"tried_gib": 18.626},
    "rank_killed": {"killed_ranks": (1,)},
}


@pytest.mark.parametrize("name", MEASURED)
def test_the_numbers_of_the_message_are_measured(name: str) -> None:
    measured = next(f for f in of(name) if f.severity is not Severity.INFO).measured
    assert {k: measured.get(k) for k in MEASURED[name]} == MEASURED[name]


def test_the_step_of_the_failure_is_kept() -> None:
    (found,) = of("graph_freed")
    assert found.where.step == 11


def test_a_first_step_that_does_not_fit_is_no_late_peak() -> None:
    (late,), (first,) = of("gpu/oom_late_peak"), of("gpu/oom_first_step")
    assert (late.measured["kind"], first.measured["kind"] in ("first-step", "full")) == ("late-peak", True)


def test_the_scheduler_warning_is_a_remark_where_a_loss_scaler_skips_first_steps() -> None:
    text = (ERRORS / "scheduler_first.log").read_text()
    errors = read_errors(enumerate(text.splitlines(), 1), "log.txt")
    assert findings(Run(errors=errors, config={"precision": "16-mixed"}))[0].severity is Severity.INFO
    assert findings(Run(errors=errors, config={"precision": "32"}))[0].severity is Severity.MEDIUM


def _out_of_memory(folder: Path, *memory: float) -> Finding:
    lines = [f"step {i} loss {10.8 - 0.1 * i:.3f} mem {m} GiB" for i, m in enumerate(memory, 1)]
    lines += ["Traceback (most recent call last):", '  File "/home/a/pretrain.py", line 141, in train_step',
              '    logits = model(batch["ids"])',
              "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of "
              "39.39 GiB of which 1.12 GiB is free. Including non-PyTorch memory, this process has 38.26 GiB in use."]
    (folder / "log.txt").write_text("\n".join(lines) + "\n")
    return next(f for f in findings(read_run([str(folder / "log.txt")])) if f.rule == "L508")


@pytest.mark.parametrize(("memory", "kind"), [((29.41, 33.02, 36.77), "creeping"), ((12.0, 30.0, 30.1), "first-step"),
                                              ((30.0, 36.0, 37.0, 37.3), "first-step"), ((30.0, 36.0), "first-step")])
def test_few_records_that_rise_evenly_are_growth_and_a_warm_up_is_not(
        tmp_path: Path, memory: tuple[float, ...], kind: str) -> None:
    assert _out_of_memory(tmp_path, *memory).measured["kind"] == kind
