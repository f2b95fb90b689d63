"""One training program: its parts and what happened, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.program import driving, entities, parts, uses
from traindx_tools.program.constants import (
    Constants,
    HalfUpdate,
    HookedSchedule,
    Indexing,
    Pole,
    RateProduct,
    Rounded,
    ScheduleUse,
    TextSwitch,
    Window,
)
from traindx_tools.program.loading import Apart, Loader, PreparedBefore
from traindx_tools.program.moments import Act, Section, Spot
from traindx_tools.program.timeline import Timeline
from traindx_tools.program.traced import CompiledAnew, SharedKey, TracedFunction


@dataclass
class Program:
    """What is known of it. Filled while it runs (or is read); asked by checks and by whoever needs facts."""

    framework: str
    models: list[entities.Model] = field(default_factory=list)
    optimizers: list[entities.Optimizer] = field(default_factory=list)
    schedules: list[entities.Schedule] = field(default_factory=list)
    losses: list[entities.Loss] = field(default_factory=list)
    files: list[entities.StateFile] = field(default_factory=list)
    scalers: list[entities.Scaler] = field(default_factory=list)
    drops: list[entities.Drop] = field(default_factory=list)
    collections: list[entities.Collection] = field(default_factory=list)
    output_layers: list[entities.OutputLayer] = field(default_factory=list)
    loss_calls: list[entities.LossCall] = field(default_factory=list)
    cut_parts: list[parts.CutPart] = field(default_factory=list)
    code_lookups: list[parts.CodeLookup] = field(default_factory=list)
    mismatches: list[uses.Mismatch] = field(default_factory=list)
    aliases: list[parts.Alias] = field(default_factory=list)
    sized_models: list[parts.SizedModel] = field(default_factory=list)
    part_calls: list[parts.PartCall] = field(default_factory=list)
    running_states: list[parts.RunningState] = field(default_factory=list)
    states_back: list[parts.StateBack] = field(default_factory=list)
    lacks: list[parts.Lack] = field(default_factory=list)
    states_skipped: list[parts.StateSkipped] = field(default_factory=list)
    restored_lost: list[parts.RestoredLost] = field(default_factory=list)
    constants: list[Constants] = field(default_factory=list)
    indexings: list[Indexing] = field(default_factory=list)
    hooked_schedules: list[HookedSchedule] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    rate_products: list[RateProduct] = field(default_factory=list)
    schedule_uses: list[ScheduleUse] = field(default_factory=list)
    poles: list[Pole] = field(default_factory=list)
    half_updates: list[HalfUpdate] = field(default_factory=list)
    rounded: list[Rounded] = field(default_factory=list)
    scaled_gradients: list[Spot] = field(default_factory=list)
    traced: list[TracedFunction] = field(default_factory=list)
    compiled_anew: list[CompiledAnew] = field(default_factory=list)
    unread_settings: list[uses.UnreadSetting] = field(default_factory=list)
    unused_results: list[uses.UnusedResult] = field(default_factory=list)
    alphabets: list[parts.Alphabet] = field(default_factory=list)
    blank_uses: list[parts.BlankUse] = field(default_factory=list)
    part_fits: list[parts.PartFit] = field(default_factory=list)
    text_switches: list[TextSwitch] = field(default_factory=list)
    ways_out: list[driving.WayOut] = field(default_factory=list)
    rank_uses: list[driving.RankUse] = field(default_factory=list)
    prepared_before: list[PreparedBefore] = field(default_factory=list)
    timed_calls: list[parts.TimedCall] = field(default_factory=list)
    kept_arrays: list[uses.KeptArray] = field(default_factory=list)
    own_ratios: list[uses.OwnRatio] = field(default_factory=list)
    shared_keys: list[SharedKey] = field(default_factory=list)
    loaders: list[Loader] = field(default_factory=list)
    averages: list[driving.Average] = field(default_factory=list)
    pairs_apart: list[Apart] = field(default_factory=list)
    engine_loops: list[driving.EngineLoop] = field(default_factory=list)
    own_losses: list[driving.OwnLoss] = field(default_factory=list)
    fields_dropped: list[driving.FieldDropped] = field(default_factory=list)
    collectives: list[driving.Collective] = field(default_factory=list)
    axis_uses: list[uses.AxisUse] = field(default_factory=list)
    axes_moved: list[uses.AxisMoved] = field(default_factory=list)
    mask_uses: list[uses.MaskUse] = field(default_factory=list)
    objectives: list[entities.Objective] = field(default_factory=list)
    bootstraps: list[uses.Bootstrap] = field(default_factory=list)
    watches: list[uses.Watch] = field(default_factory=list)
    distances: list[uses.Distance] = field(default_factory=list)
    whole_cuts: list[uses.WholeCut] = field(default_factory=list)
    distances_to_itself: list[uses.Distance] = field(default_factory=list)
    """Of a prediction to the output of the trained encoder that it is made of, with gradients on both sides."""
    runs: list[Section] = field(default_factory=list)
    """What a text says will happen: one tree for each way into the program. Empty where the program ran."""
    before: list[Act] = field(default_factory=list)
    """Optimizers that are made in no run: by a constructor that the text does not call."""
    aside: list[Act] = field(default_factory=list)
    """Where containers are emptied and hooks removed anywhere in the text, also where no run is known to come."""
    opaque: frozenset[Hashable] = frozenset()
    """What went into unknown code with its graph, in terms of `Act.traces`: what comes out is not followed."""
    losses_handed: bool = False
    """Something with a graph is given to code that is not known: it may send it backward."""
    failed: list[str] = field(default_factory=list)
    """Questions that were left open by a defect of this package, each with the error."""
    unknown: list[str] = field(default_factory=list)
    """What is not known and why, one sentence each."""
    timeline: Timeline = field(default_factory=Timeline)
    ended: bool = False
    """It came to its own end: no error, no kill."""
    remarks: list[str] = field(default_factory=list)
    """Other facts, one sentence each, such as what a check on a captured step found to be in order."""
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Answers to questions that several checks ask, by question."""
