"""Inside the harnesses people run: what a study asks, as tasks of inspect_ai (`tasks.py`) and lmms-eval (`lmms.py`).

The harness puts the questions to the model in its own way and keeps a log. `beholder measure LOG` measures it: the log
says what was asked. One cell of the score matrix is one question, or `draws` of them where answers are counted.
"""

import json
from base64 import b64decode
from collections.abc import Iterator
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
