"""Topics: the things a benchmark asks about, each with the metrics behind its charts and tables.

The metrics are named so that a reader of a chart can go to the rows it is drawn from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Topic(NamedTuple):
    """What a part of a chapter is about."""

    title: str
    metrics: tuple[str, ...]
    """Endings of the metrics' names, without their benchmark."""


TOPICS = {
    "association": Topic("What the model takes people for", ("association", "association_top1")),
    "gender": Topic("Women and men", ("bias_ratio", "occupation_probability", "equivalence", "refusal_share")),
    "identity": Topic(
        "Names and faces",
        (
            "identity_given_image",
            "identity_given_image_top1",
            "identity_given_image_mrr",
            "identity_given_name",
            "identity_given_name_top1",
            "identity_given_name_mrr",
        ),
    ),
    "score": Topic(
        "The score, and what it says without bias",
        (
            "bias_score",
            "fairness_score",
            "bias_score_corrected",
            "bias_score_sized",
            "bias_score_expected",
            "biased_traits",
            "biased_traits_corrected",
            "biased_traits_sized",
            "attribute",
            "refusal_share",
        ),
    ),
    "means": Topic("On average", ("mean_average_precision", "mean_ap_gap")),
    "gaps": Topic(
        "The largest gaps",
        (
            "largest_gap",
            "gap",
            "average_precision",
            "average_precision_matched",
            "ap_gap",
            "ap_gap_matched",
            "gap_detectable",
            "ap_gap_largest",
            "equivalence",
            "names",
            "gaps_shown",
            "gap_spread",
            "gap_spread_expected",
            "prevalence",
        ),
    ),
    "traits": Topic("Trait by trait", ("group_mean", "overall_mean", "trait_mean", "welch", "omega_squared")),
    "valence": Topic("Positive and negative traits", ("valence_share", "valence_mean")),
    "tones": Topic("Over the skin tones", ("valence_mean",)),
    "crossed": Topic("Where labels cross", ("intersection", "variance_share")),
    "wording": Topic(
        "One question in several wordings",
        ("wording_share", "template_anova", "template_friedman", "answer_mass", "p_yes_given_answer"),
    ),
    "judgements": Topic("How groups are judged", ("cosine", "delta_cosine", "word_delta_cosine", "refusal_share")),
    "effects": Topic(
        "What moves the judgement",
        (
            "variance_share",
            "induced_variation",
            "induced_variation_quantile",
            "induced_variation_test",
            "causal_effect",
            "absolute_difference",
            "interaction",
            "gap",
        ),
    ),
    "curves": Topic("Over age and smiling", ("trajectory", "trajectory_fit", "valence_point")),
    "ranking": Topic(
        "Who comes first, who goes without saying", ("markedness", "mean_cosine", "sc_weat", "skew", "max_skew", "ndkl")
    ),
    "neutral": Topic("The neutral prompt", ("neutral_cosine", "neutral_r", "neutral_test", "narrowing")),
    "confounds": Topic(
        "What else may be at work", ("density", "separation", "variance_share", "opposites_r", "brightness")
    ),
    "ratings": Topic("Beside people's ratings", ("rating_r", "rating_departure")),
    "calibration": Topic(
        "What a confidence means",
        (
            "ece",
            "ece_gap",
            "ece_adaptive",
            "ece_adaptive_gap",
            "brier",
            "brier_gap",
            "miscalibration",
            "miscalibration_gap",
            "reliability",
        ),
    ),
    "agreement": Topic(
        "Beside other data sets and models",
        (
            "agreement",
            "agreement_count",
            "model_agreement",
            "gap_correlation",
            "ap_gap_elsewhere",
            "word_alignment",
            "word_agreement",
            "word_correlation",
        ),
    ),
    "causes": Topic(
        "What may lie behind the gaps", ("area", "area_gap", "instances", "instances_gap", "ap_gap_same_area")
    ),
    "images": Topic("Images, by their ids", ("outranked",)),
    "prompts": Topic("Prompt by prompt", ("probability",)),
    "named": Topic("Who is named", ("captions", "captions_median", "never", "ratio")),
    "said": Topic("Which words are said", ("category",)),
    "known": Topic("Named and known", ("identity_correlation", "identity_gap")),
    "results": Topic("Results", ()),
}
OF_KIND = {
    "bias": "gender",
    "custom": "prompts",
    "gap": "gaps",
    "mean": "means",
    "prevalence": "gaps",
    "words": "agreement",
    "effect": "effects",
    "interaction": "effects",
    "markedness": "ranking",
    "intersection": "crossed",
    "answers": "wording",
    "refusal": "wording",
}
"""Where a finding of a kind is shown, where the kind is not the topic's own name."""


def topic_of(kind: str) -> str:
    """The topic that shows what a finding says."""
    return OF_KIND.get(kind, kind)


def metrics_of(topic: str, measured: Iterable[str]) -> list[str]:
    """The metrics behind a topic, of those that were measured."""
    endings = TOPICS[topic].metrics
    return [metric for metric in measured if metric.partition(".")[2] in endings]
