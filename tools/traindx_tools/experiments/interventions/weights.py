"""Parameters by the path of their module: frozen, thawed, reinitialised; and averages of weights."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import INTEGER, JAX, TORCH, Intervention, Setting

_LIVE = "traindx_tools.experiments.live.on_torch.weights"
_MODULE = Setting("module", "path of the modules, with wildcards (`encoder.*`, `layers.3`), or of a parameter",
                  required=True)

INTERVENTIONS = (
    Intervention(
        "frozen", "modules keep their weights",
        changes="The gradients of the parameters that match are dropped after each backward pass, so that no step "
                "moves or decays them.",
        keeps="`requires_grad`, so that data-parallel wrappers go on; gradients still flow through the modules. "
              "Running statistics of BatchNorm go on as well.",
        shows="Where the symptom goes, it needs these weights to move: forgetting of a pretrained part, a diverging "
              "head, an embedding that collapses.",
        cannot_tell="Whether their gradients or their rate are wrong. A clip of the norm no longer counts them.",
        horizon=50, options=(_MODULE,), live={"torch": f"{_LIVE}:Frozen"}),
    Intervention(
        "thawed", "frozen modules are trained",
        changes="Parameters that match get gradients before the first call; those in no optimizer join the first group "
                "of the one that there is. In JAX leaves that `set_to_zero` holds in a `multi_transform` get its first "
                "other transformation.",
        keeps="The optimizer's other settings: they get the rate and decay of that group.",
        shows="Where the loss now falls, something was frozen that should learn, or was missing in the optimizer.",
        cannot_tell="Where the forward pass itself cuts the graph, no gradient comes and the change says so. Under a "
                    "data-parallel wrapper it cannot be done from outside.",
        horizon=50, options=(_MODULE,), frameworks=(TORCH, JAX),
        live={"torch": f"{_LIVE}:Thawed", "jax": "traindx_tools.experiments.live.on_jax.thawing:Thawed"}),
    Intervention(
        "reinitialised", "modules start from fresh weights",
        changes="Before the first call the parameters that match are set by `reset_parameters()` of their modules, or "
                "by `_init_weights()` of the model, from the seed `seed`, alike on each rank.",
        keeps="All other weights, and the training's own draws of random numbers.",
        shows="Where the symptom goes, it lay in the values that these weights began with: a damaged checkpoint, a "
              "wrong initialisation, a layer loaded into the wrong place.",
        cannot_tell="What was wrong with them. A checkpoint that is loaded after the first call overwrites it.",
        horizon=50, options=(_MODULE, Setting("seed", "of the values", INTEGER, 0, least=0, most=2**31 - 1)),
        live={"torch": f"{_LIVE}:Reinitialised"}),
    Intervention(
        "no-ema", "averages of weights are the weights as they are",
        changes="`AveragedModel.update_parameters` copies the weights; `optax.incremental_update` takes the new ones.",
        keeps="The training of the weights themselves.",
        shows="Where the evaluation becomes good, the average did it: a decay too near 1 for the length of the run, "
              "buffers that are not averaged, an average that begins too early.",
        cannot_tell="Averages that are written by hand are not reached. In reinforcement learning target networks are "
                    "averages too, and lose their delay.",
        frameworks=(TORCH, JAX), horizon=50,
        live={"torch": f"{_LIVE}:NoAverage", "jax": "traindx_tools.experiments.live.on_jax.updates:NoAverage"}),
)
