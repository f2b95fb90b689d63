"""Subject area of paper abstracts, BERT from scratch on the few labelled ones. HF Trainer."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Abstracts(Dataset):
    """Token ids; the area shifts the frequencies of a few hundred words only slightly."""

    def __init__(self, n, seed, areas=4, vocab=400, length=24):
        tilt = np.random.default_rng(7).normal(size=(areas, vocab))
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, areas, n)
        p = np.exp(0.45 * tilt)
        p /= p.sum(1, keepdims=True)
        self.x = np.stack([rng.choice(vocab, length, p=p[k]) for k in self.y])

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.x[i]), "labels": int(self.y[i])}


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    set_seed(21)
    config = BertConfig(vocab_size=400, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                        max_position_embeddings=32, num_labels=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    args = TrainingArguments(output_dir="out", num_train_epochs=24, per_device_train_batch_size=40,
                             per_device_eval_batch_size=200, learning_rate=1e-3, lr_scheduler_type="constant", weight_decay=0.0,
                             logging_strategy="epoch", eval_strategy="epoch", save_strategy="no", report_to=[],
                             disable_tqdm=True, use_cpu=True, seed=21)
    trainer = Trainer(model=BertForSequenceClassification(config), args=args, train_dataset=Abstracts(240, 1),
                      eval_dataset=Abstracts(400, 2), compute_metrics=accuracy)
    trainer.train()
    trainer.state.save_to_json("trainer_state.json")


if __name__ == "__main__":
    main()
