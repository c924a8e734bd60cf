"""Belief in occupations for women and men: a dumbbell for every occupation of every model and pool, in one chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import altair as alt
import polars as pl

from beholder.chapter.chart_parts import Layers, Rows, chart, percent_axis, plain, tooltip
from beholder.chapter.chart_style import GROUP_COLOURS, GROUP_SHAPES
from beholder.chapter.figure import Figure, sentence
from beholder.chapter.numbers import Result, percent
from beholder.chapter.phrases import plural
from beholder.chapter.queries import by_model
from beholder.chapter.table import rows_of
from beholder.studies.public_figures.gender_findings import told_apart
from beholder.studies.public_figures.levels import GROUPS
from beholder.studies.public_figures.phrases import correct_occupation, either_word
from beholder.studies.public_figures.queries import found as found_difference
from beholder.studies.public_figures.queries import found_ratios

NAME = "women-and-men"
FAINT = 0.01
"""An occupation with less belief for women and for men is not drawn, unless it is right."""
MOST = 24
"""So many occupations are drawn at most; among several models and pools each has an equal part, but at least two."""
ROW = 28
"""Height of one occupation in pixels: two lanes."""


class Pair(NamedTuple):
    """One occupation: how much belief it gets for women and for men."""

    women: Result
    men: Result
    right: bool
    shown: bool

    @property
    def gap(self) -> float:
        """Women minus men."""
        return float(self.women["value"] - self.men["value"])

    @property
    def faint(self) -> bool:
        """Whether it may be left out."""
        return max(self.women["value"], self.men["value"]) < FAINT and not self.right


class Block(NamedTuple):
    """The occupations offered for one pool to one model."""

    model: str
    pool: str
    pairs: list[Pair]

    @property
    def visible(self) -> list[Pair]:
        """The pairs with enough belief to be seen; all of them where none has."""
        return [pair for pair in self.pairs if not pair.faint] or self.pairs

    def drawn(self, most: int) -> list[Pair]:
        """The right occupation, then the widest gaps, those first that were found; from women's side to men's."""
        ranked = sorted(self.visible, key=lambda pair: (not pair.right, not pair.shown, -abs(pair.gap)))
        return sorted(ranked[:most], key=lambda pair: -pair.gap)


def occupation_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """All models and pools in one chart; two words for one occupation, such as actor and actress, are one."""
    found = list(blocks(results))
    if not found:
        return
    most = max(2, MOST // len(found))
    left_out = sum(len(block.pairs) - len(block.drawn(most)) for block in found)
    others = f" {left_out} other {'occupation is' if left_out == 1 else 'occupations are'} in the table only."
    read = "A strong band means that a difference was found; the right occupation is set bold."
    yield Figure(
        NAME,
        occupation_title(found),
        "Mean share of belief on each occupation, for women (circles) and men (squares), with 95 % intervals, sorted "
        f"by women − men. {read}{others if left_out else ''}",
        dumbbells(found, most),
        "gender",
        wide=True,
    )


def blocks(results: pl.DataFrame) -> Iterator[Block]:
    """Every model and pool with what was measured for both women and men."""
    for model, part in by_model(results):
        different = {row["subset"] for row in found_ratios(part)}
        gaps = {
            (row["subset"], row["concept"]): row for row in rows_of(part, "occupation_gap") if found_difference(row)
        }
        sides: dict[str, dict[str, dict[str, Result]]] = {}
        for row in merged_occupations(part):
            sides.setdefault(row["subset"], {}).setdefault(row["concept"], {})[row["group"]] = row
        for pool, occupations in sides.items():
            answers = {correct_occupation(pool, group) for group in GROUPS}
            # Where the right word depends on the gender, only both words together are right for women and men.
            right = answers if len(answers) == 1 else set(map(either_word, answers))
            pairs = []
            for concept, both in occupations.items():
                if set(both) >= set(GROUPS):
                    women, men = (both[group] for group in GROUPS)
                    is_right, gap = concept in right, gaps.get((pool, concept))
                    # Gaps are taken within branches: one that points the other way is not what the marks show.
                    same_way = gap is not None and gap["value"] * (women["value"] - men["value"]) > 0
                    pairs.append(Pair(women, men, is_right, pool in different if is_right else same_way))
            if pairs:
                yield Block(model, pool, pairs)


def merged_occupations(results: pl.DataFrame) -> Rows:
    """Every occupation by group, with one row for both words of a pair where the run has it."""
    rows = [row for row in rows_of(results, "occupation_probability") if row["value"] is not None]
    merged = [row for row in rows_of(results, "either_word_probability") if row["value"] is not None]
    there = {(row["model"], row["subset"], row["concept"]) for row in merged}
    kept = [row for row in rows if (row["model"], row["subset"], either_word(row["concept"])) not in there]
    return [*kept, *merged]


def occupation_title(found: list[Block]) -> str:
    """The widest difference that was found; where none was, the widest."""
    pairs = [(block, pair) for block in found for pair in block.visible]
    away = [each for each in pairs if each[1].shown]
    block, widest = max(away or pairs, key=lambda each: abs(each[1].gap))
    first = "widest gap that was found:" if away else "widest gap (none was found):"
    women, men = told_apart(widest.women, widest.men)
    seen = f"{first} “{widest.women['concept']}” for {block.pool}, women {women}, men {men}"
    return sentence(f"{block.model}, " if _several(found) else "", seen)


def _several(found: list[Block]) -> bool:
    return len({block.model for block in found}) > 1


def dumbbells(found: list[Block], most: int) -> Layers:
    """Occupations down under the heading of their pool; women in the upper lane, men in the lower one."""
    keys, headings, bands, marks = [], [], [], []
    for number, block in enumerate(found):
        heading = f"{block.model}, {block.pool}" if _several(found) else f"{block.pool} ({_sizes(block)})"
        keys.append(f"{number}|")
        headings.append({"row": keys[-1], "heading": heading})
        for place, pair in enumerate(block.drawn(most)):
            # The number keeps rows of several pools apart; the axis leaves it out. “=” marks the right occupation.
            keys.append(f"{number}{'=' if pair.right else ''}|{pair.women['concept']}")
            bands.append({"row": keys[-1], "from": pair.women["value"], "to": pair.men["value"], "shown": pair.shown})
            for row in (pair.women, pair.men):
                group, end = plural(row["group"]), max(row["value"], row["high"] or 0.0)
                label = f"{group if place == 0 else ''} {percent(row['value'])}".strip()
                marks.append({**plain(row), "row": keys[-1], "group": group, "end": end, "label": label})
    names = [plural(group) for group in GROUPS]
    axis = alt.Axis(
        labelExpr="slice(datum.label, indexof(datum.label, '|') + 1)",
        labelFontWeight=alt.condition(r"test(/^\d+=/, datum.value)", alt.value("bold"), alt.value("normal")),
        labelPadding=7,
        ticks=False,
        domain=False,
        title=None,
    )
    y = alt.Y("row:N", sort=None, scale=alt.Scale(domain=keys, paddingInner=0.1, paddingOuter=0), axis=axis)
    furthest = max(mark["end"] for mark in marks)
    x = alt.X(
        "value:Q", title="share of belief", scale=alt.Scale(domain=[0, 1.12 * furthest or 1]), axis=percent_axis()
    )
    colour = alt.Color("group:N", scale=alt.Scale(domain=names, range=list(GROUP_COLOURS.values())), legend=None)
    shape = alt.Shape("group:N", scale=alt.Scale(domain=names, range=list(GROUP_SHAPES.values())), legend=None)
    base = chart(marks).encode(y=y, yOffset=alt.YOffset("group:N", sort=names, scale=alt.Scale(domain=names)))
    band = chart(bands).mark_bar(height=3, color="currentColor")
    strength = alt.condition("datum.shown", alt.value(0.55), alt.value(0.16))
    return alt.layer(
        band.encode(x="from:Q", x2="to:Q", y=y, opacity=strength),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, color=colour, shape=shape, tooltip=tooltip("model", "subset", "concept", "group")
        ),
        base.mark_text(align="left", dx=7, fontSize=11, color="currentColor").encode(x="end:Q", text="label:N"),
        chart(headings)
        .mark_text(align="left", dx=4, fontSize=12, fontWeight="bold", color="currentColor")
        .encode(y=y, x=alt.value(0), text="heading:N"),
    ).properties(height=ROW * len(keys))


def _sizes(block: Block) -> str:
    first = block.pairs[0]
    return ", ".join(f"{row['n']} {plural(row['group'])}" for row in (first.women, first.men))
