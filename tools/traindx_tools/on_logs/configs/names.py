"""What a setting is called: one canonical name for the many that projects use.

`lookup(config, "learning_rate")` finds lr, optim.lr, optimizer.params.lr, TrainingArguments.learning_rate ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "learning_rate": ("learning_rate", "lr", "base_lr", "peak_lr", "max_lr", "init_lr", "initial_lr", "lr0", "lr_max",
                      "base_learning_rate", "peak_learning_rate", "initial_learning_rate", "step_size"),
    "min_learning_rate": ("min_lr", "lr_min", "eta_min", "end_lr", "final_lr", "min_learning_rate"),
    "batch_size": ("batch_size", "per_device_train_batch_size", "train_batch_size", "bs", "batch", "batchsize",
                   "micro_batch_size", "train_micro_batch_size_per_gpu", "samples_per_gpu", "per_gpu_batch_size",
                   "device_batch_size", "global_batch_size"),
    "num_classes": ("num_classes", "n_classes", "classes", "num_labels", "n_labels", "nclasses", "num_class", "n_class",
                    "number_of_classes", "nb_classes", "output_classes"),
    "vocab_size": ("vocab_size", "n_vocab", "vocab", "vocabulary_size", "vocabulary", "padded_vocab_size", "ntokens",
                   "num_tokens_vocab"),
    "grad_accumulation": ("gradient_accumulation_steps", "grad_accum", "grad_accumulation", "accumulate_grad_batches",
                          "grad_accum_steps", "accum_steps", "accumulation_steps", "gradient_accumulation",
                          "accum_iter", "grad_acc_steps", "grad_accumulation_steps", "update_freq", "accum",
                          "accumulate"),
    "world_size": ("world_size", "num_processes", "n_gpus", "num_gpus", "ngpus", "nproc_per_node", "gpus", "n_devices",
                   "num_devices", "devices"),
    "precision": ("precision", "mixed_precision", "amp_dtype", "compute_dtype", "torch_dtype", "dtype", "param_dtype"),
    "max_steps": ("max_steps", "total_steps", "num_steps", "max_iters", "max_iter", "train_iters", "num_train_steps",
                  "train_steps", "num_training_steps", "training_steps", "total_iterations", "n_steps", "steps",
                  "iters", "iterations", "num_iterations"),
    "epochs": ("num_train_epochs", "epochs", "num_epochs", "max_epochs", "n_epochs", "total_epochs", "nepochs"),
    "warmup_steps": ("warmup_steps", "num_warmup_steps", "warmup_iters", "lr_warmup_steps", "lr_warmup_iters",
                     "warmup_num_steps", "warmup_updates", "warmup"),
    "warmup_ratio": ("warmup_ratio", "warmup_fraction", "warmup_proportion", "lr_warmup_fraction"),
    "weight_decay": ("weight_decay", "wd", "weightdecay", "l2", "decay_weight"),
    "momentum": ("momentum", "sgd_momentum"),
    "seed": ("seed", "random_seed", "rng_seed", "manual_seed", "base_seed"),
    "max_grad_norm": ("max_grad_norm", "grad_clip", "gradient_clip_val", "clip_grad_norm", "clip_grad", "max_norm",
                      "gradient_clipping", "clip_norm", "grad_clip_norm", "gradient_clip"),
    "commitment_weight": ("commitment_weight", "commitment_cost", "commitment", "commitment_loss_weight",
                          "commit_weight", "commit_loss_weight", "lambda_commit", "beta_commit",
                          "commitment_beta", "commitment_coef"),
    "codebook_size": ("codebook_size", "num_codes", "n_codes", "codes", "num_embeddings", "n_embed_codes",
                      "codebook_entries", "vq_size"),
    "kl_weight": ("kl_weight", "kl_coef", "beta_kl", "kl_beta", "kl_coeff", "kl_loss_coef", "init_kl_coef"),
    "num_workers": ("num_workers", "dataloader_num_workers", "workers", "n_workers", "num_data_workers"),
    "max_length": ("max_length", "max_len", "block_size", "seq_len", "max_seq_length", "max_seq_len", "context_length",
                   "sequence_length", "n_positions", "max_position_embeddings", "model_max_length"),
    "group_size": ("num_generations", "group_size", "n_samples_per_prompt", "rollouts_per_prompt",
                   "num_return_sequences"),
    "optimizer": ("optimizer", "optim", "optimizer_name", "optimizer_type", "optim_name", "opt"),
    "scheduler": ("lr_scheduler_type", "scheduler", "lr_scheduler", "lr_schedule", "lr_decay_style", "schedule"),
}
"""Canonical name to the last parts of keys under which it goes, the most usual first."""

_TEXT = frozenset({"precision", "optimizer", "scheduler"})
_HALF_FLAGS = {"fp16": "fp16", "bf16": "bf16", "fp16_enabled": "fp16", "bf16_enabled": "bf16",
               "bfloat16_enabled": "bf16", "use_fp16": "fp16", "use_bf16": "bf16", "fp16.enabled": "fp16",
               "bf16.enabled": "bf16", "amp": "amp", "use_amp": "amp"}
_NAMED_BY = ("type", "name", "_target_", "class_name", "optimizer_name")
_NOT_TRAINING = re.compile(r"(?:^|[._])(?:eval|evaluation|val|valid|validation|test|ema|warmup|decay)(?:[._]|$)")


def lookup(config: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """The value of a setting by its canonical name (a key of `SYNONYMS`), or `default`.

    Numbers come as int or float. Among several keys the shallowest wins, then the more usual name; "auto" counts as
    not given. Raises KeyError for a canonical name that does not exist.
    """
    found = lookup_all(config, name)
    return next(iter(found.values()), default)


def lookup_all(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Every key under which a setting is given, best first, with its value."""
    synonyms = {n: i for i, n in enumerate(SYNONYMS[name])}
    found = []
    for key, value in config.items():
        rank, usable = _rank(key, synonyms), _usable(name, value)
        if rank is not None and usable is not None:
            found.append((key.count("."), _NOT_TRAINING.search(key) is not None, rank, key, usable))
    found.sort(key=lambda f: f[:4])
    return {key: value for *_, key, value in found} or (_half_flag(config) if name == "precision" else {})


def _rank(key: str, synonyms: Mapping[str, int]) -> int | None:
    parts = normalised(key).split(".")
    if parts[-1] in synonyms:
        return synonyms[parts[-1]]
    if len(parts) > 1 and parts[-1] in _NAMED_BY:
        return synonyms.get(parts[-2])
    return synonyms.get("_".join(parts[-2:]))


def normalised(key: str) -> str:
    """A key in lower snake case: "Batch-Size" and "batchSize" are "batch_size"."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    return re.sub(r"[\s-]+", "_", snake).lower().strip("_")


def _usable(name: str, value: Any) -> Any:
    if name in _TEXT:
        usable = isinstance(value, (str, int)) and not isinstance(value, bool) and value != "auto"
        return str(value) if usable else None
    if isinstance(value, str):
        try:
            value = float(value) if not value.strip().lstrip("+-").isdigit() else int(value)
        except ValueError:
            return None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _half_flag(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _HALF_FLAGS[normalised(key)] for key, value in config.items()
            if value is True and normalised(key) in _HALF_FLAGS}
