"""Between backward pass and step: clipping, decay, clearing, accumulation, loss scaling, the algorithm."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import JAX, NUMBER, TORCH, Intervention, Setting

_ROOM = "traindx_tools.experiments.live.on_torch"
_JAX = "traindx_tools.experiments.live.on_jax.updates"

INTERVENTIONS = (
    Intervention(
        "no-clipping", "gradients are not clipped",
        changes="`clip_grad_norm_`, `clip_grad_value_` and FSDP's own leave gradients as they are; `optax.clip`, "
                "`clip_by_global_norm`, `clip_by_block_rms` and `adaptive_grad_clip` do nothing.",
        keeps="The norm is still measured and returned, so that what is logged goes on.",
        shows="Where a slow or flat curve moves, clipping took the step away: a bound far below the usual norm, or "
              "clipping before unscaling.",
        cannot_tell="Why norms are above the bound. Clipping that is written by hand is not reached.",
        frameworks=(TORCH, JAX), horizon=30,
        live={"torch": f"{_ROOM}.gradients:NoClipping", "jax": f"{_JAX}:NoClipping"}),
    Intervention(
        "no-decay", "no weight decay",
        changes="Each step is made with `weight_decay` 0 in every group; `optax.add_decayed_weights` does nothing.",
        keeps="Everything else of the groups; between steps they hold the program's own value.",
        shows="Where a slow fall of weights or a rising loss goes, decay was too strong, or reached parameters that it "
              "should not (norms, biases, embeddings, temperatures).",
        cannot_tell="Which parameters suffer. A penalty that is part of the loss is not reached.",
        frameworks=(TORCH, JAX), horizon=100,
        live={"torch": f"{_ROOM}.groups:NoDecay", "jax": f"{_JAX}:NoDecay"}),
    Intervention(
        "clear-gradients", "gradients are cleared after each step",
        changes="Before each backward pass that follows a step, the gradients that the step used are set to zero.",
        keeps="Accumulation over several backward passes before one step. A program that clears them itself runs "
              "bitwise as before, and the change says that it found nothing to clear.",
        shows="Where the symptom goes, gradients of earlier steps were added up: `zero_grad` is missing, comes at the "
              "wrong place, or reaches other parameters.",
        cannot_tell="Gradients that are kept on purpose beyond a step are lost as well.",
        horizon=20, live={"torch": f"{_ROOM}.gradients:ClearGradients"}),
    Intervention(
        "no-accumulation", "a step after each backward pass",
        changes="Where a training forward pass begins and gradients of an earlier backward pass still wait, the one "
                "optimizer steps and clears first. Under DDP gradients are synchronised in every pass.",
        keeps="The loss as the program scales it: usually divided by the number of accumulated batches, so that SGD's "
              "steps are smaller. Clipping applies to the program's own steps alone.",
        shows="Where the symptom goes, the accumulation did it: gradients summed instead of averaged, a last window "
              "cut short, batch statistics of small parts, a schedule that counts other steps.",
        cannot_tell="Which of these. With several optimizers, a loss scaler or a closure it cannot be done from "
                    "outside; `set:KEY=1` of the program's own option is then the way.",
        horizon=30, live={"torch": f"{_ROOM}.gradients:NoAccumulation"}),
    Intervention(
        "no-loss-scaling", "the loss scaler does nothing",
        changes="Each `GradScaler` is made with `enabled=False`.",
        keeps="Autocast and all else.",
        shows="Where skipped steps or a wrong gradient norm go, the scaler did it: no unscaling before clipping, a "
              "scale that falls for ever.",
        cannot_tell="In float16 small gradients become 0 without scaling, which is a fault of its own.",
        horizon=30, live={"torch": f"{_ROOM}.gradients:NoLossScaling"}),
    Intervention(
        "optimizer", "another algorithm makes the steps",
        changes="Each torch optimizer hands its steps to one of another kind over the same parameters; in optax the "
                "factories (`adam`, `adamw`, `sgd`, ...) make that kind.",
        keeps="Groups, rates with their schedules, weight decay, clipping and clearing. `times` scales the rate, since "
              "SGD and Adam need different ones.",
        shows="Where a divergence or a stall goes, it lay in the algorithm's state: betas, epsilon, second moments of "
              "rare gradients, momentum.",
        cannot_tell="Whether another rate would have done the same. The program's checkpoints hold no state of the new "
                    "algorithm.",
        frameworks=(TORCH, JAX), horizon=50,
        options=(Setting("name", "the algorithm", required=True,
                         choices=("sgd", "momentum", "adam", "adamw", "rmsprop", "adagrad")),
                 Setting("times", "factor on the rate", NUMBER, 1.0, least=0.0, most=1e6)),
        live={"torch": f"{_ROOM}.another_optimizer:AnotherOptimizer", "jax": f"{_JAX}:AnotherOptimizer"}),
    Intervention(
        "state-not-loaded", "a checkpoint's state besides the weights is not taken",
        changes="`load_state_dict` of each torch optimizer takes the groups with their rates and leaves moments and "
                "step counts out (`of=optimizer`); that of each schedule does nothing (`of=schedule`).",
        keeps="The weights that are loaded, and all that the program does with them.",
        shows="Where the symptom goes, it came with the state of another run: moments that were scaled, exchanged or "
              "of another loss, a schedule at its end, the best value of another metric.",
        cannot_tell="Which value of it. A run that is meant to go on has a step of its loss where moments are lost.",
        horizon=50, options=(Setting("of", "whose state", required=True, choices=("optimizer", "schedule")),),
        live={"torch": f"{_ROOM}.loaded:StateNotLoaded"}),
)
