"""A recurrent state goes from sequence to sequence with the graph of all before."""
import torch
from torch import nn


def train_rnn(cell, head, sequences, opt):
    hidden = torch.zeros(1, 64)
    for epoch in range(20):
        for seq, target in sequences:
            opt.zero_grad()
            for t in range(seq.size(0)):
                hidden = cell(seq[t].unsqueeze(0), hidden)  # FAULT C103
            loss = nn.functional.mse_loss(head(hidden), target)
            loss.backward(retain_graph=True)
            opt.step()


def main(sequences):
    cell, head = nn.GRUCell(8, 64), nn.Linear(64, 1)
    train_rnn(cell, head, sequences, torch.optim.Adam([*cell.parameters(), *head.parameters()], 1e-3))
