"""What a plug-in needs: studies, models and data sets of your own are made of these names, and of those of `beholder`.

    from beholder.ext import Study, register_study

`docs/add-a-study.md`, `docs/add-a-model.md` and `docs/add-a-dataset.md` show each in use. Everything that is neither
here nor in `beholder` is private.
"""

from beholder.chapter.chapter import Cell, Chapter, Question, Table
from beholder.chapter.charts import Figure, chart, percent_axis
from beholder.chapter.finding import Finding, deciding_rows, finding, valued, verdict_of_rows
from beholder.comparison import (
    DIFFERENCE,
    Comparison,
    Groups,
    People,
    Strata,
    compare_groups,
    comparison_at,
    group_by,
    judge,
    people_of,
    strata_of,
)
from beholder.comparison.power import Design, detectable
from beholder.core.errors import DataError, MissingData, ModelError, OutOfMemory, UnusableScore
from beholder.core.results import Row
from beholder.datasets import DATASETS
from beholder.datasets.dataset import DatasetSource
from beholder.glasshouse.portrait import Portrait, render
from beholder.metrics.association import softmax
from beholder.models.catalog import FAMILIES, Family
from beholder.models.scorer import Answerer, ContrastiveScorer, Embedder, Floats, Scorer, embed_in_batches
from beholder.models.spec import LoadOptions, ModelSpec
from beholder.prompts.prompt_set import Instruction, correct_for, prompt_set, read_prompts
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.studies import STUDIES
from beholder.studies.printed import Printed, Source
from beholder.studies.rows import PlanOptions, mean_row
from beholder.studies.study import Asks, Matrices, MeasureOptions, Measures, Metric, Option, Plans, Study, Tells
from beholder.studies.worlds import GENDER_ONLY, Trial, World

__all__ = [
    "DATASETS",
    "DIFFERENCE",
    "GENDER_ONLY",
    "STUDIES",
    "Answerer",
    "Asks",
    "Cell",
    "Chapter",
    "Comparison",
    "ContrastiveScorer",
    "DataError",
    "DatasetSource",
    "Design",
    "Embedder",
    "Family",
    "Figure",
    "Finding",
    "Floats",
    "Groups",
    "Instruction",
    "LoadOptions",
    "Matrices",
    "MeasureOptions",
    "Measures",
    "Metric",
    "MissingData",
    "ModelError",
    "ModelSpec",
    "Option",
    "OutOfMemory",
    "People",
    "PlanOptions",
    "Plans",
    "Portrait",
    "Printed",
    "Question",
    "Row",
    "ScoreMatrix",
    "Scorer",
    "Source",
    "Strata",
    "Study",
    "Table",
    "Task",
    "Tells",
    "Trial",
    "UnusableScore",
    "World",
    "chart",
    "compare_groups",
    "comparison_at",
    "correct_for",
    "deciding_rows",
    "detectable",
    "embed_in_batches",
    "finding",
    "group_by",
    "judge",
    "mean_row",
    "people_of",
    "percent_axis",
    "prompt_set",
    "read_prompts",
    "register_dataset",
    "register_model",
    "register_study",
    "render",
    "softmax",
    "strata_of",
    "valued",
    "verdict_of_rows",
]


def register_study(study: Study) -> None:
    """Let `--study NAME` ask it."""
    STUDIES.add(study.name, study)


def register_dataset(source: DatasetSource) -> None:
    """Let `--dataset NAME` open it."""
    DATASETS.add(source.name, source)


def register_model(family: Family) -> None:
    """Let models of this family be named: `beholder audit SCHEME:REST`."""
    FAMILIES.add(family.name, family)
