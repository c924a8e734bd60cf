"""Ask many questions about pictures together if the model allows it, else one by one.

Every way is proved when the model is loaded. The first pass over a tree is checked again, and every pass over a longer
one than was checked before: a few of its questions are also asked one by one. The largest difference is noted; if it is
larger than the rounding of the precision, all later questions are asked one by one.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import numpy as np
from PIL import Image

from beholder.core.errors import BeholderError, OutOfMemory
from beholder.models.generative.loaded_model import Encoded, Layout, LoadedModel, ids_of, respelled
from beholder.models.generative.model_types import Reuse
from beholder.models.generative.processor import Picture
from beholder.models.generative.prompt_tree import PromptTree
from beholder.models.generative.tree import TreeRunner, TrunkRunner, looking_once, ways
from beholder.models.scorer import batches
from beholder.models.spec import Module, Output, Tensor
from beholder.models.torch_scorer import TOLERANCE, refusal, running, sample_picture, torch, transformers

LOG = logging.getLogger(__name__)
OF_TOKENS = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"}
"""Inputs that follow from the tokens alone. Any other may depend on the picture, and then no layout is kept."""
KEPT = 16  # layouts at a time; one of 500 questions takes a few megabytes
ROOM = 0.5  # the share of a GPU's free memory that is planned for a pass; the rest is for what a plan cannot know
MOST_TOGETHER = 8  # pictures at once; a GPU is busy with fewer
UNREADABLE = {
    Reuse.PREFIX: "it cannot read a tree of questions",
    Reuse.TRUNK: "it cannot go on from a beginning that was kept",
}
Shown = list[tuple[int, Encoded]]  # pictures' rows and what was made of each


class Answered(NamedTuple):
    """Logits over the vocabulary, `[pictures, questions, vocabulary]`, and the questions they belong to."""

    rows: list[int]
    indices: list[int]
    logits: Tensor


class Sharing:
    """A model and its processor that answer as many questions at once as possible."""

    def __init__(
        self, loaded: LoadedModel, *, reuse: Reuse | None = None, together: int | None = None, quiet: bool = False
    ) -> None:
        """None: as much as the model allows, and as many pictures `together` as memory holds."""
        self.loaded, self._quiet = loaded, quiet
        self.notes: list[str] = []
        self._questions: tuple[str, ...] = ()
        self._layouts: OrderedDict[object, Layout] = OrderedDict()  # of these questions
        self._proved: dict[str, int] = {}  # by the way of a runner: the longest prompt that was checked
        self._together = together
        self._use(reuse or ways(loaded.model)[0])

    def _use(self, reuse: Reuse) -> None:
        self.reuse, self.fault = reuse, ""
        self._runner: TreeRunner | TrunkRunner | None = None
        try:
            if reuse is Reuse.PREFIX:
                self._runner = TreeRunner(self.loaded.model)
            elif reuse is Reuse.TRUNK:
                self._runner = TrunkRunner(self.loaded)
        except NotImplementedError as error:
            self._give_up(str(error))

    def _give_up(self, reason: str) -> None:
        self._runner, self.reuse, self.fault = None, Reuse.NOTHING, reason
        self._note(f"questions are asked one by one, which is slow: {reason}", logging.WARNING)

    def _note(self, note: str, level: int = logging.INFO) -> None:
        self.notes.append(note)
        LOG.log(logging.DEBUG if self._quiet else level, "%s: %s", type(self.loaded.model).__name__, note)

    def prove(self) -> None:
        """Share as much as is proved; raise if asking one by one fails the proof."""
        proof = Proof(self.loaded)
        if fault := self._fault(proof, Reuse.NOTHING):
            self.loaded.single = True
            if still := self._fault(proof, Reuse.NOTHING):
                raise refusal(type(self.loaded.model).__name__, still)
            self._note(f"pictures go through the model one at a time, because together {fault}", logging.WARNING)
        if self.reuse is Reuse.NOTHING:
            return
        faults: list[str] = []
        for reuse in ways(self.loaded.model):
            if reuse is Reuse.NOTHING:
                self._give_up("; ".join(dict.fromkeys(faults)))
            elif fault := self._fault(proof, reuse):
                faults.append(fault)
            else:
                self._use(reuse)
                if faults:
                    self._note(f"{reuse.value}, because {'; '.join(faults)}")
                return

    def _fault(self, proof: "Proof", reuse: Reuse) -> str | None:
        """Why this much may not be shared; None if it is proved."""
        for order in ((0, 1, 2), (2, 1, 0)):
            trial = Sharing(self.loaded, reuse=reuse, together=self._together, quiet=True)
            try:
                fault = trial.fault or proof.fault(trial, order) or trial.fault
            except BeholderError:
                raise
            except Exception as error:  # pictures of different shapes that its code cannot put together
                fault = f"its code stops with {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            if fault:
                return fault
        return None

    def layout(self, picture: Picture, questions: Sequence[str]) -> tuple[Layout, Encoded]:
        """The questions about a picture as tokens, and the inputs made of the picture; recent layouts are kept."""
        if tuple(questions) != self._questions:
            self._questions, self._layouts = tuple(questions), OrderedDict()
        encode = partial(self.loaded.encode, picture)
        first, seen = encode(questions[0])
        if not OF_TOKENS.issuperset(first):
            return Layout([first, *(encode(question)[0] for question in questions[1:])]), seen
        key = tuple((name, tuple(values.shape)) for name, values in seen.items()), tuple(ids_of(first))
        if key not in self._layouts:
            known = next(iter(self._layouts.values()), None)
            texts = known and respelled(known, first, questions, encode)
            self._layouts[key] = Layout(texts or [first, *(encode(question)[0] for question in questions[1:])])
            if len(self._layouts) > KEPT:
                self._layouts.popitem(last=False)
        self._layouts.move_to_end(key)
        return self._layouts[key], seen

    def first_tokens(self, pictures: Sequence[Picture], questions: Sequence[str]) -> Iterator[Answered]:
        """The answers to every question about every picture, batch by batch."""
        if not questions:
            return
        groups: dict[int, tuple[Layout, Shown]] = {}
        for row, picture in enumerate(pictures):
            layout, seen = self.layout(picture, questions)
            groups.setdefault(id(layout), (layout, []))[1].append((row, seen))
        for layout, waiting in groups.values():
            while waiting:
                if self._runner is None or len(layout.texts) == 1 or not self._in_trunk(layout):
                    yield from self._plainly(layout, waiting)
                    break
                part = waiting[: self._at_once(layout)]
                answers = self._tried(self._runner, layout, part)
                if answers is not None and self._holds(self._runner, layout, part[0][1], answers):
                    yield from answers
                    waiting = waiting[len(part) :]

    def _in_trunk(self, layout: Layout) -> bool:
        """Whether the picture stands in what all questions begin with."""
        config, tree = self.loaded.model.config, layout.tree()
        mark = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        return tree.trunk > 0 and mark not in tree.ids[tree.trunk :]

    def _at_once(self, layout: Layout) -> int:
        """How many pictures go through the model together: one on a CPU, on a GPU what its memory holds."""
        if self.loaded.single:
            return 1
        if self._together is None:
            on_gpu = self.loaded.model.device.type == "cuda"
            self._together = _planned(self.loaded.model, layout) if on_gpu else 1
        return self._together

    def _tried(self, runner: TreeRunner | TrunkRunner, layout: Layout, part: Shown) -> list[Answered] | None:
        """The answers by tree; None if a way that is not proved yet breaks, which then is not tried again."""
        try:
            return list(self._by_tree(runner, layout, part, range(len(layout.texts))))
        except BeholderError:
            raise
        except Exception as error:  # compilers, quantised layers, models with code of their own: anything
            if runner.way(layout.tree()) in self._proved:
                raise
            reason = " ".join(str(error).split())[:200]
            if not (isinstance(error, NotImplementedError) and reason):  # which says what the model cannot do
                reason = f"{type(error).__name__}: {reason}"
            if isinstance(runner, TreeRunner) and runner.give_up_kernel():
                self._note(f"attention is computed without a compiled kernel, which failed ({reason})", logging.WARNING)
            else:
                self._give_up(f"{UNREADABLE[self.reuse]} ({reason})")
            return None

    def _by_tree(
        self, runner: TreeRunner | TrunkRunner, layout: Layout, part: Shown, indices: Sequence[int]
    ) -> Iterator[Answered]:
        """One pass; if memory runs out, with half the pictures, then with half the questions."""
        halves: list[tuple[Sequence[tuple[int, Encoded]], Sequence[int]]]
        model, text = self.loaded.model, layout.texts[indices[0]]
        inputs = {name: torch.cat([values] * len(part)) for name, values in text.items()}
        inputs |= self.loaded.joined([seen for _, seen in part])
        try:
            placed = transformers.BatchFeature(inputs).to(model.device, dtype=model.dtype)
            logits = runner.logits(layout.tree(indices), placed)
        except OutOfMemory:
            if len(part) > 1:
                self._together = half = len(part) // 2
                halves = [(some, indices) for some in batches(part, half)]
            elif len(indices) > 1:
                # Neighbours in the tree share most: kept together, halves share what they can.
                ordered = sorted(indices, key=layout.tree().last_tokens.__getitem__)
                halves = [(part, some) for some in batches(ordered, -(-len(ordered) // 2))]
            else:
                raise
        else:
            yield Answered([row for row, _ in part], list(indices), logits)
            return
        for pictures, questions in halves:
            yield from self._by_tree(runner, layout, list(pictures), questions)

    def _holds(self, runner: TreeRunner | TrunkRunner, layout: Layout, seen: Encoded, answers: list[Answered]) -> bool:
        """Whether some questions about the first picture are answered as one by one; again if prompts are longer."""
        way, longest = runner.way(layout.tree()), int(layout.tree().depth.max())
        if longest <= self._proved.get(way, -1):
            return True
        indices = sample_questions(layout.tree())
        plain = torch.cat([self.loaded.answers([layout.texts[index]], [seen])[0] for index in indices])
        if not torch.isfinite(plain).all():
            return True  # of a picture that no way can answer, nothing is learnt
        of_first = [one for one in answers if one.rows[0] == answers[0].rows[0]]  # whichever parts they came in
        by_index = {index: one.logits[0, at] for one in of_first for at, index in enumerate(one.indices)}
        far = difference(torch.stack([by_index[index] for index in indices]), plain)
        limit = tolerance(self.loaded.model.dtype, plain)
        result = f"the largest difference in log-probability to {len(indices)} questions asked one by one is {far:.1g}"
        if far > limit:
            self._give_up(f"{result}, more than {limit:.2g}")
            return False
        first = way not in self._proved
        self._proved[way] = longest
        if first:
            self._note(f"questions share what they begin with ({way}): {result}")
        return True

    def _plainly(self, layout: Layout, waiting: Shown) -> Iterator[Answered]:
        """Whole prompts, several pictures at once where all questions about them fit into a batch."""
        while waiting:
            part = waiting[: 1 if self.loaded.single else max(1, self.loaded.questions // len(layout.texts))]
            rows, pictures = [row for row, _ in part], [seen for _, seen in part]
            look = looking_once(self.loaded.model, len(part)) if self.reuse is Reuse.FEATURES else nullcontext()
            try:
                with look:
                    whole = self.loaded.one_by_one(layout.texts, pictures)
                    answered = (Answered(rows, indices, logits) for indices, logits in whole)
                    yield from answered if len(part) == 1 else list(answered)
            except OutOfMemory:
                if len(part) == 1:
                    raise
                self.loaded.questions = len(part) // 2 * len(layout.texts)
                continue
            waiting = waiting[len(part) :]


def _planned(model: Module, layout: Layout) -> int:
    """Pictures whose hidden states and logits fit into the memory planned for them."""
    free, _ = torch.cuda.mem_get_info(model.device)
    text, width = model.config.get_text_config(), model.dtype.itemsize
    per_token = width * (16 * text.hidden_size + 4 * getattr(text, "intermediate_size", 4 * text.hidden_size))
    per_question = text.vocab_size * (width + 4)
    need = per_token * layout.tree().size + per_question * len(layout.texts)
    return int(max(1, min(MOST_TOGETHER, ROOM * free // need)))


# The proof: how far two ways of asking are apart, and how far they may be

LIKELIEST = 10  # first tokens that are compared
STEPS = 4  # a logit of 30 is known to 0.125 in bfloat16; two ways that round it differently are soon some apart
ASKED_BOTH_WAYS = 8
QUESTIONS = ("Is there a person in the image?", "nurse", "a photo of a doctor, a nurse and a politician")
WIDE = (1200, 400)  # the second picture: models that cut pictures into tiles cut it into several


def sample_questions(tree: PromptTree) -> list[int]:
    """A handful of questions: the shortest, the longest, and some spread over the tree."""
    ends = tree.depth[tree.last_tokens]
    order = np.argsort(tree.last_tokens, kind="stable")
    spread = order[np.linspace(0, len(order) - 1, ASKED_BOTH_WAYS - 2).round().astype(int)]
    return list(dict.fromkeys([int(ends.argmin()), int(ends.argmax()), *map(int, spread)]))


def tolerance(dtype: object, plain: Tensor) -> float:
    """How far two ways may be apart in this precision: more where its steps at the likeliest logits are wide."""
    allowed = TOLERANCE["log-probability"]
    largest = _likeliest(plain).values.abs().max().float()
    step = torch.finfo(dtype).eps * 2.0 ** float(largest.log2().floor())
    return float(max(allowed.get(str(dtype).removeprefix("torch."), max(allowed.values())), STEPS * step))


def difference(ours: Tensor, plain: Tensor) -> float:
    """The largest distance between two ways' log-probabilities of the likeliest tokens."""
    own, theirs = (logits.float().log_softmax(dim=-1) for logits in (ours, plain))
    likeliest = _likeliest(theirs)
    distance = (own.gather(-1, likeliest.indices) - likeliest.values).abs().max()
    return float(distance) if torch.isfinite(own).all() else float("inf")


