"""What a metric is called: the canonical name and the group behind the many ways to write it.

The tables are the knowledge; `identify` only looks names up in them.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from traindx_tools.on_logs.readers.languages import in_english

TRAIN, VALIDATION, TEST = "train", "validation", "test"
GROUPS = {
    "train": TRAIN, "training": TRAIN, "trn": TRAIN, "tr": TRAIN,
    "va": VALIDATION, "vl": VALIDATION,
    "val": VALIDATION, "valid": VALIDATION, "validation": VALIDATION, "validating": VALIDATION, "eval": VALIDATION,
    "evaluation": VALIDATION, "evaluating": VALIDATION, "evaluate": VALIDATION, "dev": VALIDATION,
    "holdout": VALIDATION, "validate": VALIDATION, "heldout": VALIDATION,
    "test": TEST, "testing": TEST,
}
"""Words that say on which data a metric was measured."""


@dataclass(frozen=True)
class Name:
    """`known`: the name is in the tables. `measured`: it can only be an outcome, never a setting.

    `factor` converts to the canonical unit where the name itself states one ("time_ms", "rss_gb").
    """

    canonical: str
    group: str | None
    known: bool
    measured: bool
    factor: float = 1.0
    preference: int = 0
    """Among names with the same canonical one in the same record, the lowest is the main one."""


_EXACT: dict[str, str] = {
    "loss": "loss total_loss loss_total lm_loss train_loss batch_loss loss_batch step_loss loss_step loss_epoch "
            "epoch_loss avg_loss average_loss loss_avg loss_average mean_loss loss_mean reduced_loss "
            "running_loss smoothed_loss loss_smooth loss_ema losses objective cost overall_loss loss_all loss_sum "
            "ce_loss loss_ce cross_entropy cross_entropy_loss xent xent_loss ce softmax_loss bce bce_loss "
            "logloss log_loss mlogloss binary_logloss multi_logloss "
            "binary_crossentropy crossentropy categorical_crossentropy sparse_categorical_crossentropy "
            "model_loss global_loss global_avg_loss iter_loss per_token_loss token_loss loss_value "
            "language_cross_entropy language_model_loss mlm_loss lossvalue criterion ave_loss tot_loss loss_tot l "
            "loss_overall",
    "mse": "mse mse_loss loss_mse mean_squared_error l2_loss l2",
    "mae": "mae mae_loss mean_absolute_error l1_loss l1",
    "rmse": "rmse root_mean_squared_error",
    "nll": "nll nll_loss loss_nll neg_log_likelihood negative_log_likelihood",
    "elbo": "elbo elbo_loss neg_elbo",
    "loss/recon": "recon rec reconstruction recon_loss rec_loss reconstruction_loss loss_recon loss_rec recons",
    "loss/commit": "commit commitment commit_loss commitment_loss loss_commit loss_commitment",
    "loss/vq": "vq vq_loss loss_vq quant_loss quantization_loss codebook_loss embedding_loss",
    "discriminator_loss": "d_loss loss_d disc_loss discriminator_loss loss_disc loss_discriminator critic_wgan_loss "
                          "errd err_d lossd dis_loss d_loss_total",
    "generator_loss": "g_loss loss_g gen_loss generator_loss loss_gen loss_generator errg err_g lossg",
    "grad_norm": "grad_norm gradnorm gnorm gradient_norm grad_norms total_grad_norm grad_norm_total global_grad_norm "
                 "grad_global_norm total_norm global_norm grad gradient gradients grads_norm grad_l2_norm g_norm "
                 "grad_norm_before_clip grad_2_norm_total grad_total_norm gn norm_grad gradients_norm gnorm_total "
                 "raw_grad_norm grad_norm_raw unclipped_grad_norm avg_grad_norm grads_global_norm grad_mag pg_norm",
    "learning_rate": "lr learning_rate learningrate last_lr cur_lr current_lr current_learning_rate base_lr "
                     "lr_0 lr_pg_0 lr_group_0 lr_group0 lr_pg0 lr_abs step_size learn_rate",
    "loss_scale": "loss_scale scale grad_scale scaler scaler_scale amp_scale loss_scaler lossscale scaling_factor",
    "accuracy": "acc accuracy top_1 top1 acc_1 acc1 accuracy_top_1 accuracy_top1 acc_top1 acc_top_1 "
                "multiclass_accuracy sparse_categorical_accuracy binary_accuracy categorical_accuracy "
                "mean_token_accuracy top1_acc top_1_acc top_1_accuracy "
                "acc_step acc_epoch accuracy_step accuracy_epoch token_accuracy "
                "avg_acc mean_acc average_accuracy token_acc acc_avg accs prec_1 prec1 balanced_accuracy",
    "accuracy_top5": "top_5 top5 acc_5 acc5 accuracy_top_5 accuracy_top5 acc_top5 top5_acc prec_5 prec5",
    "perplexity": "ppl perplexity lm_loss_ppl avg_ppl language_perplexity",
    "codebook_perplexity": "codebook_perplexity vq_perplexity code_perplexity quantizer_perplexity",
    "codebook_used": "used used_codes codes_used codebook_used active_codes num_active_codes unique_codes "
                     "codebook_usage_count n_used codes_in_use live_codes",
    "codebook_size": "codebook_size n_codes num_codes",
    "entropy": "entropy policy_entropy ent entropy_mean mean_entropy action_entropy token_entropy",
    "kl": "kl kld kl_loss loss_kl kl_div kl_divergence approx_kl mean_kl kl_mean kl_term kld_loss loss_kld ppo_kl",
    "reward": "reward rewards mean_reward reward_mean rewards_mean episode_reward ep_rew_mean avg_reward "
              "average_reward score_mean scores_mean score return returns episode_return mean_return avg_return "
              "return_mean ep_reward ep_return mean_episode_reward ep_ret epret avg_score mean_score "
              "episodic_return episodic_reward episode_return_mean episode_reward_mean mean_episodic_return",
    "reward_std": "reward_std rewards_std std_reward score_std ep_rew_std",
    "advantage_max": "advantages_max advantage_max adv_max max_adv max_advantage",
    "advantage_min": "advantages_min advantage_min adv_min min_adv min_advantage",
    "advantage_mean": "advantages_mean advantage_mean adv_mean mean_adv",
    "data_time": "data_time data_load_time dataloader_time data_loading_time dataloading_time load_time "
                 "data data_wait data_wait_time loader_time batch_load_time dataloader_wait time_data fetch_time "
                 "input_time data_loading data_loading_s data_s data_stall io_time reader_cost avg_reader_cost",
    "step_time": "step_time iter_time iteration_time batch_time time_per_iteration elapsed_time_per_iteration "
                 "time_per_step time_per_iter time_per_batch step_duration seconds_per_step sec_per_step s_it "
                 "sec_it ms_step s_step time seconds secs dt step_timing step_timing_in_s iter_timing time_step "
                 "time_iter time_iteration timing_s_step step_seconds step_time_s ms_per_step s_iter sec_step sec_iter "
                 "batch_cost avg_batch_cost secs_per_step ms_it ms_iter seconds_per_iteration",
    "throughput": "it_s iter_s iters_s its_s steps_s step_s steps_sec it_sec iter_per_second iters_per_sec "
                  "throughput samples_s samples_sec examples_s examples_sec imgs_s img_s images_s images_sec fps "
                  "samples_per_second samples_per_sec running_avg_samples_per_sec curr_samples_per_sec "
                  "steps_per_second steps_per_sec it_per_sec ups examples_per_second images_per_second "
                  "imgs_per_sec images_per_sec sps seqs_s seq_s samples_per_s batches_s batches_per_second "
                  "batches_per_sec train_samples_per_second its ips runtime_samples_per_second global_step_sec",
    "tokens_per_second": "tps tokens_per_second tokens_per_sec tok_s toks_s tokens_s tokens_sec tgs wps "
                         "tokens_s_device tokens_per_second_per_gpu tokens_per_gpu_per_second tok_sec "
                         "tokens_s_gpu tokens_per_second_per_device throughput_tps words_per_second",
    "mfu": "mfu model_flops_utilization",
    "r2": "r2 r_2 r2_score r_squared rsquared",
    "prediction_std": "pred_std prediction_std preds_std predictions_std out_std output_std std_pred pred_stddev "
                      "outputs_std pred_spread std_preds",
    "weight_norm": "weight_norm param_norm params_norm weights_norm parameter_norm norm_weights",
    "skipped_steps": "skipped number_of_skipped_iterations skipped_iterations skipped_steps num_skipped",
    "nan_steps": "number_of_nan_iterations nan_iterations nan_steps",
    "f1": "f1 f1_score macro_f1 micro_f1 f1_macro",
    "auc": "auc roc_auc auroc",
    "c_index": "c_index cindex concordance concordance_index harrell_c",
    "bleu": "bleu sacrebleu", "wer": "wer word_error_rate", "iou": "iou miou mean_iou", "map": "map mean_ap",
    "error_rate": "error err error_rate top1_err top_1_err top1_error",
    "fid": "fid", "psnr": "psnr", "ssim": "ssim", "dice": "dice dice_score",
    "precision": "precision", "recall": "recall", "auprc": "auprc pr_auc", "bpc": "bpc bits_per_char",
    "bpd": "bpd bits_per_dim", "chamfer": "cd cd_avg chamfer chamfer_distance cd_loss", "rougel": "rougel",
    "codebook_utilization": "codebook_utilization codebook_usage code_usage utilization code_utilization usage",
    "clip_fraction": "clip_fraction clip_frac clipfrac clip_ratio pg_clipfrac",
    "explained_variance": "explained_variance", "episode_length": "ep_len_mean episode_length ep_len mean_ep_length",
    "epoch_time": "epoch_time dur duration epoch_duration time_epoch",
    "elapsed": "elapsed elapsed_time time_elapsed wall wall_time train_wall runtime total_time",
    "tflops": "tflops tflop_s_device tflops_per_gpu tflop_s throughput_per_gpu_tflop_s_gpu tflops_per_device",
    "consumed_samples": "consumed_samples consumed_train_samples", "consumed_tokens": "consumed_tokens tokens_seen "
                                                                                      "num_tokens total_tokens",
}
_SETTINGS = frozenset({"learning_rate", "loss_scale", "codebook_size", "step_time", "elapsed", "data_time", "mae",
                       "error_rate", "map", "precision", "codebook_used", "consumed_samples",
                       "consumed_tokens", "epoch_time", "codebook_utilization"})
"""Canonical names that a log may also state once as a setting or a remark ("lr: 0.001", "precision: 16")."""

_BY_NAME = {alias: (canonical, place) for canonical, aliases in _EXACT.items()
            for place, alias in enumerate(aliases.split())}
ALIASES = frozenset(_BY_NAME)
"""All names that are known as a whole."""
SCOPES = frozenset({"metrics", "metric", "trainer", "rollout", "objective", "actor", "perf", "stats", "log", "logs",
                     "scalars", "charts", "env", "runners", "optim", "optimizer",
                     "performance", "throughput", "global", "current", "cur", "avg",
                     "average", "mean", "running", "reduced", "value", "final", "critic", "policy", "model", "batch",
                     "epoch", "step", "set", "mb", "done", "last", "median", "online", "overall", "system", "timing",
                     "amp", "fp16"})
"""Words around a name that do not change what it is."""

_ADVERSARIES = frozenset({"actor", "critic", "policy"})
"""Parts of a system whose losses are no loss of the whole."""

IGNORED = frozenset({
    "batch_size", "global_batch_size", "micro_batch_size", "bsz", "wpb", "seed", "rank", "local_rank", "world_size",
    "port", "pid", "version", "v_num", "gpu", "cuda", "cpu", "line", "file", "device", "node", "cuda_visible_devices",
    "local_process_index", "percentage", "remaining", "remaining_time", "micro_step", "exit",
    "python", "torch", "jax", "momentum", "mom", "beta", "betas", "weight_decay", "wd", "eps", "num_workers",
    "workers", "threads", "parameters", "params", "param", "num_params", "shape", "steps", "epochs",
    "total_steps", "max_steps", "num_epochs", "process", "localhost", "signal", "errno", "host",
    "exit_code", "model_size", "n_params", "number_of_parameters", "trainable_parameters", "num_parameters",
    "steps_per_epoch",
})
"""Settings and identifiers: never a metric of their own in free text."""

_TIME_UNITS = {"ms": 1e-3, "us": 1e-6}
_MEMORY_UNITS = {"mb": 1.0, "mib": 1.0, "gb": 1024.0, "gib": 1024.0, "kb": 2.0**-10, "bytes": 2.0**-20, "g": 1024.0}
_MEMORY_WORDS = frozenset({"mem", "memory", "ram", "rss", "vram", "gpumem"})
_MEMORY_FILLERS = _MEMORY_WORDS | frozenset({"usage", "used", "max", "peak", "gpu", "cuda", "avg", "in", "total"})
_GRAD = re.compile(r"(?:(.+)_)?(?:grad|grads|gradient|gradients)_(?:2_|l2_)?norm(?:_(.+))?|(?:(.+)_)?gnorm(?:_(.+))?"
                   r"|norm_grads?_(.+)|grad_2_0_norm_(.+)")
_LOSS = re.compile(r"(?:(.+)_)?loss(?:es)?(?:_(.+))?")
_LR = re.compile(r"(?:lr|learning_rate)_(.+)")
_REWARD = re.compile(r"rewards?_(.+?)(?:_(mean|std))?")
_ACCURACY = re.compile(r"(?:(.+)_)?acc(?:uracy)?(?:_(.+))?")
WORDS = re.compile(r"[A-Za-z]*[\u00c0-\u024f][A-Za-z\u00c0-\u024f]*[0-9]*|"
                    r"[KMGT]i?B(?![a-z])|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+|[^\W_]+")


_DETECTOR = re.compile(r"metrics/(.+)\([BMP]\)$")
"""How Ultralytics names what it measures on the validation set: boxes, masks, poses."""
_WRAPPED = re.compile(r"(?:record/)?(?:extra|fields|payload|jsonPayload|attributes|context)/(?=.)")
"""What loggers that write JSON put around the values that they were given (loguru, tracing, cloud loggers)."""
_POSSESSIVE = re.compile(r"(?<=\w)['’]s(?!\w)")
_JOINED = re.compile(r"mAP|mIoU|mAR|IoU")
_POWER = re.compile(r"\s?\((?:1[eE]|10\^|10\*\*)(?P<power>[+-]?\d{1,2})\)$")
"""A power of ten in the name is the unit of the values: "lr(1e-3): 3.0" is a rate of 0.003."""
_HELD_OUT, _WHOLE = re.compile(r"(?<![a-z])(held|hold)[-_ ]out(?![a-z])", re.IGNORECASE), r"\1out"
"""Two words that are one: held-out, hold_out, held out."""
_NUMBERED_GROUP = re.compile(rf"\b({'|'.join(GROUPS)})_\d+(?=['’]s\b|[-/ :]|$)", re.IGNORECASE)
"""One of several sets of a kind, as gradient boosting prints them: "valid_1's auc", "validation_0-logloss"."""


def wrapper_of(original: str) -> str:
    """What a logger has put around a name, with the parting sign: "record/extra/"; "" where it has put nothing."""
    found = _WRAPPED.match(original)
    return "" if found is None else found.group()


def words(original: str) -> list[str]:
    """The lower-case words of a name: "train/gradNorm" gives train, grad, norm; "Lernrate" learning, rate; "R²" r2."""
    return [w.lower() for w in WORDS.findall(_POSSESSIVE.sub("", in_english(original)).replace("²", "2"))]


def group_word(word: str) -> str | None:
    """The group that a single word states, in whatever language; None for any other word."""
    plain = _HELD_OUT.sub(_WHOLE, word.lower())
    return GROUPS.get(plain) or GROUPS.get(in_english(plain).lower())


@lru_cache(maxsize=8192)
def identify(original: str) -> Name:
    """Canonical name and group of a metric name as written, at most a few words long."""
    original = _HELD_OUT.sub(_WHOLE, original)
    unit = _POWER.search(original)
    wrapped = _WRAPPED.match(original)
    if wrapped is not None:
        return identify(original[wrapped.end():])
    if unit is None:
        return _identify(_NUMBERED_GROUP.sub(r"\1", original))
    name = identify(original[:unit.start()])
    return replace(name, factor=name.factor * 10.0 ** int(unit["power"]))


def _identify(original: str) -> Name:
    detector = _DETECTOR.match(original)
    spelled = words(_JOINED.sub(lambda m: m.group().lower(), detector.group(1) if detector else original))
    group = VALIDATION if detector else next((GROUPS[w] for w in spelled if w in GROUPS), None)
    stem = [w for w in spelled if w not in GROUPS]
    if len(stem) > 1 and stem[0] == "l":  # L_rec, L_tot
        stem[0] = "loss"
    if stem == ["learn"]:  # how CatBoost calls the training set
        return Name("loss", TRAIN, True, True, preference=99)
    if not stem:
        return Name("loss", group, True, True, preference=99) if group else Name("value", None, False, False)
    return _lookup(stem, group)


def _lookup(stem: list[str], group: str | None) -> Name:
    joined = "_".join(stem)
    for candidate in _candidates(stem):
        if candidate in _BY_NAME:
            canonical, place = _BY_NAME[candidate]
            if canonical == "loss" and (_ADVERSARIES.intersection(stem) or stem[0] == "value"):
                continue  # the loss of an actor or a critic is a term of its own
            factor = next((_TIME_UNITS[w] for w in stem if w in _TIME_UNITS), 1.0)
            return Name(canonical, group, True, canonical not in _SETTINGS, factor, place)
    return _memory(stem, group) or _patterned(stem, joined, group) or Name(joined, group, False, False)


def _candidates(stem: list[str]) -> list[str]:
    """The spellings under which a name may stand in the tables, the fullest first."""
    bare = [w for w in stem if w not in _TIME_UNITS]
    seconds = bare[:-1] if bare[-1:] in (["s"], ["sec"], ["seconds"]) else bare
    led = list(itertools.dropwhile(lambda w: w in SCOPES or w == "time", bare))
    unscoped = [w for w in seconds if w not in SCOPES]
    best = stem[0] in ("best", "min", "max", "lowest", "highest", "target")
    return ["_".join(stem)] if best else ["_".join(w) for w in (stem, bare, seconds, led, unscoped or bare[-1:]) if w]


def _memory(stem: list[str], group: str | None) -> Name | None:
    if not _MEMORY_WORDS.intersection(stem) and not (len(stem) > 1 and {"mb", "gb", "mib", "gib"}.intersection(stem)):
        return None
    what = [w for w in stem if w not in _MEMORY_FILLERS and w not in _MEMORY_UNITS]
    factor = next((_MEMORY_UNITS[w] for w in stem if w in _MEMORY_UNITS), 1.0)
    return Name("/".join(["memory", "_".join(what)] if what else ["memory"]), group, True, True, factor)


def _patterned(stem: list[str], joined: str, group: str | None) -> Name | None:
    if stem[0] in ("best", "min", "max", "lowest", "highest", "target"):
        rest = _lookup(stem[1:], group) if len(stem) > 1 else None
        return Name(f"{stem[0]}_{rest.canonical}", group, True, False) if rest and rest.known else None
    for pattern, head in ((_GRAD, "grad_norm"), (_LR, "learning_rate"), (_REWARD, "reward")):
        found = pattern.fullmatch(joined)
        if found:
            parts = [p for p in found.groups() if p and not (head == "reward" and p == "mean")]
            return Name("/".join([head, *parts]), group, True, head != "learning_rate")
    found = _ACCURACY.fullmatch(joined)
    if found:
        kinds = {"multiclass", "binary", "multilabel", *SCOPES}
        scoped = [w for p in found.groups() if p for w in p.split("_") if w not in kinds]
        return Name("/".join(["accuracy", "_".join(scoped)] if scoped else ["accuracy"]), group, True, True)
    found = _LOSS.fullmatch(joined)
    if found:
        scoped = [w for p in found.groups() if p for w in p.split("_") if w not in ("avg", "mean", "epoch", "step")]
        return Name("loss/" + "_".join(scoped) if scoped else "loss", group, True, True)
    return None
