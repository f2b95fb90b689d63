"""Which samples a training sees, by index: a range left out or alone, one source of several."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import INTEGER, Intervention, Setting

_LIVE = "traindx_tools.experiments.live.on_torch.samplers"
_FROM = Setting("from", "the first index", INTEGER, required=True, least=0)
_TO = Setting("to", "the last index, included", INTEGER, required=True, least=0)

INTERVENTIONS = (
    Intervention(
        "indices-left-out", "samples of an index range are left out",
        changes="The samplers of the training's DataLoaders no longer give indices from `from` to `to`.",
        keeps="The order of the other samples, batch sizes, and the data set itself; evaluations. Under a "
              "DistributedSampler all ranks have as many samples.",
        shows="Where the symptom goes, it comes from samples of this range; halving the range finds them.",
        cannot_tell="What is wrong with them. An epoch is shorter, so that schedules by epoch move. Iterable data sets "
                    "and batch samplers of the program's own have no such range, and the change says so.",
        horizon=30, options=(_FROM, _TO), live={"torch": f"{_LIVE}:Indices"}),
    Intervention(
        "indices-alone", "samples of an index range are the only ones",
        changes="The samplers of the training's DataLoaders give indices from `from` to `to` alone.",
        keeps="The order of these samples, batch sizes, the data set itself; evaluations.",
        shows="Where the symptom stays, this range is enough for it; where it goes, it needs others.",
        cannot_tell="Whether few samples are learned by heart: a falling loss on a small range proves nothing.",
        horizon=30, options=(_FROM, _TO), live={"torch": f"{_LIVE}:Indices"}),
    Intervention(
        "one-source", "one of the data sets that were put together is read alone",
        changes="Of a ConcatDataset the samples of part `number` are the only ones.",
        keeps="Order, batch sizes, evaluations.",
        shows="Where the symptom stays with one source and goes with each other one, it comes from that source.",
        cannot_tell="What is wrong with it. Sources that are mixed in another way are not known: `files-alone` and "
                    "`rows-alone` choose by file.",
        horizon=30, options=(Setting("number", "of the source, from 0", INTEGER, required=True, least=0),),
        live={"torch": f"{_LIVE}:OneSource"}),
)
