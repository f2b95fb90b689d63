"""Sort support tickets into eight queues: bag of words and a two-layer network."""

import torch
import torch.nn as nn

torch.manual_seed(5)
QUEUES, VOCABULARY, WORDS = 8, 600, 24
TRAIN, VALID, BATCH, STEPS = 4000, 800, 64, 1500


def make_tickets(count, topics, generator):
    """Every queue has its own distribution over words; a quarter of the words are common to all."""
    label = torch.randint(0, QUEUES, (count,), generator=generator)
    own = torch.multinomial(topics[label], WORDS, replacement=True, generator=generator)
    common = torch.randint(0, VOCABULARY, (count, WORDS), generator=generator)
    mixed = torch.where(torch.rand(count, WORDS, generator=generator) < 0.25, common, own)
    counts = torch.zeros(count, VOCABULARY).scatter_add_(1, mixed, torch.ones(count, WORDS))
    return counts, label


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(VOCABULARY, 64)
        self.out = nn.Linear(64, QUEUES)

    def forward(self, words):
        scores = self.out(torch.relu(self.hidden(words)))
        return torch.softmax(scores, dim=-1)


def main():
    generator = torch.Generator().manual_seed(1)
    topics = torch.distributions.Dirichlet(torch.full((VOCABULARY,), 0.05)).sample((QUEUES,))
    words, queue = make_tickets(TRAIN, topics, generator)
    words_valid, queue_valid = make_tickets(VALID, topics, generator)
    model = Router()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        rows = torch.randint(0, TRAIN, (BATCH,), generator=generator)
        optimizer.zero_grad()
        output = model(words[rows])
        loss = criterion(output, queue[rows])
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 25 == 0:
            print(f"[{step}/{STEPS}] loss: {loss.item():.4f} grad_norm: {norm.item():.4f} lr: 1.0e-03", flush=True)
        if step % 250 == 0:
            model.eval()
            with torch.no_grad():
                output = model(words_valid)
                val_loss = criterion(output, queue_valid).item()
                accuracy = (output.argmax(dim=-1) == queue_valid).float().mean().item()
            model.train()
            print(f"[{step}/{STEPS}] val_loss: {val_loss:.4f} val_accuracy: {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
