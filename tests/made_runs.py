"""Runs made by hand: no model, no data set, only result rows as the studies write them."""

from __future__ import annotations

import base64
import gzip
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from beholder._run import Run
from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE, verdict_of
from beholder.core.record import Record
from beholder.core.results import Row, results_table
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions

HOSTILE = "<script>alert(1)</script>"
BRANCHES = {"actors": (100, 6), "athletes": (109, 16), "house": (436, 7), "senate": (100, 7), "mayors": (100, 7)}
OCCUPATIONS = ("politician", "teacher", "receptionist", "actor", "actress", "athlete")
POOLS = {"actors": (40, 60), "politicians": (183, 453), "athletes": (30, 79)}


def unpacked(text: str) -> Any:
    """What `drawing.packed` has put into a page."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


def share(metric: str, value: float | None, n: int = 100, *, width: float = 0.06, **place: Any) -> Row:
    """A probability with an interval around it."""
    if value is None:
        return Row(metric, None, 0, "probability", **place)
    low, high = max(0.0, value - width / 2), min(1.0, value + width / 2)
    return Row(metric, value, n, "probability", low=low, high=high, **place)


POOLED = {"politicians": 636, "athletes": 109}


def ratio(pool: str, value: float, low: float | None, high: float | None) -> Row:
    """A ratio b; a difference was found where its interval leaves out 1."""
    verdict = NONE_FOUND if low is not None and high is not None and low <= 1 <= high else DIFFERENCE
    row = Row("apa.bias_ratio", value, POOLED.get(pool, 100), "ratio", subset=pool, low=low, high=high)
    return row._replace(verdict=TOO_LITTLE if low is None else verdict)


def association_rows(strength: float = 0.5) -> list[Row]:
    """Three levels in five branches, mean and top-1."""
    levels = {"category": (0.9, 7), "occupation": (strength, 9), "specialty": (strength / 2, None)}
    return [
        share(f"apa.{metric}", value, n, subset=branch, concept=level, chance=1 / (number or hard))
        for branch, (n, hard) in BRANCHES.items()
        for level, (value, number) in levels.items()
        for metric in ("association", "association_top1")
    ]


def bias_rows(ratios: dict[str, tuple[float, float, float]]) -> list[Row]:
    """Occupations by gender and a ratio, pool by pool."""
    rows = []
    for pool, bounds in ratios.items():
        counts = dict(zip(("woman", "man"), POOLS.get(pool, (30, 30)), strict=True))
        rows += [
            share("apa.occupation_probability", 0.1 + 0.1 * place, n, subset=pool, group=group, concept=word)
            for group, n in counts.items()
            for place, word in enumerate(OCCUPATIONS)
        ]
        rows.append(ratio(pool, *bounds))
    return rows


def identity_rows(value: float, *, width: float = 0.06) -> list[Row]:
    """Both directions in every branch."""
    rows = []
    for branch, (n, _) in BRANCHES.items():
        for given in ("image", "name"):
            name, by_chance = f"apa.identity_given_{given}", 1 / n
            rows += [
                share(
                    name, value, n, width=width, subset=branch, chance=by_chance, landmark=by_chance, p_value=0.01
                )._replace(verdict=DIFFERENCE),
                share(f"{name}_top1", value, n, subset=branch, chance=by_chance),
                Row(f"{name}_mrr", value, n, "reciprocal rank", subset=branch),
            ]
    return rows


def apa_results(model: str = "clip", dataset: str = "apa", *, strength: float = 0.5) -> pl.DataFrame:
    """A full table of one model."""
    ratios = {"actors": (0.95, 0.8, 1.1), "politicians": (0.62, 0.55, 0.70), "athletes": (1.2, 1.05, 1.4)}
    rows = association_rows(strength) + bias_rows(ratios) + identity_rows(0.3)
    return results_table(rows, study="apa", model=model, dataset=dataset)


def glasshouse_results(model: str, ratios: dict[str, tuple[float, float, float]]) -> pl.DataFrame:
    """The embedded world."""
    rows = bias_rows(ratios)
    for pool in ratios:
        rows += [
            share("apa.association", 0.9, 60, subset=pool, concept="category", chance=1 / 7),
            share("apa.association", 0.7, 60, subset=pool, concept="occupation", chance=1 / 9),
            share("apa.association", 0.6, 60, subset=pool, concept="specialty", chance=1 / 6),
        ]
    for branch, value in (("known", 0.9), ("strangers", 0.04)):
        rows += [
            share(
                f"apa.identity_given_{given}", value, 90, subset=branch, chance=1 / 30, landmark=1 / 30, p_value=0.01
            )._replace(verdict=DIFFERENCE if branch == "known" else NONE_FOUND)
            for given in ("image", "name")
        ]
    return results_table(rows, study="apa", model=model, dataset="glasshouse")


def custom_results(
    model: str = "clip", *, groups: tuple[str, ...] = ("woman", "man"), attribute: str = "gender"
) -> pl.DataFrame:
    """Own prompts by group."""
    everyone = {"calm": 0.5, "tired": 0.3, "angry": 0.2}
    level = {"template": "mood", "note": "among the 3 prompts of level 'mood'"}
    rows = [share("custom.probability", value, 80, concept=concept, **level) for concept, value in everyone.items()]
    for place, group in enumerate(groups):
        values = {"calm": 0.6 - 0.15 * place, "tired": 0.3 + 0.05 * place, "angry": 0.1 + 0.1 * place}
        rows += [
            share("custom.probability", value, 40, subset=attribute, group=group, concept=c, **level)
            for c, value in values.items()
        ]
    ends = {"subset": attribute, "group": groups[0], "against": groups[1], "template": "mood"}
    for concept, gap, p_value in (("calm", 0.15, 0.002), ("tired", -0.05, 0.3), ("angry", -0.1, 0.01)):
        row = Row("custom.gap", gap, 80, "probability", concept=concept, low=gap - 0.06, high=gap + 0.06, **ends)
        rows.append(row._replace(p_value=p_value, verdict=verdict_of(p_value, 40)))
    return results_table(rows, study="custom", model=model, dataset="photos")


def record(*models: str, dataset: str = "apa", **fields: object) -> Record:
    """A record with every kind of entry."""
    made = Record(
        beholder="0.1.0",
        created="2026-08-01T12:00:00+00:00",
        command=["beholder", "audit", *models, "--out", "runs/a b"],
        seconds=12.5,
        settings={"compat": False, "draws": 2000, "seed": 20260801, "limit": None, "device": "cpu"},
        studies=["apa"],
        models=[
            {
                "name": name,
                "adapter": "clip",
                "weights": "hub/x",
                "revision": "abc",
                "precision": "float32",
                "settings": {"image_size": 224},
                "digest": "0123456789abcdef",
                "notes": [],
            }
            for name in models
        ],
        datasets=[{"name": dataset, "revision": "v1", "licence": "MIT", "images": 845, "of": 845, "notes": ["a note"]}],
    )
    for key, value in fields.items():
        setattr(made, key, value)
    return made


@pytest.fixture
def apa_run() -> Run:
    """One model on APA."""
    return Run(apa_results(), record("clip"))


@pytest.fixture(scope="session")
def two_models() -> Run:
    """Two models on APA."""
    return Run(pl.concat([apa_results("clip"), apa_results("siglip", strength=0.8)]), record("clip", "siglip"))


@pytest.fixture
def glasshouse_run() -> Run:
    """The reference model and noise on the embedded world."""
    taught = {"doctors": (0.6, 0.5, 0.7), "chefs": (0.75, 0.7, 0.8), "judges": (1.01, 0.95, 1.08)}
    nothing = {"doctors": (1.0, 0.9, 1.1), "chefs": (1.02, 0.9, 1.1), "judges": (0.99, 0.9, 1.1)}
    results = [glasshouse_results("glasshouse/contrastive", taught), glasshouse_results("null", nothing)]
    return Run(pl.concat(results), record("glasshouse/contrastive", "null", dataset="glasshouse"))


@pytest.fixture
def hostile_run() -> Run:
    """Names that would do harm if they were not shown as text."""
    results = pl.concat(
        [
            apa_results(HOSTILE),
            custom_results(
                HOSTILE, groups=(HOSTILE, "[red]b[/red]"), attribute="</script><img src=x onerror=alert(2)>"
            ),
        ]
    )
    made = record(HOSTILE, dataset=f"apa{HOSTILE}", notes=[HOSTILE], left_out=[HOSTILE])
    made.datasets[0]["notes"] = [HOSTILE]
    made.bad_images = [{"image": f"{HOSTILE}.jpg", "reason": "<img src=x onerror=alert(3)>"}]
    return Run(results, made)


@pytest.fixture
def custom_run() -> Run:
    """Own prompts by gender."""
    return Run(custom_results(), record("clip", dataset="photos"))


RACES = ("Black", "East Asian", "Indian", "Latino_Hispanic", "Middle Eastern", "Southeast Asian", "White")
AGES = ("20-29", "30-39", "40-49", "50-59", "60-69")


def gras_images(faces: int = 420, drawn: int = 180, **groups: tuple[str, ...]) -> pl.DataFrame:
    """A balanced part with gender, race and age, and one with skin tones."""
    kinds = {"gender": ("Female", "Male"), "race": RACES, "age": AGES, **groups}
    columns = {
        name: [values[(i // step) % len(values)] for i in range(faces)] + [None] * drawn
        for step, (name, values) in zip((1, 2, 14), kinds.items(), strict=True)
    }
    n = faces + drawn
    tones = [None] * faces + [str(1 + i % 10) for i in range(drawn)]
    parts = ["fairface"] * faces + ["aiface"] * drawn
    return pl.DataFrame({"image_id": [str(i) for i in range(n)], "part": parts, **columns, "skin_tone": tones})


def gras_matrix(images: pl.DataFrame, *, effect: float = 1.0, mass: float | None = None) -> ScoreMatrix:
    """All 500 questions: women get “kind” more, MST 10 more of every negative trait; the rest is noise."""
    rng, prompts = np.random.default_rng(5), gras_prompts().table
    cells = np.clip(rng.normal(0.4, 0.08, (images.height, prompts.height)), 0.01, 0.99)
    first = images["gender"].drop_nulls()[0]
    women = (images["gender"] == first).fill_null(False).to_numpy()
    kind, bad = (prompts["concept"] == "kind").to_numpy(), (prompts["level"] == "negative").to_numpy()
    cells[np.ix_(women, kind)] += 0.2 * effect
    tones = images["skin_tone"].cast(pl.Float64).fill_null(0.0).to_numpy()
    cells[:, bad] += effect * 0.005 * tones[:, None]
    if mass is None:
        return ScoreMatrix("gras", images, prompts, ("score",), cells[:, :, None].astype(np.float32))
    layers = np.log(np.stack([mass * cells, mass * (1 - cells)], axis=2)).astype(np.float32)
    return ScoreMatrix("gras", images, prompts, ("log_p_yes", "log_p_no"), layers)


def gras_run_of(matrix: ScoreMatrix, model: str = "vlm", dataset: str = "gras") -> Run:
    """Its rows, by the study's own measures."""
    rows = GRAS.measures.functions[0]({"gras": matrix}, MeasureOptions(permutations=6, shuffles=399))
    made = record(model, dataset=dataset)
    made.studies = ["gras"]
    return Run(results_table(rows, study="gras", model=model, dataset=dataset), made)


