"""Croissant: a folder of one's own as metadata for mlcroissant and the hubs; of values only groups and their sizes."""

import hashlib
import json
from pathlib import Path, PurePosixPath

from beholder.core.errors import UsageError
from beholder.core.read import parse_table
from beholder.core.types import Entry
from beholder.datasets import own_data
from beholder.datasets.content import read_content
from beholder.datasets.dataset import Dataset
from beholder.datasets.folder import find_tables
from beholder.datasets.survey import Survey

FORMATS = {
    ".csv": "text/csv",
    ".tsv": "text/tsv",
    ".parquet": "application/x-parquet",
    ".jsonl": "application/jsonlines",
}
CONTEXT: Entry = json.loads(Path(__file__).with_name("croissant_context.json").read_text(encoding="utf-8"))


def croissant(name: str, dataset: Dataset, seen: Survey) -> str:
    """The metadata as JSON-LD; it lies beside the table."""
    scheme, place = own_data(name)
    tables = find_tables(place) if scheme == "folder:" else []
    kind = FORMATS.get(PurePosixPath(tables[0]).suffix.lower()) if len(tables) == 1 else None
    if kind is None:
        raise UsageError(f"Croissant describes a folder of yours with one table: folder:PATH, not {name}.")
    content, table = read_content(tables[0]), PurePosixPath(tables[0]).name
    columns = parse_table(content, tables[0]).columns
    sign = {"text/csv": ",", "text/tsv": "\t"}.get(kind)
    if sign and len(columns) > 1 and sign not in content.decode(errors="replace").partition("\n")[0]:
        raise UsageError(f"{table} does not separate its columns by {sign!r}, as readers of Croissant expect.")
    how = {column.name: f"{column.role}: {column.how}" for column in seen.columns}
    fields = [
        {
            **{"@type": "cr:Field", "@id": f"images/{column}", "name": column, "dataType": "sc:Text"},
            "description": how.get(column.strip().lower(), "the image's file" if number == 0 else "a column"),
            "source": {"fileObject": {"@id": "table"}, "extract": {"column": column}},
        }
        for number, column in enumerate(columns)
    ]
    file = {"@type": "cr:FileObject", "@id": "table", "name": table, "contentUrl": table, "encodingFormat": kind}
    about = {
        **{"@context": CONTEXT, "@type": "sc:Dataset", "name": PurePosixPath(place).name or "images"},
        "description": f"{seen.images} images of people with labels, which are perceived or sourced.",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "version": dataset.revision,
        "distribution": [{**file, "sha256": hashlib.sha256(content).hexdigest()}],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "images", "name": "images", "field": fields}],
    }
    return json.dumps(about, indent=1, ensure_ascii=False) + "\n"
