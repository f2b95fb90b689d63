import numpy as np
from transformers import (DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments,
                          set_seed)

from corpus import LENGTH, SHARE, TOPICS, VOCAB, Headlines


def compute_metrics(p):
    guess, truth = p.predictions.argmax(-1), p.label_ids
    f1 = []
    for k in range(len(TOPICS)):
        tp = ((guess == k) & (truth == k)).sum()
        f1.append(2 * tp / max((guess == k).sum() + (truth == k).sum(), 1))
    return {"accuracy": float((guess == truth).mean()), "macro_f1": float(np.mean(f1)),
            "f1_rarest": float(f1[-1])}


def main():
    set_seed(29)
    cfg = DistilBertConfig(vocab_size=VOCAB, dim=64, n_layers=2, n_heads=4, hidden_dim=128, dropout=0.1,
                           attention_dropout=0.0, max_position_embeddings=LENGTH, num_labels=len(TOPICS),
                           seq_classif_dropout=0.2)
    model = DistilBertForSequenceClassification(cfg)
    train, valid, test = Headlines(3600, 1), Headlines(1000, 2), Headlines(1000, 3)
    counts = np.bincount(train.y, minlength=len(TOPICS))
    print("train counts", dict(zip(TOPICS, counts.tolist())), "majority share", round(SHARE.max(), 2))
    args = TrainingArguments(
        output_dir="runs", num_train_epochs=8, per_device_train_batch_size=50, per_device_eval_batch_size=500,
        learning_rate=1e-3, lr_scheduler_type="linear", warmup_steps=40, weight_decay=0.01,
        eval_strategy="epoch", save_strategy="epoch", save_total_limit=1, logging_strategy="epoch",
        load_best_model_at_end=True, metric_for_best_model="accuracy", greater_is_better=True,
        report_to="none", disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False, seed=29)
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=valid,
                      compute_metrics=compute_metrics)
    trainer.train()
    print("best", trainer.state.best_metric)
    print("test", {k: round(v, 4) for k, v in trainer.evaluate(test, metric_key_prefix="test").items()
                   if k.startswith(("test_acc", "test_macro", "test_loss", "test_f1"))})


if __name__ == "__main__":
    main()
