"""How batches are made: workers, order, size."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import ANY, INTEGER, NUMBER, Intervention, Setting

_WORKERS = "traindx_tools.experiments.live.on_torch.workers"
_NAMES = "traindx_tools.experiments.live.on_python.name_order"
_SAMPLERS = "traindx_tools.experiments.live.on_torch.samplers"

INTERVENTIONS = (
    Intervention(
        "no-workers", "batches are made in the training's own process",
        changes="Every DataLoader is made with `num_workers=0`.",
        keeps="Order and contents of batches, but for random numbers drawn in workers.",
        shows="Where a hang, a leak, doubled data or equal augmentations go, the workers did it: handles shared by "
              "fork, an iterable data set that each worker reads whole, seeds alike in all.",
        cannot_tell="Which of these; `one-worker` tells a fault of several from one of any.",
        horizon=20, live={"torch": f"{_WORKERS}:NoWorkers"}),
    Intervention(
        "one-worker", "batches are made by one worker",
        changes="Every DataLoader is made with `num_workers=1`.",
        keeps="All else of the loader.",
        shows="Where the symptom goes with one worker and not with none needed, it needs several: data read twice, "
              "seeds alike, a race for one file.",
        cannot_tell="Where the loader had none before, a worker is new to it.",
        horizon=20, live={"torch": f"{_WORKERS}:OneWorker"}),
    Intervention(
        "batch-size", "batches hold so many times the samples",
        changes="Every DataLoader is made with `times` its batch size, rounded, at least 1.",
        keeps="The samples and, as far as it can, their order; learning rate and schedule by steps.",
        shows="Where memory errors, noise or instability go, they scale with the batch.",
        cannot_tell="An epoch has another number of steps, and a sum over the batch another size.",
        horizon=30, options=(Setting("times", "the factor", NUMBER, 0.5, least=1e-6, most=1e6),),
        live={"torch": f"{_WORKERS}:BatchSize"}),
    Intervention(
        "no-shuffle", "samples come in the order of the data set",
        changes="The random or distributed sampler of the training's DataLoaders becomes a sequential one.",
        keeps="Samples and batch sizes; evaluations. The sampler draws no random numbers then.",
        shows="Where spikes now stand at the same place of each epoch, they belong to samples there. Where a symptom "
              "goes, the order did it.",
        cannot_tell="A data set that is sorted by class trains badly in order, which is a fault of this change.",
        horizon=50, live={"torch": f"{_SAMPLERS}:NoShuffle"}),
    Intervention(
        "shuffle", "samples come in a random order",
        changes="The sequential sampler of the training's DataLoaders becomes a random one with a generator of its "
                "own, seeded by `seed`; a distributed one shuffles anew in each epoch.",
        keeps="Samples, batch sizes, the training's own random numbers; evaluations.",
        shows="Where a sawtooth within each epoch goes, or a metric that sank with each class, the data was sorted.",
        cannot_tell="Where order carries meaning (recurrent state over batches, curricula), shuffling breaks it.",
        horizon=50, options=(Setting("seed", "of the order", INTEGER, 0, least=0, most=2**31 - 1),),
        live={"torch": f"{_SAMPLERS}:Shuffle"}),
    Intervention(
        "names-by-number", "names with numbers in them come in the order of the numbers",
        changes="A call of `sorted` in the program's own code that puts texts or paths in the order of their signs "
                "gives them in the order of the numbers in them: `scan2` before `scan10`.",
        keeps="Which names there are; sorts by another key, and sorts whose order is the same by number.",
        shows="Where the symptom goes, files in the order of names stood beside labels (or other files) in the order "
              "of numbers.",
        cannot_tell="Anything of names that `list.sort`, numpy, a shell or a library sorts.",
        frameworks=(ANY,), horizon=50,
        live={"python": f"{_NAMES}:NamesByNumber"}),
    Intervention(
        "no-sampler-weights", "rows are drawn with equal chances",
        changes="The `WeightedRandomSampler` of the training's DataLoaders becomes a random one of as many draws, with "
                "replacement where it had it.",
        keeps="Samples, batch sizes and the generator of the draws; evaluations.",
        shows="Where the symptom goes, the weights did it: weights of classes where those of rows are wanted, of other "
              "rows, or balance twice (in the sampler and in the loss).",
        cannot_tell="Whether rare classes are learned without: where they need the weights, a metric of them sinks.",
        horizon=50, live={"torch": f"{_SAMPLERS}:NoSamplerWeights"}),
)
