"""The lexicon of what can be observed: words of the field, what they stand for and how their values are to be read."""

from __future__ import annotations

from dataclasses import dataclass

from traindx_tools.symptom.words import Phrases


@dataclass(frozen=True)
class Row:
    """A thing that can be observed. `names`: canonical metric names that may hold it (see `on_logs.readers.names`)."""

    key: str
    family: str
    names: tuple[str, ...] = ()


_LOSSES = ("loss", "total", "mse", "nll", "mae", "rmse", "loss/recon", "chamfer", "elbo", "bpc", "bpd", "error_rate",
           "perplexity")
_TABLE: tuple[tuple[Row, str], ...] = (
    (Row("loss", "loss", _LOSSES),
     "loss, cost, objective, criterion, cross entropy, crossentropy, ce, xent, bce, binary cross entropy, "
     "log loss, logloss, loss value, total loss, loss curve, loss term, train error, training error, "
     "train objective, iteration loss, batch loss, objective function, huber, hinge, infonce, td loss, td error, "
     "ctc loss, sft loss, dpo loss, ssl loss, epsilon loss, eps loss, dice loss, kl loss, residual, pde residual, "
     "denoising loss, focal loss, triplet loss, contrastive loss, noise prediction error, reconstruction loss, "
     "recon loss, prediction error, batch error, error, test error, validation error, val error, eval error, "
     "evaluation error, holdout error, policy loss, value loss, critic loss, actor loss, misfit"),
    (Row("mse", "loss", ("mse", "loss")),
     "mse, mean squared error, l2 loss"),
    (Row("nll", "loss", ("nll", "loss")),
     "nll, negative log likelihood, neg log likelihood"),
    (Row("rmse", "loss", ("rmse", "mae", "mse", "loss")),
     "rmse, mae, mean absolute error, mape"),
    (Row("perplexity", "loss", ("perplexity", "loss")),
     "perplexity, ppl"),
    (Row("reconstruction", "loss", ("loss/recon", "mse", "loss")),
     "reconstruction error, reconstruction term"),
    (Row("discriminator", "adversary", ("discriminator_loss",)),
     "discriminator loss, d loss, loss d, critic, discriminator, critic's loss, discriminator's loss"),
    (Row("generator", "adversary", ("generator_loss",)),
     "generator loss, g loss, loss g, generator, generator's loss"),
    (Row("elbo", "loss", ("elbo", "loss")),
     "elbo"),
    (Row("accuracy", "score", ("accuracy", "accuracy_top5", "f1", "auc", "iou", "map", "dice", "r2", "recall",
                "precision", "bleu", "hits", "auprc", "rougel", "psnr", "ssim")),
     "accuracy, acc, score, metric, performance, result, test set, number, top 1, top 5, token accuracy, "
     "success rate, success, hit rate, ctr, exact match, hits, mrr, ndcg, hr, nse, kappa, mcc, correlation, "
     "spearman, pearson, quality, continuation accuracy, query accuracy, classification, knn, evaluation metric"),
    (Row("f1", "score", ("f1", "accuracy")),
     "f1, f1 score, macro f1"),
    (Row("auc", "score", ("auc", "accuracy")),
     "auc, auroc, roc auc, auprc"),
    (Row("c-index", "score", ("c_index", "auc")),
     "c index, concordance, concordance index"),
    (Row("r2", "score", ("r2",)),
     "r2, r squared, explained variance"),
    (Row("iou", "score", ("iou", "accuracy")),
     "iou, miou"),
    (Row("dice", "score", ("dice", "accuracy")),
     "dice"),
    (Row("map", "score", ("map", "accuracy")),
     "map, ap50, ap, map50"),
    (Row("recall", "score", ("recall", "accuracy")),
     "recall, test recall, sensitivity"),
    (Row("precision", "score", ("precision", "accuracy")),
     "precision"),
    (Row("bleu", "score", ("bleu",)),
     "bleu, rouge, meteor, chrf"),
    (Row("wer", "loss", ("wer", "error_rate")),
     "wer, cer, word error rate, character error rate, error rate, eer"),
    (Row("fid", "loss", ("fid",)),
     "fid"),
    (Row("reward", "score", ("reward",)),
     "reward, return, episode return, episode reward, mean reward, mean score, mean return, score mean, "
     "greedy return, evaluation reward, average return"),
    (Row("episode_length", "number", ("episode_length",)),
     "episode length"),
    (Row("grad_norm", "gradient", ("grad_norm",)),
     "gradient, grad, gradient norm, grad norm, gnorm, gradnorm, gradient magnitude"),
    (Row("learning_rate", "lr", ("learning_rate",)),
     "learning rate, lr, step size, schedule, scheduler, warm up lr"),
    (Row("loss_scale", "scale", ("loss_scale",)),
     "loss scale, grad scale, scaler"),
    (Row("memory", "memory", ("memory",)),
     "memory, ram, rss, vram, host memory, gpu memory, host ram, memory use, memory usage, memory footprint, "
     "resident memory, cpu memory, cuda memory, allocated memory, device memory, memory consumption, heap"),
    (Row("throughput", "speed", ("throughput", "tokens_per_second", "mfu")),
     "throughput, it / s, it/s, speed, tokens/s, token per second, tok/s, mfu, samples/s, img/s, gpu utilization, "
     "gpu utilisation, utilization, utilisation, fps, samples_per_sec"),
    (Row("step_time", "time", ("step_time", "data_time", "epoch_time", "time/train")),
     "every update, every step, a step, each step, each update, update, first step, step, step time, "
     "iteration time, time per step, time per iteration, epoch time, data time, step duration, every epoch, "
     "each epoch, an epoch, epoch, time per epoch, epoch duration"),
    (Row("kl", "term", ("kl",)),
     "kl, kl term, kld, kl divergence, kl penalty"),
    (Row("entropy", "entropy", ("entropy",)),
     "entropy, policy entropy"),
    (Row("codes", "codes", ("codebook_perplexity", "codebook_used", "codebook_utilization", "perplexity")),
     "code, codebook, codebook perplexity, code perplexity, codebook usage, codebook entry, code_perplexity"),
    (Row("vq", "term", ("loss/vq", "loss/commit")),
     "vq, vq term, vq loss, commitment loss, commit loss, vq column, commitment term"),
    (Row("advantage", "number", ("advantage_max", "advantage_min", "advantage_mean")),
     "advantage"),
    (Row("margin", "score", ("reward",)),
     "margin, reward margin"),
    (Row("q", "number", ()),
     "q value, q values, q, value estimate"),
    (Row("clip_fraction", "number", ("clip_fraction",)),
     "clip fraction, clip frac, clipfrac"),
    (Row("weights", "weights", ("weight_norm",)),
     "weight, parameter, encoder weight, adapter, weight norm, head weight, backbone weight, layer, head, "
     "backbone, encoder, decoder, checksum, fingerprint, embedding table, target network, saved adapter, "
     "exported model"),
    (Row("outputs", "output", ()),
     "output, sample, generation, generated text, generated sample, text, prediction, image, answer, completion, "
     "translation, forecast, embedding, hypothesis, reconstruction, logit, decoded text, caption, word, token, "
     "generated token, picture, mask, box, detection, representation, greedy generation, greedy decoding, "
     "generated image, drawing, sampled image, spectrum, fake, transcript, response, action, spread, uncertainty, "
     "policy, topic vector, continuation, class, label, progression, stroke, rollout, generated progression, "
     "letter"),
    (Row("ranks", "ranks", ()),
     "rank, replica, two rank, worker process, gpus"),
    (Row("run", "run", ()),
     "run, training, job, process, script, program, model, network, net, agent, trainer, everything, nothing, "
     "classifier, regressor, fit, regression, lstm, gru, transformer, cnn, gan, vae, mlp, fine tune, fine tuning, "
     "finetune, finetuning, simulation, learner, unet, u net, forecaster, tagger, machine, system, server, kernel, "
     "notebook, checkpoint, training step, training loop, main process, worker, dataloader, data loader, "
     "validation run, evaluation run, actor, student, recommender, detector, autoencoder, auto encoder, lora, ppo, "
     "dqn"),
    (Row("data", "setting", ()),
     "data, batch size, batch, setting, seed, dropout, weight decay, hyperparameter, config, configuration, mask, "
     "input, target, dataset, loader, clipping, gradient clipping, augmentation, sampler, shape, key, vocabulary, "
     "beta, temperature, mixed precision, half precision, full precision, single precision, scan step, "
     "gradient penalty, linear decay, cosine decay, lr decay, effective batch, learning rate schedule, optimizer, "
     "optimiser, bigger gpu, larger network, bigger model, larger model, resolution"),
)  # fmt: skip

ROWS: tuple[Row, ...] = tuple(row for row, _ in _TABLE)
BY_KEY = {row.key: row for row in ROWS}
PHRASES: Phrases[Row] = Phrases((phrase.strip(), row) for row, phrases in _TABLE for phrase in phrases.split(","))

SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "validate", "eval", "evaluation", "dev", "holdout", "heldout",
                     "held_out", "validating", "evaluated", "evaluate"), "validation"),
    **dict.fromkeys(("test", "testing", "production", "deployment"), "test"),
}
"""Words that name a split of the data."""

JUDGED_BY_VALUE = frozenset({"loss", "score", "reward", "gradient", "lr", "memory", "speed", "time", "entropy", "codes",
                             "term", "scale", "number", "adversary", "own"})
"""Families that a recorded metric shows."""
