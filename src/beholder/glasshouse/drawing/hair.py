"""Hair: what falls behind the head, and what frames the face."""

from __future__ import annotations

import numpy as np
from PIL import Image

from beholder.glasshouse.drawing.anatomy import Hair
from beholder.glasshouse.drawing.canvas import Canvas, Colour, Floats, Pairs, centred, closed_curve, darker, mix
from beholder.glasshouse.drawing.face import Head
from beholder.glasshouse.drawing.light import HEAD_X, HEAD_Y, hair_field

HIDES_EARS = frozenset({"long", "wavy", "bob", "medium", "curly"})


def hair_paint(head: Head) -> Image.Image:
    """The field of colour of this person's hair."""
    hair = head.person.hair
    colour = mix(hair.colour, head.person.skin, 0.35) if hair.style == "buzz" else hair.colour
    return hair_field(colour, head.person.light)


def draw_back_hair(canvas: Canvas, head: Head, paint: Image.Image, *, covered: bool) -> None:
    """Hair behind head and neck; `covered` leaves room for a hat."""
    hair, style = head.person.hair, head.person.hair.style
    shift = -0.25 * head.width * head.sine
    if style in ("long", "wavy"):
        canvas.polygon(fall(head, 0.74 + 0.12 * hair.length, 1.22 + 0.10 * hair.volume, shift), paint)
    elif style in ("bob", "medium"):
        low = 0.60 + 0.07 * hair.length if style == "bob" else 0.65
        canvas.polygon(fall(head, low, 1.16 + 0.10 * hair.volume, shift), paint)
    elif style == "curly":
        grow = 1.28 + 0.10 * hair.volume
        middle, tall = (HEAD_Y + 0.03, 0.95) if covered else (HEAD_Y - 0.03, grow * 0.96)
        curls = cloud(HEAD_X + shift, middle, head.width * grow * 1.08, head.height * tall)
        canvas.polygon(curls, paint)
    elif style == "balding":
        canvas.oval(HEAD_X + shift * 0.4, HEAD_Y - 0.06 * head.height, head.width * 1.03, head.height * 0.34, paint)
    elif style == "bun" and not covered:
        canvas.oval(HEAD_X + shift * 1.6, HEAD_Y - head.height * 1.13, 0.060 + 0.008 * hair.volume, 0.052, paint)


def fall(head: Head, low: float, wide: float, shift: float) -> Floats:
    """Hair falling from the crown to `low`, straight or in waves."""
    hair, w = head.person.hair, head.width
    wave = 0.016 if hair.style == "wavy" else 0.003
    steps = np.linspace(0, 1, 7)
    y = HEAD_Y - 0.35 * head.height + steps * (low - HEAD_Y + 0.35 * head.height)
    x = w * wide * (0.98 + 0.10 * np.sin(np.pi * steps * 0.8)) + wave * np.sin(steps * 13 + 6 * hair.parting)
    x[-1] -= 0.018
    right = np.stack([HEAD_X + shift + x, y], axis=1)
    left = np.stack([HEAD_X + shift - x, y], axis=1)[::-1]
    crown = centred("-0.72,0 0.72,0", w, HEAD_X, HEAD_Y - 0.92 * head.height)
    return closed_curve(np.concatenate([crown, right, left]))


def cloud(x: float, y: float, width: float, height: float, bumps: int = 15) -> Floats:
    """A round mass of curls: an ellipse with a scalloped edge."""
    angle = np.linspace(0, 2 * np.pi, bumps * 6, endpoint=False)
    radius = 1 + 0.045 * np.abs(np.sin(angle * bumps / 2))
    return np.stack([x + width * radius * np.cos(angle), y + height * radius * np.sin(angle)], axis=1)


def crown_arc(head: Head, *, wide: float, top: float, low: float, bumps: bool) -> Pairs:
    """The outer edge of the hair from the left temple over the crown to the right temple."""
    angle = np.linspace(np.pi + low, 2 * np.pi - low, 40 if bumps else 11)
    radius = 1 + 0.05 * np.abs(np.sin(angle * 8)) if bumps else np.ones_like(angle)
    lift = np.maximum(0, -np.sin(angle)) ** 0.8
    lean = -0.06 * head.width * head.sine
    x = HEAD_X + lean + head.width * wide * radius * np.sign(np.cos(angle)) * np.abs(np.cos(angle)) ** 0.84
    y = HEAD_Y - 0.05 * head.height - head.height * (top - 0.05) * radius * lift
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def hairline(head: Head, hair: Hair) -> Pairs:
    """The edge of the hair on the forehead, from the right temple to the left one, by style."""
    high = -hair.hairline
    if hair.style in ("crop", "buzz", "short_curls"):
        edge = [(0.90, -0.20), (0.80, high + 0.12), (0.42, high - 0.02), (0.0, high + 0.0)]
        return head.path([*edge, (-0.42, high - 0.02), (-0.80, high + 0.12), (-0.90, -0.20)])
    part = 0.45 if hair.parting >= 0 else -0.45
    low_side = 0.10 if hair.style in HIDES_EARS else -0.22
    right = [(0.92, low_side), (0.82, -0.38), (0.50, high + 0.06)]
    edge = [*right, (0.0, high), *[(-x, y) for x, y in reversed(right)]]
    drop = [0.0, 0.03, 0.10, 0.02, -0.16, -0.10, 0.0] if part > 0 else [0.0, -0.10, -0.16, 0.02, 0.10, 0.03, 0.0]
    return head.path([(x, y + d) for (x, y), d in zip(edge, drop, strict=True)])


