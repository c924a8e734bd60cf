"""What a plug-in needs: studies, models and data sets of your own are made of these names, and of those of `beholder`.

    from beholder.ext import Study, register_study

`docs/add-a-study.md`, `docs/add-a-model.md` and `docs/add-a-dataset.md` show each in use. Everything that is neither
here nor in `beholder` is private.
"""

from beholder.chapter.chapter import Cell, Chapter, Question, Table
from beholder.chapter.charts import Figure, chart, percent_axis
from beholder.chapter.finding import Finding, deciding_rows, finding, valued, verdict_of_rows
from beholder.comparison.family import DIFFERENCE, Comparison, comparison_at, judge
from beholder.comparison.groups import Groups, People, Strata, group_by, people_of, strata_of
from beholder.comparison.means import compare_groups
from beholder.comparison.power import Design, detectable
from beholder.core.errors import DataError, MissingData, ModelError, OutOfMemory, UnusableScore
from beholder.core.results import Row
from beholder.datasets import DATASETS
from beholder.datasets.dataset import DatasetSource
from beholder.glasshouse.portrait import Portrait, render
from beholder.metrics.association import softmax
from beholder.metrics.image_association import image_association
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

# A study
__all__ = ["STUDIES", "Asks", "MeasureOptions", "Measures", "Metric", "Option", "PlanOptions", "Plans", "Study"]
__all__ += ["Tells", "register_study"]
# Its prompts, scores and rows
__all__ += ["Instruction", "Matrices", "Row", "ScoreMatrix", "Task", "correct_for", "mean_row", "prompt_set"]
__all__ += ["image_association", "read_prompts", "softmax"]
# Its comparisons
__all__ += ["DIFFERENCE", "Comparison", "Design", "Groups", "People", "Strata", "comparison_at", "detectable", "judge"]
__all__ += ["compare_groups", "group_by", "people_of", "strata_of"]
# Its chapter of the page
__all__ += ["Cell", "Chapter", "Figure", "Finding", "Printed", "Question", "Source", "Table", "chart", "percent_axis"]
__all__ += ["deciding_rows", "finding", "valued", "verdict_of_rows"]
# Its worlds of known truth
__all__ += ["GENDER_ONLY", "Portrait", "Trial", "World", "render"]
# Models and data sets
__all__ += ["Answerer", "ContrastiveScorer", "Embedder", "Family", "Floats", "LoadOptions", "ModelSpec", "Scorer"]
__all__ += ["DATASETS", "DatasetSource", "embed_in_batches", "register_dataset", "register_model"]
__all__ += ["DataError", "MissingData", "ModelError", "OutOfMemory", "UnusableScore"]


def register_study(study: Study) -> None:
    """Let `--study NAME` ask it."""
    STUDIES.add(study.name, study)


def register_dataset(source: DatasetSource) -> None:
    """Let `--dataset NAME` open it."""
    DATASETS.add(source.name, source)


def register_model(family: Family) -> None:
    """Let models of this family be named: `beholder audit SCHEME:REST`."""
    FAMILIES.add(family.name, family)
