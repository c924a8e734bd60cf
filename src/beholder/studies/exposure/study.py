"""Exposure: how often captions, from which models learn, name the people of APA. The declaration."""

from __future__ import annotations

from beholder.studies.apa.study import APA
from beholder.studies.exposure.measures import METRICS
from beholder.studies.study import Command, Option, Study

OPTIONS = (
    Option(
        "column",
        "The column of the captions; a number where a TSV or CSV has no header. Default: caption, TEXT or text.",
        str,
    ),
    Option("run", "Folder of an APA audit: compares its identity scores with the counts."),
    Option("name", "What to call the captions. Default: their file's name.", str),
    Option("people", "Also write people.csv: the count of every person. Not for publication.", bool),
)
EXPOSURE = Study(
    name="exposure",
    title="Exposure: who is named in captions",
    short="Exposure",
    question="How often do captions name the people of APA and say its words; are women named less; does a model know "
    "best whom captions name most?",
    citation=APA.citation,
    datasets=("apa",),
    tasks=APA.tasks,
    measures=(),
    metrics=METRICS,
    of_photographs=APA.of_photographs,
    limitations=(
        "A caption names a person when it says all words of the name as APA's table spells it, in order; other "
        "spellings, nicknames and bare surnames are not counted, and namesakes are.",
        "Capitals, accents and punctuation do not matter; words are counted as they stand, plurals are other words.",
        "These are the captions that were given: how often a model saw them is not known.",
        "Means of counts are decided by a few famous people, and their intervals can hold the truth in 79 of 100 cases "
        "instead of 95. The typical ratio and the median are the safer numbers.",
        "Each branch has its own 95 % interval: even if nothing were there, about one in twenty would exclude alike.",
        "A correlation with identity is no cause: who is named often is also photographed often.",
    ),
    chapter="beholder.studies.exposure.chapter:CHAPTER",
    command=Command(
        "exposure",
        "Count how often captions name people and say occupations, by gender, and beside what a model knows of them.",
        "Caption files: text (a caption a line), TSV, CSV, JSONL, also .gz; Parquet; COCO's captions (.json).",
        "beholder.studies.exposure.expose:expose",
        OPTIONS,
        unit="MB",
        examples=(
            ("how often captions name women and men", "beholder exposure captions.tsv.gz --data DIR"),
            ("beside what a model knows of them", "beholder exposure part-*.parquet --data DIR --run RUN"),
        ),
    ),
)
