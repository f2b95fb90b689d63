"""Star-rating classifier for hotel reviews (tiny BERT, HF Trainer)."""
import random
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(13)
GOOD = "clean friendly quiet lovely spacious fresh helpful".split()
BAD = "dirty rude noisy broken smelly cramped late".split()
FILL = "the room staff breakfast was and lobby very pool we stayed".split()
WORDS = ["[PAD]", "[CLS]", "[SEP]"] + GOOD + BAD + FILL
ID = {w: i for i, w in enumerate(WORDS)}


def write_review():
    rating = random.randint(0, 2)
    p_good = (0.1, 0.5, 0.9)[rating]
    words = [random.choice(FILL) if random.random() < 0.5
             else random.choice(GOOD if random.random() < p_good else BAD) for _ in range(18)]
    return words, rating


class Reviews(Dataset):
    def __init__(self, n):
        self.items = [write_review() for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        words, rating = self.items[i]
        ids = [ID["[CLS]"]] + [ID[w] for w in words] + [ID["[SEP]"]]
        return {"input_ids": ids, "rating": rating}


def collate(rows):
    ids = torch.tensor([r["input_ids"] for r in rows])
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "rating": torch.tensor([r["rating"] for r in rows]),
    }


def main():
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=32, num_labels=3))
    args = TrainingArguments(
        output_dir="out", per_device_train_batch_size=16, max_steps=60, learning_rate=1e-3,
        logging_steps=10, save_strategy="no", report_to=[], use_cpu=True,
        remove_unused_columns=False, label_names=["rating"])
    train, dev = Reviews(800), Reviews(100)
    batch = collate([train[i] for i in range(4)])
    print("example batch:", {k: tuple(v.shape) for k, v in batch.items()})
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=dev, data_collator=collate)
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
