"""The types of numbers: float32 or float64 for all, no autocast, full products."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import JAX, TORCH, Intervention

_LIVE = "traindx_tools.experiments.live.on_torch.precision"
_JAX = "traindx_tools.experiments.live.on_jax.configuration"

INTERVENTIONS = (
    Intervention(
        "float32", "no floating tensor is smaller than float32",
        changes="Autocast is off, and whatever asks torch for float16 or bfloat16 (`half`, `to`, a `dtype=`, the "
                "default type, batches) gets float32.",
        keeps="float32 and float64; all draws of random numbers but for those of another type.",
        shows="Where NaN, a stall or a drift goes, the range or the precision of the small type did it.",
        cannot_tell="Which operation; `traindx run --origin` names that. Kernels that take small types alone raise. "
                    "Inside functions that are compiled, autocast of their own stays: the output is looked at, and a "
                    "small one is said.",
        horizon=30, live={"torch": f"{_LIVE}:OneType"}),
    Intervention(
        "float64", "every floating tensor is float64",
        changes="In torch the default type is float64, autocast is off, and what asks for less gets float64; in JAX "
                "`jax_enable_x64` is on.",
        keeps="The program's own casts to integers.",
        shows="Where a symptom goes that float32 shows, it is one of rounding or range: a difference of near numbers, "
              "a sum of many, an overflowing exponential.",
        cannot_tell="Which operation. Random numbers are others than in float32. Slow, and twice the memory. JAX makes "
                    "float64 only of what names no type: `astype(float32)` stays.",
        frameworks=(TORCH, JAX), horizon=30, live={"torch": f"{_LIVE}:Double", "jax": f"{_JAX}:Double"}),
    Intervention(
        "no-autocast", "regions of autocast do nothing",
        changes="Each region of `torch.autocast` is entered with `enabled=False`.",
        keeps="Parameters and tensors of the types that the program gave them; a loss scaler goes on.",
        shows="Where the symptom goes, operations in the smaller type did it.",
        cannot_tell="Which operation. Weights that are stored in a small type stay: `float32` changes those too. "
                    "Regions inside a compiled function stay.",
        horizon=30, live={"torch": f"{_LIVE}:NoAutocast"}),
    Intervention(
        "full-products", "products of float32 matrices use float32 throughout",
        changes="TF32 is off for matrix products and convolutions (`highest` precision); in JAX "
                "`jax_default_matmul_precision` is `highest`.",
        keeps="All types.",
        shows="Where the symptom goes, the ten bits of TF32 (on a TPU: bfloat16 passes) were too few.",
        cannot_tell="On a CPU there is nothing to change, and the change says so.",
        frameworks=(TORCH, JAX), horizon=30,
        live={"torch": "traindx_tools.experiments.live.on_torch.execution:FullProducts",
              "jax": f"{_JAX}:FullProducts"}),
)
