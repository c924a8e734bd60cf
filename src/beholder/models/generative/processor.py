"""The processor of a generative checkpoint: pictures by PIL, each processed once, and how a question is written down.

transformers wants a video or sound reader for models that could also watch or listen. Beholder shows one still
picture: where such a part cannot be loaded, something stands in for it that is never given anything to process.
Pictures are read by PIL wherever the model can, since torchvision's pixels differ.
"""

import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from beholder.core.errors import ModelError
from beholder.core.read import read_json
from beholder.datasets.images import on_white
from beholder.models.checkpoint.checkpoint import Checkpoint, captured_warnings
from beholder.models.checkpoint.files import read_config
from beholder.models.generative.model_types import MODEL_TYPES, model_type_of
from beholder.models.spec import Output, Processor, Tensor
from beholder.models.torch_scorer import as_model_error, replaced, transformers

OTHER_PARTS = {"video_processor": "AutoVideoProcessor", "feature_extractor": "AutoFeatureExtractor"}
LIBRARY = re.compile(r"\b(torchvision|torchaudio|librosa|torchcodec|av|decord|scipy|soundfile)\b", re.IGNORECASE)
CONFIGS = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
# What a chat template may leave to the day or to the caller. Fixed, because it moves scores.
FIXED = {"date_string": "26 Jul 2024", "enable_thinking": False}


class Picture(NamedTuple):
    """One picture and what the checkpoint's image processor makes of it."""

    image: Image.Image
    features: Mapping[str, Tensor]


class PictureProcessor:
    """Stands in for an image processor: remembers how the checkpoint's processor calls it and what it made.

    `develop` may be called from several threads; showing a picture to the processor is for one thread at a time.
    """

    def __init__(self, image_processor: Processor) -> None:
        self.image_processor = image_processor
        self._shown: Picture | None = None
        self._nesting = 0
        self._options: dict[str, object] = {}
        self.made: frozenset[str] = frozenset()  # names of what it made of the last picture, of the picture alone
        by_torch = getattr(image_processor, "backend", None) == "torchvision"
        self.tensors = "pt" if by_torch else "np"  # Llama 4's pixels are bfloat16, which numpy does not have

    @property
    def asked_for(self) -> dict[str, object]:
        """What the checkpoint's processor asks of the image processor beyond its own settings, as JSON values."""
        asked = {name: value for name, value in self._options.items() if name != "return_tensors"}
        return {name: value for name, value in asked.items() if isinstance(value, bool | int | float | str)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.image_processor, name)

    def __call__(self, images: object, **options: object) -> Output:
        if self._shown is not None:
            return transformers.BatchFeature(dict(self._shown.features))
        self._options, self._nesting = options, _depth(images)
        features = self.image_processor(images, **options)
        self.made = frozenset(features) - {"attention_mask"}  # which the text's replaces (Kosmos 2.5)
        return features

    def develop(self, image: Image.Image) -> Picture:
        """The picture, processed as the checkpoint's processor would have it."""
        rgb = on_white(image)
        nested: object = rgb
        for _ in range(self._nesting):
            nested = [nested]
        return Picture(rgb, dict(self.image_processor(nested, **self._options)))

    def showing(self, picture: Picture) -> AbstractContextManager[None]:
        """While this lasts, the processor gets this picture's features without computing them again."""
        return replaced(self, "_shown", picture)


def _depth(images: object) -> int:
    return 1 + _depth(images[0]) if isinstance(images, list | tuple) else 0


class _Absent:
    """Stands for a processor of video or sound that cannot be loaded; asked for settings, it has the pictures'."""

    valid_kwargs = None  # what the pictures' processor may be told, sound may not

    def __init__(self, image_processor: Processor, part: str, reason: str) -> None:
        self._image_processor, self._missing = image_processor, f"its {part} cannot be loaded: {reason}"

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._image_processor, name)
        except AttributeError:
            raise AttributeError(f"the processor asks for '{name}', but {self._missing}") from None

    def __call__(self, *_: object, **__: object) -> Output:
        raise ModelError(f"The model's processor cannot be used as it is: {self._missing}.")


def build_processor(folder: Path, checkpoint: Checkpoint) -> Processor:
    """The checkpoint's own processor around its tokenizer and a `PictureProcessor`."""
    given = {"tokenizer": checkpoint.tokenizer, "image_processor": checkpoint.image_processor}
    with as_model_error(folder):
        kind = processor_class(folder)
        for name in set(kind.get_attributes()) - set(given):
            given[name] = (
                transformers.AutoTokenizer.from_pretrained(folder, subfolder=name, local_files_only=True)
                if name.endswith("tokenizer")  # InstructBLIP has a second one
                else _other_part(folder, name, checkpoint.image_processor)
            )
        parts = [given[name] for name in kind.get_attributes()]
        settings, _ = kind.get_processor_dict(folder, local_files_only=True)
        # Content with `_Absent` parts, which the class could neither check nor print.
        lenient = {"check_argument_for_proper_class": lambda *_: None, "__repr__": object.__repr__}
        # SmolVLM's processor refuses to start without num2words, which it uses for videos only.
        module = sys.modules[kind.__module__]
        unnamed = getattr(module, "num2words", "absent") is None
        with replaced(module, "num2words", str) if unnamed else nullcontext():
            for_stills: Any = type(kind.__name__, (kind,), lenient)
            processor = for_stills.from_args_and_dict(parts, settings)
    processor.image_processor = PictureProcessor(checkpoint.image_processor)
    if getattr(processor, "num_query_tokens", 0) is None:  # older BLIP-2 folders leave it to the model's config
        processor.num_query_tokens = checkpoint.model.config.num_query_tokens
    if hasattr(processor, "num_query_tokens") and isinstance(processor.image_token, str):
        processor.image_token = transformers.AddedToken(processor.image_token)  # as BLIP-2's and InstructBLIP's read it
    return processor


