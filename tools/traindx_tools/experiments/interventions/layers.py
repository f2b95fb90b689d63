"""What layers do: dropout, statistics of BatchNorm, the mode of the model."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import JAX, TORCH, Intervention

_LIVE = "traindx_tools.experiments.live.on_torch.layers"

INTERVENTIONS = (
    Intervention(
        "no-dropout", "nothing is dropped",
        changes="Dropout of `torch.nn.functional` (and of every layer that uses it), of attention and between the "
                "layers of an RNN is off; in JAX that of flax (linen, nnx) and equinox.",
        keeps="The mode of the model. Dropout draws no random numbers then, so that later draws are others.",
        shows="Where training now fits, dropout was too strong, was on where it should not be, or dropped what must "
              "stay (ids, masks, targets).",
        cannot_tell="Masks that are drawn by hand (`torch.rand(...) < p`, stochastic depth of other packages) are not "
                    "reached.",
        frameworks=(TORCH, JAX), horizon=50,
        live={"torch": f"{_LIVE}:NoDropout", "jax": "traindx_tools.experiments.live.on_jax.dropout:NoDropout"}),
    Intervention(
        "batch-statistics", "BatchNorm in eval mode normalises by the batch",
        changes="BatchNorm layers that run in eval mode take mean and variance of the batch before them.",
        keeps="Their running statistics: read by nobody, written by nobody; training passes; dropout's mode.",
        shows="Where the evaluation becomes as good as the training, the running statistics are wrong: too few "
              "updates, a momentum misread, small or mixed batches, statistics of other data.",
        cannot_tell="Why they are wrong. Small evaluation batches have noisy statistics of their own.",
        horizon=50, live={"torch": f"{_LIVE}:BatchStatistics"}),
    Intervention(
        "running-statistics", "BatchNorm in training normalises by its running statistics",
        changes="BatchNorm layers in training mode take their running mean and variance, and do not update them.",
        keeps="Affine weights are still trained; all else.",
        shows="Where an instability goes, it came from the statistics of single batches: too small, or of several "
              "kinds.",
        cannot_tell="From fresh weights the running statistics are 0 and 1, which is no normalisation: of use from a "
                    "checkpoint on.",
        horizon=50, live={"torch": f"{_LIVE}:RunningStatistics"}),
    Intervention(
        "eval-mode", "training passes run in eval mode",
        changes="For the length of each training pass every module is in eval mode: no dropout, running statistics.",
        keeps="Gradients; the mode that the program set is back after each pass.",
        shows="Where the symptom goes, it lies in what differs between the modes; `no-dropout` and "
              "`running-statistics` tell which.",
        cannot_tell="Which layer. Running statistics are not updated meanwhile.",
        horizon=50, live={"torch": f"{_LIVE}:EvalMode"}),
    Intervention(
        "train-mode", "evaluation passes run in training mode",
        changes="For the length of each evaluation pass every module is in training mode, but for layers that would "
                "write running statistics then.",
        keeps="No gradients, no updates; the mode that the program set is back after each pass.",
        shows="Where an evaluation that was too good becomes as the training, or the other way round, the gap between "
              "the curves is dropout's.",
        cannot_tell="What running statistics do: `batch-statistics` tells that.",
        horizon=50, live={"torch": f"{_LIVE}:TrainMode"}),
    Intervention(
        "eval-in-eval-mode", "evaluation passes run in eval mode",
        changes="For the length of each evaluation pass every module is in eval mode: no dropout, running statistics "
                "that are read and not written.",
        keeps="Training passes; the mode that the program set is back after each pass.",
        shows="Where the metrics of the evaluation become what was expected, `model.eval()` is missing before it.",
        cannot_tell="Whether the noise of training mode was wanted (Monte Carlo dropout, statistics measured again).",
        horizon=50, live={"torch": f"{_LIVE}:EvaluationInEvalMode"}),
    Intervention(
        "train-in-train-mode", "training passes run in training mode",
        changes="For the length of each training pass every module is in training mode: dropout, statistics of the "
                "batch, running statistics that are updated.",
        keeps="Evaluation passes; the mode that the program set is back after each pass.",
        shows="Where the training then generalises, or its evaluation fits, `model.train()` is missing after an "
              "evaluation or before the training.",
        cannot_tell="Parts that are in eval mode on purpose (a frozen backbone's statistics) are in training mode too.",
        horizon=50, live={"torch": f"{_LIVE}:TrainingInTrainMode"}),
)