def draw_front_hair(canvas: Canvas, head: Head, paint: Image.Image, *, covered: bool) -> None:
    """The cap of hair over the crown, with a few strands."""
    hair = head.person.hair
    if hair.style == "balding":
        draw_side_hair(canvas, head, paint)
        return
    bumps = hair.style in ("curly", "short_curls")
    top = {"buzz": 1.035, "parted": 1.15, "short_curls": 1.14, "curly": 1.14, "bun": 1.06}.get(hair.style, 1.10)
    top = 1.04 if covered else top + 0.035 * hair.volume * (hair.style != "buzz")
    wide = {"buzz": 1.02, "parted": 1.06, "crop": 1.05, "bun": 1.04}.get(hair.style, 1.10)
    arc = crown_arc(head, wide=wide, top=top, low=-0.25 if hair.style in HIDES_EARS else -0.12, bumps=bumps)
    edge = hairline(head, hair)
    canvas.polygon([*arc, *edge] if bumps else closed_curve([*arc, *edge]), paint)
    if hair.style in HIDES_EARS:
        draw_side_locks(canvas, head, paint, wide)
    if not bumps and hair.style != "buzz":
        draw_strands(canvas, arc, edge, hair.colour)


def draw_side_locks(canvas: Canvas, head: Head, paint: Image.Image, wide: float) -> None:
    """Locks that fall beside the cheeks and hide the ears."""
    hair = head.person.hair
    low = {"long": 0.71, "wavy": 0.71, "bob": 0.57 + 0.05 * hair.length, "medium": 0.62, "curly": 0.58}[hair.style]
    for side in (-1, 1):
        top = HEAD_X + side * head.width * wide * 0.98 - 0.06 * head.width * head.sine
        inner = head.at(side * 0.93, -0.30)[0] - side * 0.012
        swell = side * (0.02 + 0.012 * hair.volume)
        y = HEAD_Y + head.height * np.array([-0.50, 0.14, 0.60])
        shape = [(inner, y[0]), (inner + side * 0.030, y[1]), (inner + side * 0.014, y[2]), (inner + side * 0.034, low)]
        canvas.blob([*shape, (top + swell, low - 0.03), (top + swell, y[1] + 0.05), (top, y[0] + 0.03)], paint)


def draw_side_hair(canvas: Canvas, head: Head, paint: Image.Image) -> None:
    """Short hair at the temples of a bald head; we see less of it on the side turned away."""
    for side in (-1, 1):
        edge = HEAD_X + side * head.width * 1.01 + 0.05 * head.width * head.sine
        inner = edge - side * head.width * (0.12 - 0.16 * max(0.0, side * head.sine))
        high, middle, low = (HEAD_Y + head.height * y for y in (-0.40, -0.24, -0.02))
        shape = [(edge - side * 0.008, high), (inner, middle), (inner + side * 0.006, low), (edge, low), (edge, middle)]
        canvas.blob(shape, paint, 0.85)


def draw_strands(canvas: Canvas, arc: Pairs, edge: Pairs, colour: Colour) -> None:
    """A few lighter and darker strands between crown and hairline."""
    light, dark = mix(colour, (255, 236, 214), 0.22), darker(colour, 0.70)
    back = list(reversed(edge))
    for index, shade in ((2, dark), (3, light), (4, dark), (5, light), (7, dark), (8, light)):
        start, end = np.asarray(arc[index]), np.asarray(back[min(6, round(index * 6 / 10))])
        first, last = start + 0.18 * (end - start), start + 0.86 * (end - start)
        bend = (first + last) / 2 + np.array([0.010 if index > 5 else -0.010, -0.006])
        canvas.stroke(np.stack([first, bend, last]), 0.0055, shade, 0.45)