@pytest.fixture(scope="session")
def gras_full() -> Run:
    """A full run: 600 images, 500 questions, 20,000 rows. Read, never changed."""
    return gras_run_of(gras_matrix(gras_images(), mass=0.95))


@pytest.fixture
def gras_run(gras_full: Run) -> Run:
    """The same, to change at will."""
    return Run(gras_full.results, record("vlm", dataset="gras"))


@pytest.fixture
def gras_hostile() -> Run:
    """Group names that would do harm if they were not shown as text."""
    images = gras_images(140, 0, race=(HOSTILE, "[red]b[/red]", "</script><img src=x onerror=alert(2)>"))
    return gras_run_of(gras_matrix(images), model=HOSTILE)


@pytest.fixture
def make() -> SimpleNamespace:
    """What tests build single rows with."""
    return SimpleNamespace(
        share=share,
        ratio=ratio,
        association=association_rows,
        bias=bias_rows,
        identity=identity_rows,
        apa=apa_results,
        record=record,
        run=run_of,
        hostile=HOSTILE,
        gras=gras_run_of,
        gras_matrix=gras_matrix,
        gras_images=gras_images,
    )


def run_of(*rows: Row, dataset: str = "apa", model: str = "clip") -> Run:
    """A run that holds these rows."""
    return Run(results_table(rows, study="apa", model=model, dataset=dataset), record(model, dataset=dataset))
