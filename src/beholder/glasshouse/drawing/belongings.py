"""Things worn or held: hat, glasses, tie, handbag, phone. Each is in frame with every outfit."""

from __future__ import annotations

from beholder.glasshouse.drawing.canvas import Canvas, Colour, centred, darker, mix, shape
from beholder.glasshouse.drawing.face import EYE_Y, Head
from beholder.glasshouse.drawing.light import HEAD_Y, cloth_field
from beholder.glasshouse.drawing.outfits import draw_shirt


def draw_hat(canvas: Canvas, head: Head) -> None:
    """A soft felt hat with a brim and a ribbon."""
    w, x, base = head.width, head.hat_x, HEAD_Y - 0.62 * head.height
    felt = (124, 60, 96)
    paint = cloth_field(felt, head.person.light)
    crown = centred("-1.04,0.01 -0.98,-0.10 -0.62,-0.185 0,-0.165", w, x, base)
    crown += [(2 * x - a, b) for a, b in reversed(crown[:3])]
    canvas.blob([*crown, (x, base + 0.02)], paint)
    canvas.stroke([(x, base - 0.165), (x + 0.01, base - 0.12)], 0.012, darker(felt, 0.7), 0.7)
    canvas.stroke(centred("-1.02,-0.030 0,-0.012 1.02,-0.030", w, x, base), 0.042, (232, 206, 160), taper=0)
    brim = centred("-1.75,-0.018 -1,0.028 0,0.042 1,0.028 1.75,-0.018", w, x, base)
    canvas.stroke(brim, 0.050, darker(felt, 0.78), taper=0.75)


def draw_glasses(canvas: Canvas, head: Head) -> None:
    """Round dark frames with a little glare."""
    frame, gap = (40, 42, 52), head.person.face.eye_gap
    y = EYE_Y + 0.02
    for side in (-1, 1):
        _, cy = head.at(side * gap, y)
        inner, outer = head.at(side * (gap - 0.33), y)[0], head.at(side * (gap + 0.33), y)[0]
        wide, tall = abs(outer - inner) / 2, 0.215 * head.height
        cx = (inner + outer) / 2
        canvas.oval(cx, cy, wide, tall, (226, 240, 246), 0.09)
        draw_rim(canvas, cx, cy, wide, tall, frame)
        glare = [(cx - wide * 0.5, cy - tall * 0.1), (cx - wide * 0.1, cy - tall * 0.6)]
        canvas.stroke(glare, 0.006, (255, 255, 255), 0.5)
        canvas.stroke([head.at(side * (gap + 0.32), y - 0.04), head.at(side * 1.0, y - 0.05)], 0.009, frame, taper=0)
    bridge = [head.at(-gap + 0.31, y - 0.03), head.at(0, y - 0.075, 0.1), head.at(gap - 0.31, y - 0.03)]
    canvas.stroke(bridge, 0.009, frame, taper=0)


def draw_rim(canvas: Canvas, x: float, y: float, wide: float, tall: float, colour: Colour) -> None:
    """The ring of one lens."""
    width = canvas.width
    box = [round((x - wide) * width), round((y - tall) * width), round((x + wide) * width), round((y + tall) * width)]
    canvas.draw.ellipse(box, outline=colour, width=max(1, round(0.0085 * width)))


def draw_tie(canvas: Canvas, head: Head) -> None:
    """A striped tie on a white collar."""
    draw_shirt(canvas, head, (236, 240, 244), 0.80)
    blue, gold = (40, 74, 138), (238, 190, 76)
    blade = [(0.487, 0.775), (0.513, 0.775), (0.541, 0.98), (0.541, 1.02), (0.459, 1.02), (0.459, 0.98)]
    canvas.polygon([(x + 0.006, y + 0.004) for x, y in blade], (20, 24, 34), 0.35)
    canvas.polygon(blade, cloth_field(blue, head.person.light))
    for y in (0.83, 0.885, 0.94, 0.995):
        half = 0.013 + (y - 0.775) * 0.128
        canvas.polygon(centred("-1,0.012 1,-0.016 1,0 -1,0.028", half, 0.5, y), gold)
    canvas.polygon([(0.474, 0.738), (0.526, 0.738), (0.516, 0.785), (0.484, 0.785)], mix(blue, (255, 255, 255), 0.12))


def draw_handbag(canvas: Canvas, head: Head) -> None:
    """A leather bag at the side, its strap over the shoulder."""
    leather = (176, 84, 44)
    s = head.person.face.shoulders
    strap = [(0.5 - s * 0.66, 0.748), (0.5 - s * 0.74, 0.82), (0.205, 0.90)]
    canvas.stroke(strap, 0.026, darker(leather, 0.7), taper=0)
    canvas.stroke([(x - 0.003, y) for x, y in strap], 0.006, mix(leather, (255, 230, 200), 0.4), 0.8, taper=0)
    bag = [(0.055, 0.865), (0.16, 0.852), (0.272, 0.865), (0.288, 0.96), (0.27, 1.04), (0.06, 1.04), (0.036, 0.96)]
    canvas.blob([(x + 0.006, y + 0.004) for x, y in bag], (40, 26, 20), 0.4)
    canvas.blob(bag, cloth_field(leather, head.person.light))
    canvas.polygon(shape("0.048,0.872 0.278,0.872 0.24,0.945 0.163,0.962 0.086,0.945"), darker(leather, 0.84))
    canvas.oval(0.163, 0.952, 0.019, 0.016, (240, 204, 110))


def draw_phone(canvas: Canvas, head: Head) -> None:
    """A phone held up in one hand."""
    light = head.person.light
    hand = cloth_field(head.person.skin, light)
    canvas.blob(shape("0.80,1.05 0.80,0.94 0.785,0.89 0.80,0.84 0.87,0.83 0.905,0.88 0.90,0.95 0.905,1.05"), hand)
    canvas.polygon(shape("0.765,0.975 0.93,0.975 0.95,1.04 0.745,1.04"), cloth_field((74, 82, 98), light))
    case = "0.792,0.70 0.898,0.70 0.905,0.707 0.905,0.893 0.898,0.90 0.792,0.90 0.785,0.893 0.785,0.707"
    canvas.polygon(shape(case), (26, 28, 36))
    canvas.polygon([(0.796, 0.717), (0.894, 0.717), (0.894, 0.883), (0.796, 0.883)], (94, 190, 214))
    canvas.polygon([(0.796, 0.717), (0.86, 0.717), (0.796, 0.81)], (176, 226, 238))
    for y in (0.805, 0.838, 0.871):
        canvas.stroke([(0.925, y + 0.014), (0.900, y), (0.878, y)], 0.027, hand, taper=0.35)
    canvas.stroke([(0.775, 0.90), (0.778, 0.865), (0.80, 0.845)], 0.030, hand, taper=0.4)