def _other_part(folder: Path, name: str, image_processor: Processor) -> Processor:
    """The checkpoint's own processor of video or sound; a stand-in where its library or its file is missing."""
    auto = getattr(transformers, OTHER_PARTS.get(name, ""), None)
    if auto is None:
        return _Absent(image_processor, name, "transformers has no class for it")
    try:
        with captured_warnings():
            return auto.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # a missing library, a missing file, a setting that it does not know
        library = LIBRARY.search(str(error))
        reason = f"it needs {library[0]}" if library else " ".join(str(error).split())[:200]
        return _Absent(image_processor, name, reason)


def processor_class(folder: Path) -> Any:
    """The class that the folder names, or the one transformers has for its model type."""
    for path in (folder / name for name in CONFIGS):
        named = read_json(path, ModelError).get("processor_class") if path.is_file() else None
        if named and hasattr(transformers, named):
            return getattr(transformers, named)
    model_type = str(read_config(folder).get("model_type"))
    names: Mapping[str, str] = transformers.models.auto.processing_auto.PROCESSOR_MAPPING_NAMES
    if model_type not in names:
        raise ModelError(
            f"{folder}: transformers {transformers.__version__} has no processor for model type '{model_type}'."
        )
    return getattr(transformers, names[model_type])


class PromptForm:
    """How a question is written down for one model; each question is rendered once."""

    def __init__(self, processor: Processor, model_type: str) -> None:
        self._tokenizer, self._image_token = processor.tokenizer, getattr(processor, "image_token", "<image>")
        # The processor's template, else the tokenizer's; of several, the one named default.
        templates = [getattr(part, "chat_template", None) for part in (processor, processor.tokenizer)]
        named = [each.get("default") if isinstance(each, dict) else each for each in templates]
        self._template = str(next(filter(None, named), ""))
        self.name = "chat template" if self._template else f"form of {model_type}"
        self._own = model_type_of(model_type).form
        if not (self._template or self._own):
            known = ", ".join(name for name, kind in MODEL_TYPES.items() if kind.form)
            raise ModelError(
                f"A model of type '{model_type}' without a chat template: Beholder does not know how to ask it.\n"
                f"Put its chat_template.jinja into the folder. Own forms are known of: {known}."
            )
        opening = self._tokenizer.cls_token or self._tokenizer.bos_token or ""
        self._own = self._own.replace("<cls>", opening)
        marks = {str(mark) for name, mark in vars(processor).items() if name.endswith("_token") and mark}
        self._marks = sorted({mark for mark in {*marks, str(self._image_token)} if not mark.isalnum()})
        self._picture_in_text = bool(self._template) and not self._takes_parts()
        self.write = cache(self._write)  # the text for one question; braces in it are only braces

    def opens_itself(self, text: str) -> bool:
        """Whether the text begins with the token that the tokenizer would put before it."""
        openings = (self._tokenizer.bos_token, self._tokenizer.cls_token)
        return any(opening and text.startswith(opening) for opening in openings)

    def _write(self, question: str) -> str:
        if mark := next((mark for mark in self._marks if mark in question), ""):
            raise ModelError(
                f"A question holds '{mark}', which stands for a picture or a sound in what this model reads: "
                f"{question[:200]!r}.\nWrite the question without it."
            )
        if not self._template:
            return self._own.replace("{}", question)
        if self._picture_in_text:
            return self._render(f"{self._image_token}{question}")
        return self._render([{"type": "image"}, {"type": "text", "text": question}])

    def _takes_parts(self) -> bool:
        """Whether the template understands a list of picture and text; older ones only know a text."""
        try:
            rendered = self._render([{"type": "image"}, {"type": "text", "text": "?!?"}])
        except Exception:  # whatever jinja or the template raises for a content that is no text
            return False
        return rendered.count("?!?") == 1 and "'type'" not in rendered

    def _render(self, content: object) -> str:
        options = {name: value for name, value in FIXED.items() if name in self._template}
        options |= {"chat_template": self._template, "add_generation_prompt": True, "tokenize": False}
        return str(self._tokenizer.apply_chat_template([{"role": "user", "content": content}], **options))
