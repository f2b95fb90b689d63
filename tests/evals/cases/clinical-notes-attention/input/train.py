"""Readmission risk from a patient's notes with attention pooling."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(17)
VOCAB, MAX_NOTES = 200, 6


class Patients(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            k = int(torch.distributions.Poisson(4.0).sample().clamp(max=MAX_NOTES))
            notes = torch.randint(1, VOCAB, (k, 12), generator=g)
            risk = float((notes < 20).float().mean() * 6) if k else 0.3
            self.rows.append((notes, float(torch.rand(1, generator=g) < risk)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        notes, y = self.rows[i]
        padded = torch.zeros(MAX_NOTES, 12, dtype=torch.long)
        padded[:len(notes)] = notes
        return padded, len(notes), y


class NotePooler(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCAB, dim, padding_idx=0)
        self.query = nn.Linear(dim, 1)
        self.out = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 1))

    def forward(self, notes, n_notes):
        b = notes.shape[0]
        e = self.words(notes.view(b * MAX_NOTES, -1)).view(b, MAX_NOTES, -1)
        score = self.query(torch.tanh(e)).squeeze(-1)
        blank = torch.arange(MAX_NOTES) >= n_notes[:, None]
        weight = score.masked_fill(blank, float("-inf")).softmax(-1)
        return self.out((weight[..., None] * e).sum(1)).squeeze(-1)


def run():
    train = DataLoader(Patients(1500, 1), batch_size=8, shuffle=True)
    model = NotePooler()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        for i, (notes, n, y) in enumerate(train):
            loss = nn.functional.binary_cross_entropy_with_logits(model(notes, n), y.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i < 16 or i % 40 == 0:
                print(f"epoch {epoch} | batch {i:3d} | notes/patient {n.float().mean():.2f} (min {n.min()}) | loss {loss.item():.4f}")


if __name__ == "__main__":
    run()
