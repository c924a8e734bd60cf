"""Exposure: how often the captions from which models learn name the people of APA. The declaration."""

from __future__ import annotations

from beholder.studies.apa.study import APA
from beholder.studies.exposure.measures import METRICS
from beholder.studies.study import Asks, Command, Measures, Option, Plans, Study, Tells

OPTIONS = (
    Option(
        "column",
        "The column with the captions; a number if a TSV or CSV has no header. Default: caption, TEXT or text.",
        str,
    ),
    Option("run", "Folder of an APA audit: compares its identity scores with the counts."),
    Option("name", "The name of the captions in the report. Default: the file name.", str),
    Option("engine", "local, ray, or ray://HOST:PORT: count ranges of files on the workers of a Ray cluster.", str),
    Option("workers", "Ray workers. Default: one for each core of the cluster.", int),
    Option("people", "Also write people.csv with the count of every person. Not for publication.", bool),
)
EXPOSURE = Study(
    name="exposure",
    title="Exposure: who is named in captions",
    short="Exposure",
    question="How often do captions name the people of APA and contain its words? Are women named less often? Does a "
    "model know the people best that captions name most?",
    citation=APA.citation,
    asks=Asks(datasets=("apa",), tasks=APA.asks.tasks),
    measures=Measures(functions=(), metrics=METRICS, within=("branch",)),
    tells=Tells(
        chapter="beholder.studies.exposure.chapter:CHAPTER",
        limitations=(
            "A caption names a person if it contains all words of the name in order, spelled as in APA's table. Other "
            "spellings, nicknames and bare surnames are not counted; people with the same name are.",
            "Capitals, accents and punctuation do not matter. Plurals are other words.",
            "Only these captions were counted. How often a model saw them is not known.",
            "A few famous people decide the means of counts, whose intervals hold the truth in as few as 79 of 100 "
            "cases instead of 95. The typical ratio and the median are safer.",
            "A correlation with captions is not a cause: people who are named often are also photographed often.",
            "Traits that no label names may suffice to be known by name.",
        ),
        of_photographs=APA.tells.of_photographs,
    ),
    plans=Plans(trials="beholder.studies.exposure.trials:TRIALS"),
    command=Command(
        "exposure",
        "Count how often captions name people and occupations, by gender, and compare with what a model knows.",
        "Caption files: text (one caption per line), TSV, CSV, JSONL, also as .gz or .zst; Parquet; COCO's captions "
        "(.json). Paths, or URIs that fsspec opens (s3://bucket/part-*.parquet).",
        "beholder.studies.exposure.expose:expose",
        OPTIONS,
        unit="MB",
        examples=(
            ("how often captions name women and men", "beholder exposure captions.tsv.gz --data DIR"),
            ("compare with what a model knows about them", "beholder exposure part-*.parquet --data DIR --run RUN"),
        ),
    ),
)
