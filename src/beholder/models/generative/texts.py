"""Questions as tokens: read by the checkpoint's processor once for all pictures that take up as many tokens.

A processor writes a picture's placeholders into every text and tokenises it. Hundreds of questions about thousands
of pictures would spend more time there than in the model, though only the placeholders ever differ.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from beholder.core.errors import ModelError
from beholder.models.checkpoint.checkpoint import torch
from beholder.models.generative.prompt_tree import PromptTree, prompt_tree
from beholder.models.spec import Inputs, Processor

Encoded = Inputs
Encode = Callable[[str], tuple[Encoded, Encoded]]
"""From a question to the inputs made of its text and the inputs made of the picture now shown."""
OF_TOKENS = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"}
"""Inputs that follow from the tokens alone. Any other may depend on the picture, and then no layout is kept."""
KEPT = 16
"""Layouts kept at a time; one of 500 questions takes a few megabytes."""


@dataclass
class Layout:
    """All questions as tokens, for pictures that take up the same tokens."""

    texts: list[Encoded]
    _trees: dict[tuple[int, ...] | None, PromptTree] = field(default_factory=dict)

    def tree(self, indices: Sequence[int] | None = None) -> PromptTree:
        """The tree of all questions, or of some."""
        key = None if indices is None or len(indices) == len(self.texts) else tuple(indices)
        if key not in self._trees:
            chosen = self.texts if key is None else [self.texts[index] for index in key]
            self._trees[key] = prompt_tree([_ids(text) for text in chosen])
        return self._trees[key]


class Texts:
    """Caches the layouts of recent questions."""

    def __init__(self) -> None:
        self._questions: tuple[str, ...] = ()
        self._layouts: OrderedDict[object, Layout] = OrderedDict()

    def layout(self, questions: Sequence[str], encode: Encode) -> tuple[Layout, Encoded]:
        """The questions about the picture that `encode` shows, and what is known of that picture."""
        if tuple(questions) != self._questions:
            self._questions, self._layouts = tuple(questions), OrderedDict()
        first, seen = encode(questions[0])
        if not OF_TOKENS.issuperset(first):
            return Layout([first, *(encode(question)[0] for question in questions[1:])]), seen
        shapes = tuple((name, tuple(values.shape)) for name, values in seen.items())
        key = shapes, tuple(_ids(first))
        if key not in self._layouts:
            known = next(iter(self._layouts.values()), None)
            texts = known and _respelled(known, first, questions, encode)
            self._layouts[key] = Layout(texts or [first, *(encode(question)[0] for question in questions[1:])])
            if len(self._layouts) > KEPT:
                self._layouts.popitem(last=False)
        self._layouts.move_to_end(key)
        return self._layouts[key], seen


def _respelled(known: Layout, first: Encoded, questions: Sequence[str], encode: Encode) -> list[Encoded] | None:
    """A known layout with another picture's tokens in the trunk; None if the processor would write it otherwise."""
    trunk, before, after = known.tree().trunk, _ids(known.texts[0]), _ids(first)
    cut = len(after) - (len(before) - trunk)
    if cut <= 0 or after[cut:] != before[trunk:]:
        return None
    texts = [
        {name: torch.cat([first[name][:, :cut], text[name][:, trunk:]], dim=1) for name in first}
        for text in known.texts
    ]
    last, _ = encode(questions[-1])
    alike = all(np.array_equal(last[name].numpy(), texts[-1][name].numpy()) for name in last)
    return texts if alike else None


def _ids(text: Encoded) -> list[int]:
    ids: list[int] = text["input_ids"][0].tolist()
    return ids


# Prompt forms

FORMS = {
    "blip": "{}",  # for questions; its text encoder looks at the picture
    "git": "[CLS]{}",  # the answer goes on where the question ends, without a closing token
    "paligemma": "<image>{}",  # its processor adds <bos>, and the line break that closes the prefix
    "blip-2": "Question: {} Answer:",  # as its card asks; its processor puts the picture's tokens before
    "instructblip": "{}",
    "kosmos-2": "{}",  # its processor puts the picture's tokens before
    "llava": "USER: <image>\n{} ASSISTANT:",  # the card of LLaVA-1.5, for folders without its template
}
# What a chat template may leave to the day or to the caller. Fixed, because it moves scores.
FIXED = {"date_string": "26 Jul 2024", "enable_thinking": False}


class PromptForm:
    """How a question is written down for one model; each question is rendered once."""

    def __init__(self, processor: Processor, model_type: str) -> None:
        self._tokenizer = processor.tokenizer
        self._image_token = _image_token(processor)
        self._template = _chat_template(processor)
        self._written: dict[str, str] = {}
        self.name = f"form of {model_type}" if self._template is None else "chat template"
        self._own = FORMS.get(model_type)
        if self._template is None and self._own is None:
            raise ModelError(
                f"A model of type '{model_type}' without a chat template: Beholder does not know how to ask it.\n"
                f"Put its chat_template.jinja into the folder. Own forms are known of: {', '.join(FORMS)}."
            )
        self._picture_in_text = self._template is not None and not self._takes_parts()

    def write(self, question: str) -> str:
        """The text for one question; braces in it are only braces."""
        if question not in self._written:
            self._written[question] = self._write(question)
        return self._written[question]

    def opens_itself(self, text: str) -> bool:
        """Whether the text begins with the token that the tokenizer would put before it."""
        openings = (self._tokenizer.bos_token, self._tokenizer.cls_token)
        return any(opening and text.startswith(opening) for opening in openings)

    def _write(self, question: str) -> str:
        if self._template is None:
            assert self._own is not None
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
        assert self._template is not None
        fixed = {name: value for name, value in FIXED.items() if name in self._template}
        message = [{"role": "user", "content": content}]
        rendered = self._tokenizer.apply_chat_template(
            message, chat_template=self._template, add_generation_prompt=True, tokenize=False, **fixed
        )
        return str(rendered)


def _chat_template(processor: Processor) -> str | None:
    """The processor's template, else the tokenizer's; of several, the one named default."""
    for part in (processor, processor.tokenizer):
        template = getattr(part, "chat_template", None)
        if isinstance(template, dict):
            template = template.get("default")
        if template:
            return str(template)
    return None


def _image_token(processor: Processor) -> str:
    return str(getattr(processor, "image_token", "<image>"))
