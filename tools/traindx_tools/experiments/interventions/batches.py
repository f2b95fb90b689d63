"""What the training is given: one batch for ever, labels permuted, inputs zeroed."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import INTEGER, JAX, TORCH, Intervention, Setting

_LIVE = "traindx_tools.experiments.live.on_torch.batches"
_JAX = "traindx_tools.experiments.live.on_jax.batches"
_ELEMENT = Setting("element", "the part of the batch: its position or key (`1`, `labels`, `0.image`)")

INTERVENTIONS = (
    Intervention(
        "one-batch", "every training batch is the first one, for ever",
        changes="From the second on, each batch of a training is a copy of the first (of batch `number`): where a "
                "DataLoader gives it, or, without one, in the arguments of a model or of a jitted step that computes "
                "the loss itself.",
        keeps="The loader still makes every batch: lengths of epochs and all draws of random numbers are what they "
              "were. Evaluations, told by gradients being off or by eval mode, get their own data.",
        shows="Where the loss now falls to almost nothing, model, loss and optimizer can learn, and the cause lies in "
              "the data or in how it is fed. Where it does not fall even now, the cause lies in model, loss or "
              "optimizer: data is exonerated.",
        cannot_tell="Whether the first batch is representative: if it is itself damaged, `number` keeps another one. "
                    "Augmentation inside the model goes on. An evaluation with gradients on and the model in training "
                    "mode gets one batch too, as does every loader of a JAX program.",
        frameworks=(TORCH, JAX), horizon=30,
        options=(Setting("number", "which batch is kept", INTEGER, 0, least=0, most=1_000_000),),
        live={"torch": f"{_LIVE}:OneBatch", "jax": f"{_JAX}:OneBatch"}),
    Intervention(
        "labels-permuted", "the labels of each training batch change places",
        changes="The labels of each batch are permuted along their first axis, anew in each batch.",
        keeps="Inputs, the mix of labels, batch sizes, and the training's own random numbers: the permutation has a "
              "generator of its own. Evaluations keep their labels.",
        shows="Where the loss still falls as before, or the validation metric stays as good, labels are not what is "
              "learned from: a leak, a metric that does not look at labels, or memorising. Where the symptom goes "
              "(say, an explosion), it needs what the labels say.",
        cannot_tell="Which labels are wrong. Where labels are made from inputs after the loader (language models that "
                    "shift their inputs) they are not in the batch, and the change says so.",
        horizon=50,
        options=(_ELEMENT, Setting("seed", "of the permutations", INTEGER, 0, least=0, most=2**31 - 1)),
        live={"torch": f"{_LIVE}:LabelsPermuted"}),
    Intervention(
        "inputs-zeroed", "one array of the inputs holds zeros",
        changes="The first array of each training batch, or the one named by `element`, is replaced by zeros of its "
                "shape and type; without a DataLoader, that of the model's arguments. Token ids become id 0.",
        keeps="Labels, all other parts of the batch, shapes, types and random numbers; evaluations.",
        shows="Where the curve does not change, this input is not used: the model predicts from the rest alone (label "
              "frequencies, another input, a leak). Where the symptom goes, it came through this input.",
        cannot_tell="What in the input does it. Zeros may be a legitimate value of a feature.",
        horizon=50, options=(_ELEMENT,),
        live={"torch": f"{_LIVE}:InputsZeroed"}),
)
