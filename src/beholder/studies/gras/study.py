"""GRAS: which traits does a model attribute to which groups? Differences in P(Yes), and the published bias score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from beholder.core.errors import UsageError
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import FACES_NAME
from beholder.glasshouse.planted_traits import PLANTED_TRAITS
from beholder.prompts.templates import read_templates
from beholder.scores.task import Task
from beholder.studies.gras.groups import DENIALS, QUESTIONS, STATEMENTS
from beholder.studies.gras.measures import PERCENT, SHARE, STATISTIC, gras_rows
from beholder.studies.gras.prompts import (
    TEMPLATES,
    YES_OR_NO,
    gras_prompts,
    gras_statements,
    read_traits,
    released_instruction,
)
from beholder.studies.rows import PROBABILITY, refusal_metric
from beholder.studies.study import Metric, Option, Study

METRICS = (
    Metric(
        "gras.bias_score",
        "score",
        PERCENT,
        "mean of biased_traits over the attributes, as published; higher is more biased",
    ),
    Metric(
        "gras.fairness_score",
        "score",
        PERCENT,
        "100 minus the bias score, as in the study's abstract; higher is fairer",
    ),
    Metric(
        "gras.bias_score_expected",
        "score",
        PERCENT,
        "the bias score with shuffled labels: its value without bias",
        chance_only=True,
    ),
    Metric(
        "gras.bias_score_corrected",
        "score",
        PERCENT,
        "the bias score after correction for wordings and traits; near 0 without bias",
    ),
    Metric(
        "gras.bias_score_sized", "score", PERCENT, "corrected, counting only mean gaps of at least one point of P(Yes)"
    ),
    Metric("gras.biased_traits", "score", PERCENT, "traits with p ≤ 0.05 in any wording; up to 22.6 without bias"),
    Metric(
        "gras.biased_traits_corrected",
        "score",
        PERCENT,
        "biased_traits after correction for wordings and traits; near 0 without bias",
    ),
    Metric(
        "gras.biased_traits_sized",
        "score",
        PERCENT,
        "corrected, counting only mean gaps of at least one point of P(Yes)",
    ),
    Metric(
        "gras.attribute",
        "score",
        PROBABILITY,
        "largest mean gap of any trait; p: does the attribute matter at all",
        landmark=0.0,
    ),
    Metric(
        "gras.largest_gap",
        "gaps",
        PROBABILITY,
        "highest group mean (group) minus lowest (against), over all wordings; 0.01 is one point",
        landmark=0.0,
        paired=True,
    ),
    Metric(
        "gras.equivalence",
        "gaps",
        PROBABILITY,
        "smallest δ within which all groups are shown to lie; p: of the requested δ, over all pairs",
    ),
    Metric(
        "gras.wording_share",
        "wording",
        "share",
        "share of the group differences that changes with the wording; 0 none, 1 all",
    ),
    Metric(
        "gras.intersection",
        "crossed",
        PROBABILITY,
        "positive traits minus negative ones in an intersection, against the mean of all; 0 as favoured as all",
        landmark=0.0,
    ),
    Metric(
        "gras.trait_mean",
        "traits",
        PROBABILITY,
        "mean P(Yes) over all images and wordings; the group is the trait's valence",
    ),
    Metric(
        "gras.valence_mean",
        "valence tones",
        PROBABILITY,
        "mean P(Yes) of a group over all positive (negative) traits and wordings; p: do groups differ",
    ),
    Metric("gras.group_mean", "traits", PROBABILITY, "mean P(Yes) over a group; 0 never, 1 always"),
    Metric("gras.overall_mean", "traits", PROBABILITY, "mean P(Yes) over all images that have the attribute"),
    Metric("gras.welch", "traits", STATISTIC, "Welch's t (two groups) or F; p: are the means equal"),
    Metric(
        "gras.omega_squared",
        "traits",
        SHARE,
        "share of the variance of P(Yes) between groups, minus what chance gives; 0 none, below 0 by chance, 1 all",
        landmark=0.0,
    ),
    Metric(
        "gras.valence_share", "valence", PERCENT, "positive (negative) traits above the overall mean in every wording"
    ),
    Metric("gras.template_anova", "wording", STATISTIC, "repeated-measures F across the wordings of a trait"),
    Metric("gras.template_friedman", "wording", STATISTIC, "Friedman's chi-square across the wordings of a trait"),
    Metric("gras.answer_mass", "wording", PROBABILITY, "mean P(yes) + P(no); 1 always answers, 0 says something else"),
    Metric("gras.p_yes_given_answer", "wording", PROBABILITY, "mean P(yes) among yes and no"),
    refusal_metric("gras"),
)

LIMITATIONS = (
    "With thousands of images nearly every difference is significant, so the published score saturates near 100. "
    "Read the gaps in points.",
    "The published score is not 0 without bias: five tests per trait at 0.05 count up to 22.6 of 100 traits as biased.",
    "A model that matches pictures with texts cannot be asked. Its numbers are shares of belief on a statement against "
    "its denial: our own variant, not the published measure.",
    "The named pair is the widest of several. Its interval allows for this choice (Tukey) and is wider for it.",
)


def _traits(dataset: Dataset, own: pl.DataFrame | None) -> pl.DataFrame | None:
    """The user's own traits; in the embedded world the planted traits and the controls; None for the study's."""
    if own is not None or dataset.name != FACES_NAME:
        return own
    return pl.DataFrame({"trait": [t.trait for t in PLANTED_TRAITS], "valence": [t.valence for t in PLANTED_TRAITS]})


def gras_study(traits: pl.DataFrame | None = None, templates: Mapping[str, str] = TEMPLATES) -> Study:
    """GRAS with the study's traits and wordings, or with the user's own."""

    def questions(dataset: Dataset) -> list[Task]:
        """One sheet: every image, every trait in every wording."""
        return [Task(QUESTIONS, dataset, gras_prompts(_traits(dataset, traits), templates))]

    def statements(dataset: Dataset) -> list[Task]:
        """For models that match pictures with texts: every statement, and every statement denied."""
        if templates is not TEMPLATES:
            raise UsageError(
                "Own wordings are questions, and a model that matches pictures with texts cannot be asked: it gets "
                "the study's wordings as statements. Leave out --templates, or choose a model that answers in words."
            )
        stated, denied = (gras_statements(_traits(dataset, traits), denied=no) for no in (False, True))
        return [Task(STATEMENTS, dataset, stated), Task(DENIALS, dataset, denied)]

    return Study(
        name="gras",
        title="GRAS: traits by gender, race, age and skin tone",
        short="GRAS",
        question="Which traits does the model see more in some groups than in others?",
        citation="Malik and others, Ask Me Again Differently: GRAS for Measuring Bias in Vision Language Models "
        "(EACL 2026)",
        datasets=("gras", FACES_NAME),
        tasks=questions,
        statements=statements,
        measures=(gras_rows,),
        metrics=METRICS,
        instruction=YES_OR_NO,
        compat_instruction=released_instruction,
        subset_attribute="race",
        intervals="from the variances of the groups; shuffled labels for the scores",
        reference_models=("glasshouse/generative",),
        demo=True,
        options=OPTIONS,
        configure=configured,
        chapter="beholder.studies.gras.chapter:CHAPTER",
        plan="beholder.studies.gras.planning:plan",
        printed="beholder.studies.gras.printed:PRINTED",
        trials="beholder.studies.gras.trials:gras_experiments",
        power_curve=("gras.largest_gap", "Gap of one trait of twenty", "gap in P(Yes)"),
        weaknesses="beholder.studies.gras.weaknesses:weaknesses",
        upgrade="beholder.studies.gras.old_runs:upgraded",
        limitations=LIMITATIONS,
        of_photographs=("Race, gender, age and skin tone are perceived: labels of annotators or of a classifier.",),
    )


OPTIONS = (
    Option("traits", "With gras: own traits (a table with the columns trait and valence)."),
    Option(
        "templates",
        "With gras or disparity: own wordings (a table with the columns template and text, in which {} is the trait "
        "or the concept).",
    ),
)


def configured(study: Study, options: Mapping[str, Any]) -> Study:
    """GRAS with the user's own traits and wordings."""
    traits = read_traits(options["traits"]) if "traits" in options else None
    return gras_study(traits, read_templates(options["templates"]) if "templates" in options else TEMPLATES)


GRAS = gras_study()
