"""Chance: another seed; and nothing at all."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import ANY, INTEGER, Intervention, Setting

INTERVENTIONS = (
    Intervention(
        "seed", "every seed is another one",
        changes="Each call that sets a seed of Python, NumPy, torch (also of CUDA and of generators) or makes a key of "
                "JAX from a number gets that number plus `by`; and before the program's first line a seed is set, for "
                "what it seeds nowhere.",
        keeps="What asks for chance (`seed=None`) still does. Everything else.",
        shows="How far the outcome scatters. Where the symptom comes and goes with the seed, it is one of chance: "
              "initialisation, order, a rare sample; a change is then judged against this spread.",
        cannot_tell="Which of the random numbers does it. A seed that also splits the data gives another split.",
        frameworks=(ANY,), horizon=20,
        options=(Setting("by", "what is added to each seed", INTEGER, 1, least=0, most=2**31 - 1),),
        live={"python": "traindx_tools.experiments.live.on_python.seeds:Seeds",
              "torch": "traindx_tools.experiments.live.on_torch.randomness:Seeds",
              "jax": "traindx_tools.experiments.live.on_jax.seeds:Seeds"}),
    Intervention(
        "placebo", "nothing is changed, by all the hooks",
        changes="Every place at which a change of torch can take hold is patched, and passes on what it got.",
        keeps="Everything, bit for bit.",
        shows="What the hooks alone do: nothing, or the experiments of this program tell nothing.",
        cannot_tell="Anything of the program.",
        frameworks=(ANY,), horizon=1,
        live={"python": "traindx_tools.experiments.live.on_python.seeds:Placebo",
              "torch": "traindx_tools.experiments.live.on_torch.randomness:Placebo",
              "jax": "traindx_tools.experiments.live.on_python.seeds:Placebo"}),
)
