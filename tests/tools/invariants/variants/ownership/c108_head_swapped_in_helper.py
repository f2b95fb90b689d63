import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocabulary, tags):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 64)
        self.encoder = nn.GRU(64, 64, batch_first=True)
        self.out = nn.Linear(64, tags)

    def forward(self, tokens):
        hidden, _ = self.encoder(self.embedding(tokens))
        return self.out(hidden)


def adapt(tagger, tags):
    tagger.out = nn.Linear(tagger.out.in_features, tags)  # FAULT C108
    return tagger


def main(corpus):
    tagger = Tagger(5000, 17)
    optimiser = torch.optim.Adam(tagger.parameters(), lr=3e-4)
    tagger = adapt(tagger, 9)
    objective = nn.CrossEntropyLoss()
    for tokens, tags in corpus:
        scores = tagger(tokens)
        error = objective(scores.flatten(0, 1), tags.flatten())
        optimiser.zero_grad(set_to_none=True)
        error.backward()
        optimiser.step()


main([])
