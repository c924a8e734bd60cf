"""Inside the harnesses people run: what a study asks, as tasks of inspect_ai (`tasks.py`) and of lmms-eval.

The harness puts the questions to the model in its own way and keeps a log. `beholder measure LOG` measures it: the log
says what was asked. One cell of the score matrix is one question, or `draws` of them where answers are counted.
"""

import json
from base64 import b64decode
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from beholder._options import AuditOptions
from beholder.core.digests import digest
from beholder.core.errors import UsageError
from beholder.core.files import write_whole
from beholder.core.record import Record
from beholder.core.types import Entry
from beholder.datasets.content import is_remote, part_of
from beholder.datasets.dataset import KEYS
from beholder.datasets.images import is_plain_file, open_image
from beholder.models.served.address import Asking
from beholder.models.served.protocol import data_url
from beholder.prompts.prompt_set import Instruction
from beholder.scores.imported import ASKED
from beholder.studies import STUDIES
from beholder.studies.inquiry import chosen_studies, open_inquiry

NAMED = "data dataset people image_column settings bins map keep_codes limit".split()
"""The options of an audit that say what is asked; a log keeps those that were used, and those of studies."""
COMMON = ("JPEG", "PNG")
AS_SENT = Asking()  # as `beholder audit` sends pictures to a server


class Question(NamedTuple):
    """One question about one picture, and what its log has to say for it to be measured."""

    image: str
    """The name of a file."""
    text: str
    about: Entry


class Questions:
    """All that a study asks about a data set; options are those of `beholder audit`, as a user gives them."""

    def __init__(self, study: str, *, draws: int = 0, **given: object) -> None:
        chosen = {name: value for name, value in given.items() if value not in (None, False, "", [], ())}
        own = [option for option in STUDIES[study].options if option.chooses]
        if lacking := [option.name for option in own if option.name not in chosen]:
            raise UsageError(f"{study} needs {lacking[0]}: name the file.")
        options = AuditOptions.of(**chosen)
        names = [] if own else [study]
        (asked,) = chosen_studies(names, options.study_options, data=options.data, dataset=options.dataset)
        self._inquiry, self.draws = open_inquiry(asked, options, Record()), draws
        self.instruction: Instruction = asked.asks.instruction
        asked_for = {"study": study, **chosen, "folder": str(Path.cwd()), "draws": draws}
        self.asked: Entry = json.loads(json.dumps(asked_for, default=str))

    def each(self, pictures: Path, **more: object) -> Iterator[Question]:
        """Picture by picture; `pictures` is where those are written that no file holds as they are asked about."""
        tasks = self._inquiry.tasks(answers=True)
        for task, (image_id, uri) in ((one, row) for one in tasks for row in one.dataset.table.select(*KEYS).rows()):
            image = picture_file(uri, pictures)
            for prompt_id, text in task.prompts.table.select("prompt_id", "text").rows():
                about = {"image_id": image_id, "prompt_id": prompt_id, ASKED: self.asked, **more}
                for draw in range(self.draws or 1):
                    yield Question(image, self.instruction.ask(text), {**about, "draw": draw} if self.draws else about)


def picture_file(uri: str, folder: Path) -> str:
    """The picture's own file where any program sees in it what Beholder sees; else a new one in the folder."""
    if is_plain_file(uri) and not is_remote(uri) and not part_of(uri) and Path(uri).is_file():
        with Image.open(uri) as image:
            upright = image.getexif().get(0x0112, 1) == 1
            if image.format in COMMON and image.mode == "RGB" and upright and max(image.size) <= AS_SENT.side:
                return str(Path(uri).resolve())
    path = folder / f"{digest(uri)}.png"
    write_whole(path, b64decode(data_url(open_image(uri), AS_SENT).partition(",")[2]))
    return str(path.resolve())


# A study as a folder that lmms-eval takes as a task: `--include_path FOLDER --tasks beholder_STUDY`

FUNCTIONS = Path(__file__).with_name("utils.py")
DRAWN = {"max_new_tokens": 8, "temperature": 1.0, "top_p": 1.0, "do_sample": True}
COUNTED = {"output_type": "generate_until", "generation_kwargs": DRAWN}
LIKELIHOODS = {"output_type": "multiple_choice", "target_delimiter": "", "doc_to_choice": "choices"}


def write_tasks(questions: Questions, folder: Path) -> int:
    """Write the task, and the pictures that no file holds as they are asked about; how many questions there are."""
    asked, name = questions.instruction, f"beholder_{questions.asked['study']}"
    cases = [dict.fromkeys([word, word.lower(), word.capitalize(), word.upper()]) for word in (asked.yes, asked.no)]
    spelled = [blank + word for words in cases for blank, word in product(("", " "), words)]
    lines = [
        json.dumps({"image": image, "text": text, "about": json.dumps(about), "choices": spelled}, ensure_ascii=False)
        for image, text, about in questions.each(folder.resolve() / "pictures", answers=[asked.yes, asked.no])
    ]
    rows = folder.resolve() / f"{name}.jsonl"
    task = {
        **{"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": str(rows)}, "test_split": "train"},
        **(COUNTED if questions.draws else LIKELIHOODS),
        **{"doc_to_text": "text", "doc_to_target": 0, "metadata": [{"version": 1}]},
    }
    written = [f"{key}: {json.dumps(value)}" for key, value in task.items()]  # JSON is YAML
    written += [f"{function}: !function utils.{function}" for function in ("doc_to_visual", "process_results")]
    written += [
        "metric_list:",
        "- metric: beholder",
        "  aggregation: !function utils.p_yes",
        "  higher_is_better: true",
    ]
    write_whole(rows, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    write_whole(folder / f"{name}.yaml", "".join(f"{line}\n" for line in written).encode("utf-8", "replace"))
    write_whole(folder / FUNCTIONS.name, FUNCTIONS.read_bytes())
    return len(lines)
