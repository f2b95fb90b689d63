"""How the computation is run: compiled, checkpointed, deterministic, in step with the device."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions.intervention import ANY, BEFORE, JAX, TORCH, Intervention
from traindx_tools.experiments.place import Prepared

_LIVE = "traindx_tools.experiments.live.on_torch.execution"
_JAX = "traindx_tools.experiments.live.on_jax"


def _deterministic(change: Change, command: str, workspace: Path) -> Prepared:
    """cuBLAS and XLA read these at their start, before any hook."""
    return Prepared(command, {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "PYTHONHASHSEED": "0",
                              "TRAINDX_XLA_FLAGS": "--xla_gpu_deterministic_ops=true"}, inside=(change,))


def _synchronous(change: Change, command: str, workspace: Path) -> Prepared:
    return Prepared(command, {"CUDA_LAUNCH_BLOCKING": "1", "HIP_LAUNCH_BLOCKING": "1"})


INTERVENTIONS = (
    Intervention(
        "no-compile", "nothing is compiled",
        changes="`torch.compile` and `Module.compile` give back what they were given; in JAX `jax_disable_jit` is on.",
        keeps="The program; eager operations may round in another way.",
        shows="Where the symptom goes, the compilation did it: a graph that keeps a Python value, fused rounding, "
              "recompilation at each step, side effects that are lost.",
        cannot_tell="Which of these. Slow. In JAX, loops (`scan`, `while_loop`) run step by step.",
        frameworks=(TORCH, JAX), horizon=20,
        live={"torch": f"{_LIVE}:NoCompile", "jax": f"{_JAX}.configuration:NoJit"}),
    Intervention(
        "no-checkpointing", "activations are kept",
        changes="`torch.utils.checkpoint` calls the function once and keeps its activations; `jax.checkpoint` and "
                "`jax.remat` do nothing.",
        keeps="The function and its arguments. Random numbers are drawn once.",
        shows="Where wrong gradients, an error in the second pass or a slow step go, checkpointing did it: another "
              "dropout mask, a state that changed between the passes, no input with gradients.",
        cannot_tell="More memory is needed, and the run may end for that. `nn.remat` of flax is not reached.",
        frameworks=(TORCH, JAX), horizon=20,
        live={"torch": f"{_LIVE}:NoCheckpointing", "jax": f"{_JAX}.transforms:NoRemat"}),
    Intervention(
        "deterministic", "kernels give the same result twice",
        changes="Deterministic algorithms where torch has them (others warn), no search for the fastest convolution, a "
                "fixed cuBLAS workspace, a fixed hash seed; deterministic operations of XLA on a GPU.",
        keeps="Seeds, data, program.",
        shows="Where two runs that differed are now equal, the difference was the order of additions. Where they still "
              "differ, something is not seeded.",
        cannot_tell="Operations without a deterministic kernel stay as they are, with a warning in the log.",
        frameworks=(TORCH, JAX), horizon=20, preparation=_deterministic,
        live={"torch": "traindx_tools.experiments.live.on_torch.randomness:Deterministic",
              "python": "traindx_tools.experiments.live.on_python.flags:XlaFlags",
              "jax": f"{_JAX}.configuration:Deterministic"}),
    Intervention(
        "stop-at-nan", "the first NaN is an error",
        changes="Anomaly mode of torch: a backward pass that makes a NaN raises, and names the forward operation. In "
                "JAX `jax_debug_nans`.",
        keeps="All values up to there.",
        shows="The operation that makes the first NaN; a run that goes through has none in its backward passes.",
        cannot_tell="NaN in a forward pass that no gradient meets (torch). NaN that a program makes on purpose and "
                    "masks afterwards is an error too.",
        frameworks=(TORCH, JAX), horizon=1,
        live={"torch": f"{_LIVE}:StopAtNan", "jax": f"{_JAX}.configuration:StopAtNan"}),
    Intervention(
        "synchronous", "the host waits for each kernel",
        changes="CUDA_LAUNCH_BLOCKING=1 (HIP_LAUNCH_BLOCKING=1) in the environment.",
        keeps="All values.",
        shows="An error names the line that made it. Where a symptom goes, streams raced: a buffer reused too early, a "
              "non-blocking copy read too soon.",
        cannot_tell="Without a GPU nothing changes. Slow.",
        holds=BEFORE, frameworks=(ANY,), horizon=20, preparation=_synchronous),
)