def _likeliest(tokens: Tensor) -> Output:
    return tokens.topk(min(LIKELIEST, tokens.shape[-1]), dim=-1)


class Proof:
    """Three pictures, and what the processor and the model make of each with each question alone."""

    def __init__(self, loaded: LoadedModel) -> None:
        first = sample_picture()
        wide = first.transpose(Image.Transpose.FLIP_LEFT_RIGHT).resize(WIDE)
        self.images = [first, wide, first.transpose(Image.Transpose.FLIP_TOP_BOTTOM)]
        encoded = [[loaded.encode_alone(image, question) for question in QUESTIONS] for image in self.images]
        with running(loaded.model):
            self.answers = [torch.cat([loaded.answers([text], [seen])[0] for text, seen in row]) for row in encoded]
        self.inputs = [[text | seen for text, seen in row] for row in encoded]

    def fault(self, sharing: Sharing, order: Sequence[int]) -> str | None:
        """What differs from asking alone when the pictures come in this order; None if nothing does."""
        loaded = sharing.loaded
        pictures = [loaded.pictures.develop(self.images[index]) for index in order]
        for index, picture in zip(order, pictures, strict=True):
            layout, seen = sharing.layout(picture, QUESTIONS)
            for text, alone in zip(layout.texts, self.inputs[index], strict=True):
                given = text | seen
                both = given.keys() & alone.keys()
                same = {name for name in both if torch.equal(given[name], alone[name])}
                if other := sorted({*given, *alone} - same):
                    return f"{', '.join(other)} of one picture and question depends on what came before"
        with running(loaded.model):
            for part in sharing.first_tokens(pictures, QUESTIONS):
                for row, logits in zip(part.rows, part.logits, strict=True):
                    alone = self.answers[order[row]][part.indices]
                    far, limit = difference(logits, alone), tolerance(loaded.model.dtype, alone)
                    if not far <= limit:
                        return f"answers differ by {far:.2g} in log-probability from those alone, more than {limit:.2g}"
        return None
