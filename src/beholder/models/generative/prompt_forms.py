"""Prompt forms: the text that stands around a question, picture included, up to where the answer begins.

Most checkpoints bring a chat template. Those that do not were trained with a form of their own, which is given
here by model type.
"""

from __future__ import annotations

from beholder.core.errors import ModelError
from beholder.models.torch_types import Processor

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
