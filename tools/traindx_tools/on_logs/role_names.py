"""Words of the field for what rules judge: loss functions, symbols of the learning rate and the gradient, counters.

Only names that `readers.names` does not know are looked up here; those there are common to many writers, these are what
single scripts and papers use.
"""

from __future__ import annotations

import re

from traindx_tools.on_logs.readers.names import GROUPS, words


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


LOSS, RATE, NORM, SCORE, R2 = "loss", "learning_rate", "grad_norm", "accuracy", "r2"

_LOSS_NAMES = _set(
    "hinge margin triplet contrastive info_nce infonce nce nt_xent ntxent n_pair npair multi_similarity arcface "
    "cosface angular circle center ctc rnnt transducer focal lovasz tversky huber smooth_l1 smoothl1 charbonnier "
    "log_cosh logcosh cosh mape smape msle rmsle quantile pinball tweedie poisson gaussian_nll crps brier "
    "log_loss logloss deviance energy free_energy nelbo neg_elbo risk empirical_risk obj objective cost criterion "
    "crit xe x_ent cent cel celoss cross_ent cross_entropy softmax_ce bce_logits bcewithlogits ncut bpr warp "
    "listnet listmle lambdarank ranknet sinkhorn wasserstein emd mmd vae denoise denoising diffusion "
    "score_matching dsm noise_mse eps_mse eps_pred v_pred flow_matching fm rectified mlm clm lm ntp next_token "
    "causal perplex_loss distill distillation kd soft_ce label_smoothing_ce ls_ce dpo ipo kto simpo orpo sft bt "
    "bradley_terry rank ranking ordinal coral corn cox partial_likelihood neg_ll negll neglik nloglik nlp "
    "negative_log_prob barlow vicreg byol simsiam dino mae_recon masked pde residual_loss physics_loss data_fit "
    "misfit penalty_free total_error train_error fit_error sse rss ssd mean_error avg_error reconstruction_error "
    "rec_err recon_err reconstruction_mse"
)
_RATE_NAMES = _set(
    "eta eta_t η ηt alpha stepsize step_size step_len lrate l_rate learnrate learn_rate learning_rate rate cur_rate "
    "current_rate lr_now lr_t sgd_lr adam_lr opt_lr optimizer_lr schedule_value sched_value sched_lr scheduled_lr "
    "effective_lr"
)
_NORM_NAMES = _set(
    "g gn gnorm gmag grad_l2 gradl2 grad_len grad_size g_l2 gl2 norm_g norm_grad grad_nrm gradnrm g_nrm gnrm "
    "dtheta grad_rms clip_norm preclip_norm pre_clip_norm grad_magnitude"
)
ADVERSARIES = {"d": "discriminator_loss", "disc": "discriminator_loss", "discriminator": "discriminator_loss",
               "g": "generator_loss", "gen": "generator_loss", "generator": "generator_loss"}
"""Names of the two losses of a GAN, where both are there."""
_R2_NAMES = frozenset({"nse", "nash_sutcliffe", "rsq", "r_sq", "r2score", "coef_determination", "explained_var"})
_AROUND = frozenset({"mean", "avg", "average", "running", "run", "ema", "smoothed", "smooth", "batch", "epoch", "step",
                     "cur", "current", "total", "per", "sample", "value", "val", "last", "now", "curr", "m", "n"})
"""Words around a name that do not change what it is."""

AMBIGUOUS = {"eta": 1.0, "eta_t": 1.0, "η": 1.0, "ηt": 1.0, "alpha": 0.5, "rate": 0.5, "cur_rate": 0.5,
             "current_rate": 0.5}
"""Symbols that mean other things too, and the largest value at which they can be a learning rate."""
TIME_LEFT = frozenset({"eta"})

COUNTERS = _set(
    "s st stp it its itr iters i u upd upds updates n_upd nupd n_iter niter iter_num it_num step_num stepnum "
    "n_step n_steps cur_step cur_iter curr_iter curr_step steps_done iters_done gs g_step gstep global_batch "
    "batch_num batch_no n_batch n_batches batches_seen iter_no step_no step_id step_idx iter_idx idx opt_steps "
    "optim_steps optimizer_steps train_iter train_iteration total_iter"
)
"""Names of counters: steps where the values are whole and only grow."""
COUNTERS_IF_EVEN = frozenset({"n", "t", "k", "j", "b", "x", "no", "nr", "num", "count", "c", "index", "tick", "seq"})
"""Names that count only where the distances are even as well."""

_NORM_SYMBOL = re.compile(r"[|‖∥]+\s*(?:g|grad\w*|∇\w*|dw|dθ)\s*[|‖∥]+(?:_?2)?|∇\w*")


def role_of_name(original: str) -> str | None:
    """The canonical name that the words of an unknown name stand for, None where they say nothing."""
    if _NORM_SYMBOL.fullmatch(original.strip().lower()):
        return NORM
    stem = [w for w in words(original) if w not in GROUPS]
    if not stem:
        return None
    bare = [w for w in stem if w not in _AROUND] or stem
    for name in ("_".join(stem), "_".join(bare)):
        for names, role in ((_R2_NAMES, R2), (_RATE_NAMES, RATE), (_NORM_NAMES, NORM), (_LOSS_NAMES, LOSS)):
            if name in names:
                return role
    if "lr" in stem or re.search(r"(?:^|_)lr\d*(?:_|$)", "_".join(stem)):
        return RATE
    return LOSS if len(bare) == 2 and bare[1] in ("loss", "objective", "cost", "criterion") else None


def reads_as_log(columns: list[str]) -> bool:
    """Whether a counter and a metric stand among the names of a record: it is a log, under names of its own."""
    names = ["_".join(words(c)) for c in columns]
    counted = any(n in COUNTERS or n in COUNTERS_IF_EVEN for n in names)
    told = {role_of_name(c) for c in columns} - {None}
    return counted and (LOSS in told or (len(told) >= 2))
