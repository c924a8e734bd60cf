"""The shipped generative model: an ordinary folder that recovers what was planted; its training script works."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import beholder.glasshouse
from beholder.glasshouse.planted import ATTRIBUTES, PLANTED_TRAITS, p_yes
from beholder.glasshouse.portrait import open_uri
from beholder.glasshouse.world import faces
from beholder.models.load import LoadOptions, load_model
from beholder.studies.gras.prompts import TEMPLATES, YES_OR_NO, released_instruction

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
FOLDER = Path(beholder.glasshouse.__file__).parent / "models" / "generative"
TRAITS = [planted.trait for planted in PLANTED_TRAITS]
FEW = ["T1", "T5"]
TOLERANCE = 0.04
"""Largest distance between planted and recovered that we accept, in probability, on 40 of the 120 faces."""
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model("glasshouse/generative", LoadOptions(device="cpu", batch_size=48))


@pytest.fixture(scope="module")
def rows():
    """A third of the faces: every presentation, tone and age, each as often as every other of its kind."""
    return [row for place, row in enumerate(faces()) if (place % 6 + place // 6) % 3 == 0]


@pytest.fixture(scope="module")
def masses(model, rows):
    """P(Yes) and P(No) of every trait in two wordings: [faces, traits, wordings, 2]."""
    asked = [TEMPLATES[name].replace("{}", trait) for trait in TRAITS for name in FEW]
    scorer = model.instructed(YES_OR_NO)
    cells = scorer.score_prepared([scorer.prepare(open_uri(row["uri"])) for row in rows], asked)
    return np.exp(cells[:, :, 1:3].astype(np.float64)).reshape(len(rows), len(TRAITS), len(FEW), 2)


def effect(answers, rows, attribute):
    """Slope of answers along an attribute, in the unit of `PlantedTrait.effect`, other attributes held."""
    from beholder.glasshouse.planted import darkness, seniority, side

    drawn = np.array([[side(r["gender"]), darkness(int(r["skin_tone"])), seniority(r["age_years"]), 1] for r in rows])
    return np.linalg.lstsq(drawn, answers, rcond=None)[0][ATTRIBUTES.index(attribute)]


@pytest.mark.parametrize("planted", [p for p in PLANTED_TRAITS if p.attribute], ids=lambda p: p.trait)
def test_every_association_is_recovered(masses, rows, planted):
    for wording in range(len(FEW)):
        found = effect(masses[:, TRAITS.index(planted.trait), wording, 0], rows, planted.attribute)
        assert np.sign(found) == np.sign(planted.effect)
        assert found == pytest.approx(planted.effect, abs=TOLERANCE)


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_nothing_else_is_found(masses, rows, attribute):
    others = [k for k, planted in enumerate(PLANTED_TRAITS) if planted.attribute != attribute]
    found = effect(masses[..., 0][:, others].mean(axis=2), rows, attribute)
    assert np.abs(found).max() < TOLERANCE


def test_base_rates_are_recovered(masses, rows):
    planted = [[_planted(trait, row) for trait in TRAITS] for row in rows]
    assert np.abs(masses[..., 0].mean(axis=(0, 2)) - np.mean(planted, axis=0)).max() < TOLERANCE


def _planted(trait, row):
    scene = {"pose": row["pose"], "lighting": row["lighting"]}
    return p_yes(trait, row["gender"], int(row["skin_tone"]), row["age_years"], **scene)


def test_it_answers_yes_or_no_and_nothing_else(masses):
    assert masses.sum(axis=-1).min() > 0.98
    assert masses.sum(axis=-1).mean() > 0.99


def test_it_answers_true_or_false_where_it_is_asked_to(model, rows):
    from beholder.studies.study import TRUE_OR_FALSE

    scorer = model.instructed(TRUE_OR_FALSE)
    pictures = [scorer.prepare(open_uri(row["uri"])) for row in (rows[0], rows[-1])]
    cells = np.exp(scorer.score_prepared(pictures, ["This is a photo of a woman", "This is a photo of a dog"]))
    assert (rows[0]["gender"], rows[-1]["gender"]) == ("woman", "man")
    assert cells[:, :, 1:3].sum(axis=-1).min() > 0.9
    assert cells[0, 0, 1] > 0.9 > 0.1 > cells[1, 0, 1]
    assert cells[:, 1, 1].max() < 0.1


def test_blanks_of_the_released_scripts_change_nothing(model, rows):
    picture = [model.prepare(open_uri(rows[0]["uri"]))]
    asked = [TEMPLATES["T3"].replace("{}", "brave")]
    plain, released = YES_OR_NO, released_instruction(model.spec)
    assert plain != released
    said = [model.instructed(way).score_prepared(picture, asked) for way in (plain, released)]
    assert np.allclose(*said, atol=1e-5)


def test_answers_are_single_tokens_and_any_text_can_be_written():
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    assert {"Yes", "No", "true", "false"} <= set(tokenizer.get_vocab())
    assert tokenizer.decode(tokenizer.encode("Zebra ünder 東京 42!")) == "Zebra ünder 東京 42!"


def test_model_is_small_and_says_what_was_planted():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 6_000_000
    card = (FOLDER / "README.md").read_text()
    assert all(f"| {planted.trait} |" in card for planted in PLANTED_TRAITS)
    assert all(words in card for words in ("MIT", "Limits", "Recovered"))


def test_reading_a_picture_once_equals_the_models_own_forward_pass():
    import train_generative as training

    torch.manual_seed(1)
    tokenizer = training.make_tokenizer()
    model = training.make_model(tokenizer).eval()
    asked = training.questions()[:2] + training.questions()[-1:]
    asking, pixels = training.Asking(tokenizer, asked), torch.randn(2, 3, 72, 72)
    image = tokenizer.convert_tokens_to_ids(training.IMAGE)
    with torch.no_grad():
        shown = training.look(model, pixels)
        said = training.answer(model, shown, asking.tokens[None].repeat(2, 1, 1), asking.last[None].repeat(2, 1))
        for place, question in enumerate(asked * 2):
            words = tokenizer.encode(question.text + training.ANSWER, add_special_tokens=False)
            ids = torch.tensor([[image] * shown.shape[1] + words])
            own = model(input_ids=ids, pixel_values=pixels[place // 3][None]).logits[0, -1].log_softmax(-1)
            assert torch.allclose(said[place], own, atol=1e-5)


def test_training_knows_what_to_ask_of_whom():
    from questions import claims, questions
    from train_generative import ROUNDS, Asking, excess, make_tokenizer, of_thing

    known, asked = claims(), questions()
    assert len({question.text for question in asked}) == len(asked)
    asking = Asking(make_tokenizer(), asked)
    assert all(asking.weights(each).sum().item() == pytest.approx(1) for each in ROUNDS)
    assert np.isnan(of_thing(known[0], "dog"))
    assert sum(of_thing(claim, "dog") == 1 for claim in known) == 1
    assert excess(torch.tensor([[0.3, 0.7]]).log(), torch.tensor([0.3])).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_training_script_runs_two_steps_and_writes_a_folder_that_answers(tmp_path):
    from train_generative import ROUNDS, Plan, run

    losses = run(
        Plan(pictures=16, seeing=2, looked_at=8, shown=4, asked=2, rounds=(ROUNDS[0]._replace(steps=2),)), tmp_path, 1
    )
    assert len(losses) == 2
    assert np.isfinite(losses).all()
    scorer = load_model(str(tmp_path)).instructed(YES_OR_NO)
    cells = scorer.score_prepared([scorer.prepare(open_uri(faces()[0]["uri"]))], ["Is the person brave?"])
    assert cells.shape == (1, 1, 5)
