"""Wardrobe: dresses a person in an outfit and in what is worn over it, in the right order."""

from __future__ import annotations

from beholder.glasshouse.drawing.belongings import draw_glasses, draw_handbag, draw_hat, draw_phone, draw_tie
from beholder.glasshouse.drawing.canvas import Canvas
from beholder.glasshouse.drawing.face import Head
from beholder.glasshouse.drawing.outfits import (
    draw_builder,
    draw_chef,
    draw_doctor,
    draw_hard_hat,
    draw_judge,
    draw_plain,
    draw_toque,
)

HEADWEAR = {"chef": draw_toque, "builder": draw_hard_hat}
OUTFITS = {"plain": draw_plain, "doctor": draw_doctor, "chef": draw_chef, "builder": draw_builder, "judge": draw_judge}
WORN_OVER_CLOTHES = {"tie": draw_tie, "handbag": draw_handbag, "phone": draw_phone}
WORN = ("hat", "glasses", "tie", "handbag", "phone")


def draw_clothes(canvas: Canvas, head: Head, outfit: str) -> None:
    """The outfit on the torso."""
    OUTFITS[outfit](canvas, head)


def draw_worn_over_clothes(canvas: Canvas, head: Head, worn: frozenset[str]) -> None:
    """Tie, handbag and phone."""
    for name, draw in WORN_OVER_CLOTHES.items():
        if name in worn:
            draw(canvas, head)


def draw_headwear(canvas: Canvas, head: Head, outfit: str, worn: frozenset[str]) -> None:
    """Glasses, then the hat; a worn hat replaces the outfit's own headwear."""
    if "glasses" in worn:
        draw_glasses(canvas, head)
    if "hat" in worn:
        draw_hat(canvas, head)
    elif outfit in HEADWEAR:
        HEADWEAR[outfit](canvas, head)
