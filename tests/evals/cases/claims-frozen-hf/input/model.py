import torch
import torch.nn as nn
from transformers import BertConfig, BertModel
from transformers.modeling_outputs import SequenceClassifierOutput

VOCAB, LEN = 200, 24


def encoder():
    torch.manual_seed(77)
    return BertModel(BertConfig(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                max_position_embeddings=LEN, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


class ClaimModel(nn.Module):
    def __init__(self, freeze=True, path="encoder.pt"):
        super().__init__()
        self.encoder = encoder()
        self.encoder.load_state_dict(torch.load(path, weights_only=True))
        if freeze:
            self.encoder.requires_grad_(False)
        self.score = nn.Linear(64, 2)

    def forward(self, input_ids, labels=None):
        h = self.encoder(input_ids=input_ids).last_hidden_state.mean(1)
        logits = self.score(h)
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return SequenceClassifierOutput(loss=loss, logits=logits)
