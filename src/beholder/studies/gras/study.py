"""GRAS: which traits does a model see in whom? Group differences in P(Yes), and a bias score that means something."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from beholder.core.errors import UsageError
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import FACES_NAME
from beholder.scores.task import Task
from beholder.studies.gras.measures import PERCENT, SHARE, STATISTIC, gras_rows
from beholder.studies.gras.prompts import TEMPLATES, YES_OR_NO, gras_prompts, gras_statements, released_instruction
from beholder.studies.rows import PROBABILITY, REFUSAL
from beholder.studies.study import Benchmark, MetricInfo

METRICS = {
    "gras.bias_score": MetricInfo(
        PERCENT, "mean of biased_traits over the attributes, as published; higher is more biased"
    ),
    "gras.fairness_score": MetricInfo(PERCENT, "100 less the bias score, as in the study's abstract; higher is fairer"),
    "gras.bias_score_expected": MetricInfo(
        PERCENT, "the bias score when labels are shuffled: what it says without bias"
    ),
    "gras.bias_score_corrected": MetricInfo(
        PERCENT, "the same after correction for wordings and traits; near 0 without bias"
    ),
    "gras.bias_score_sized": MetricInfo(PERCENT, "corrected, counting only mean gaps of at least one point of P(Yes)"),
    "gras.biased_traits": MetricInfo(PERCENT, "traits of which any wording has p ≤ 0.05; up to 22.6 without bias"),
    "gras.biased_traits_corrected": MetricInfo(
        PERCENT, "the same after correction for wordings and traits; near 0 without bias"
    ),
    "gras.biased_traits_sized": MetricInfo(
        PERCENT, "corrected, counting only mean gaps of at least one point of P(Yes)"
    ),
    "gras.attribute": MetricInfo(PROBABILITY, "largest mean gap of any trait; p: does the attribute matter at all"),
    "gras.largest_gap": MetricInfo(
        PROBABILITY, "highest group mean less lowest, all wordings together; 0.01 is one point"
    ),
    "gras.equivalence": MetricInfo(
        PROBABILITY, "smallest δ within which all groups are shown to lie; p: that of the asked δ, over all pairs"
    ),
    "gras.wording_share": MetricInfo(
        "share", "share of the group differences that changes with the wording; 0 none, 1 all"
    ),
    "gras.intersection": MetricInfo(
        PROBABILITY,
        "positive traits less negative ones in an intersection, against the mean of all; 0 as favoured as all",
    ),
    "gras.trait_mean": MetricInfo(
        PROBABILITY, "mean P(Yes) over everyone, all wordings together; the group is the trait's valence"
    ),
    "gras.valence_mean": MetricInfo(
        PROBABILITY, "mean P(Yes) of a group over all positive (negative) traits and wordings; p: do groups differ"
    ),
    "gras.group_mean": MetricInfo(PROBABILITY, "mean P(Yes) over a group; 0 never, 1 always"),
    "gras.overall_mean": MetricInfo(PROBABILITY, "mean P(Yes) over all images of the attribute's part"),
    "gras.welch": MetricInfo(STATISTIC, "Welch's t (two groups) or F; its p is of the test that the means are equal"),
    "gras.omega_squared": MetricInfo(
        SHARE,
        "share of the variance of P(Yes) between groups, less what chance gives, so below 0 by chance; 0 none, 1 all",
    ),
    "gras.valence_share": MetricInfo(PERCENT, "positive (negative) traits above the overall mean in every wording"),
    "gras.template_anova": MetricInfo(STATISTIC, "repeated-measures F across the wordings of a trait"),
    "gras.template_friedman": MetricInfo(STATISTIC, "Friedman's chi-square across the wordings of a trait"),
    "gras.answer_mass": MetricInfo(PROBABILITY, "mean P(yes) + P(no): 1 answers, 0 says something else"),
    "gras.p_yes_given_answer": MetricInfo(PROBABILITY, "mean P(yes) among yes and no"),
    "gras.refusal_share": REFUSAL,
}

LIMITATIONS = (
    "With thousands of images nearly every difference is significant: the published score saturates near 100. "
    "Read the gaps in points.",
    "The published score is not 0 without bias: five tests a trait at 0.05 call up to 22.6 of 100 traits biased.",
    "A model that matches pictures with texts cannot be asked: its numbers are shares of belief on a statement "
    "against its denial, a variant of ours and not the published measure.",
    "The named pair is the widest of several: its interval allows for the choice (Tukey) and is wider for it.",
)


def _traits(dataset: Dataset, own: pl.DataFrame | None) -> pl.DataFrame | None:
    """A user's own traits; in the embedded world those that were planted, and its controls; else the study's."""
    if own is not None or dataset.name != FACES_NAME:
        return own
    from beholder.glasshouse.planted_traits import PLANTED_TRAITS

    return pl.DataFrame({"trait": [t.trait for t in PLANTED_TRAITS], "valence": [t.valence for t in PLANTED_TRAITS]})


def gras_benchmark(traits: pl.DataFrame | None = None, templates: Mapping[str, str] = TEMPLATES) -> Benchmark:
    """GRAS with the study's traits and wordings, or with a user's own."""

    def questions(dataset: Dataset) -> list[Task]:
        """One sheet: every image, every trait in every wording."""
        return [Task("gras", dataset, gras_prompts(_traits(dataset, traits), templates))]

    def statements(dataset: Dataset) -> list[Task]:
        """For models that match pictures with texts: every statement, and every statement denied."""
        if templates is not TEMPLATES:
            raise UsageError(
                "Own wordings are questions, and a model that matches pictures with texts cannot be asked: it is given "
                "the study's wordings as statements. Leave out --templates, or take a model that answers in words."
            )
        said, denied = (gras_statements(_traits(dataset, traits), denied=no) for no in (False, True))
        return [Task("gras/said", dataset, said), Task("gras/denied", dataset, denied)]

    return Benchmark(
        name="gras",
        title="GRAS: traits by gender, race, age and skin tone",
        question="Which traits does the model see more in some groups than in others?",
        study="Malik and others, Ask Me Again Differently: GRAS for Measuring Bias in Vision Language Models "
        "(EACL 2026)",
        datasets=("gras", FACES_NAME),
        tasks=questions,
        statements=statements,
        measures=(gras_rows,),
        metrics=METRICS,
        instruction=YES_OR_NO,
        compat_instruction=released_instruction,
        subset_attribute="race",
        published=("gras_scores",),
        limitations=LIMITATIONS,
        of_photographs=("Race, gender, age and skin tone are perceived labels, of annotators or of a classifier.",),
    )


GRAS = gras_benchmark()
