"""Outfits of work, with their headwear. Each looks like no other."""

from PIL import Image

from beholder.glasshouse.anatomy import Head
from beholder.glasshouse.canvas import HEAD_Y, Canvas, Colour, Pairs, Points, centred, cloth_field, darker, mix, shape
from beholder.glasshouse.face import EYE_Y

WHITE: Colour = (245, 246, 247)


def mirrored(points: Pairs) -> Pairs:
    """The same points on the other side of the picture."""
    return [(1 - x, y) for x, y in points]


def torso(head: Head, collar: float = 0.0) -> Points:
    """Outline of shoulders and chest, open at the neck."""
    s, n = head.face.shoulders, head.face.neck
    left = [(0.5 - n * 1.12, 0.675 - collar), (0.5 - n * 1.7, 0.715)]
    left += centred("-0.80,0.758 -1.0,0.815 -1.07,0.90 -1.10,1.04 -0.9,1.2", s)
    return [(0.5, 0.735), *left, *reversed(mirrored(left))]


def draw_body(canvas: Canvas, head: Head, colour: Colour, collar: float = 0.0) -> Image.Image:
    """A torso in one colour with soft folds; returns the cloth's paint."""
    paint = cloth_field(colour, head.light)
    canvas.blob(torso(head, collar), paint)
    s = head.face.shoulders
    for x in (0.5 - s * 0.72, 0.5 + s * 0.72):
        bend = 0.02 if x < 0.5 else -0.02
        canvas.stroke([(x, 1.0), (x + bend * 0.4, 0.93), (x + bend, 0.87)], 0.008, darker(colour, 0.72), 0.5)
    return paint


def draw_plain(canvas: Canvas, head: Head) -> None:
    colour = head.jumper
    draw_body(canvas, head, colour)
    collar = centred("-1.3,0.690 -0.8,0.735 0,0.752 0.8,0.735 1.3,0.690", head.face.neck)
    canvas.stroke(collar, 0.022, darker(colour, 0.82), taper=0.15)


def draw_shirt(canvas: Canvas, head: Head, colour: Colour, depth: float) -> None:
    """A shirt front with two collar points, showing in a V that ends at `depth`."""
    n = head.face.neck
    front = centred("-1.2,0.675 -0.4,0.735 0,0.75 0.4,0.735 1.2,0.675 1.3,0.76", n)
    canvas.polygon([*front, (0.5, depth), (0.5 - n * 1.3, 0.76)], cloth_field(colour, head.light))
    left = [*centred("-1.1,0.662 -1.2,0.705 -0.62,0.775", n), (0.5 - 0.004, 0.742)]
    for side in (left, mirrored(left)):
        canvas.polygon(side, mix(colour, (255, 255, 255), 0.35))
        canvas.stroke(side[1:], 0.004, darker(colour, 0.7), taper=0.3)


def draw_doctor(canvas: Canvas, head: Head) -> None:
    draw_body(canvas, head, WHITE)
    draw_shirt(canvas, head, (142, 180, 206), 0.93)
    n = head.face.neck
    lapel = [*centred("-1.25,0.672 -2.0,0.74 -1.55,0.785 -1.7,0.80", n), (0.5, 0.955), (0.5 - n * 0.62, 0.76)]
    for side in (lapel, mirrored(lapel)):
        canvas.polygon([(x + 0.004, y + 0.007) for x, y in side], darker(WHITE, 0.66), 0.6)
        canvas.polygon(side, cloth_field(mix(WHITE, (255, 255, 255), 0.25), head.light))
    canvas.stroke([(0.5, 0.955), (0.5, 1.01)], 0.006, darker(WHITE, 0.72), taper=0)
    tube = [*centred("-1.35,0.668 -1.75,0.76 -1.2,0.87", n), (0.5 + 0.01, 0.90)]
    tube += centred("1.2,0.87 1.75,0.76 1.35,0.668", n)
    canvas.stroke(tube, 0.019, (46, 58, 72), taper=0)
    canvas.stroke([(x - 0.003, y - 0.003) for x, y in tube], 0.005, (110, 126, 142), 0.8, taper=0)
    canvas.stroke([(0.51, 0.90), (0.525, 0.925), (0.55, 0.935)], 0.017, (46, 58, 72), taper=0)
    for radius, shade in ((0.031, (84, 94, 106)), (0.026, (196, 204, 212)), (0.016, (226, 231, 236))):
        canvas.oval(0.57, 0.94, radius, radius, shade)


def draw_chef(canvas: Canvas, head: Head) -> None:
    draw_body(canvas, head, WHITE, 0.01)
    n = head.face.neck
    canvas.stroke([(0.5 - n * 1.2, 0.70), (0.44, 0.80), (0.43, 1.02)], 0.006, darker(WHITE, 0.74), taper=0)
    for x in (0.465, 0.575):
        for y in (0.82, 0.89, 0.96):
            canvas.oval(x + 0.002, y + 0.003, 0.0125, 0.0125, darker(WHITE, 0.7), 0.7)
            canvas.oval(x, y, 0.0115, 0.0115, (52, 56, 66))
    scarf = centred("-1.4,0.672 0,0.742 1.4,0.672 1.5,0.712 0,0.79 -1.5,0.712", n)
    canvas.blob(scarf, cloth_field((190, 58, 56), head.light))
    canvas.polygon([(0.49, 0.765), (0.465, 0.83), (0.5, 0.80), (0.53, 0.835), (0.51, 0.765)], (164, 44, 46))
    canvas.oval(0.5, 0.765, 0.019, 0.016, (204, 74, 70))


def draw_builder(canvas: Canvas, head: Head) -> None:
    draw_body(canvas, head, (110, 118, 126))
    s, n = head.face.shoulders, head.face.neck
    vest = cloth_field((244, 124, 44), head.light)
    left = [(0.5 - n * 1.35, 0.69), *centred("-0.70,0.748 -0.74,0.86 -0.80,1.02", s), (0.493, 1.02), (0.493, 0.90)]
    band = centred("-0.52,0.722 -0.46,0.86 -0.46,1.02", s)
    for side, stripe in ((left, band), (mirrored(left), mirrored(band))):
        canvas.polygon(side, vest)
        canvas.stroke(stripe, 0.046, (232, 236, 120), taper=0)
        canvas.stroke(stripe, 0.024, (226, 230, 232), taper=0)
    for x in (0.5 - s * 0.79, 0.507):
        band = [(x, 0.93), (x + s * 0.79 - 0.007, 0.93)]
        canvas.stroke(band, 0.050, (232, 236, 120), taper=0)
        canvas.stroke(band, 0.026, (226, 230, 232), taper=0)


def draw_judge(canvas: Canvas, head: Head) -> None:
    draw_body(canvas, head, (46, 42, 52))
    n = head.face.neck
    for side in (-1, 1):
        trim = [(0.5 + side * n * 1.3, 0.685), (0.5 + side * 0.065, 0.80), (0.5 + side * 0.055, 1.02)]
        canvas.stroke(trim, 0.030, (122, 36, 52), taper=0)
        for fold in (0.13, 0.2):
            crease = [(0.5 + side * fold, 0.80), (0.5 + side * (fold + 0.02), 1.02)]
            canvas.stroke(crease, 0.007, (80, 74, 90), 0.8, taper=0.3)
    canvas.stroke(centred("-1.25,0.68 0,0.742 1.25,0.68", n), 0.036, WHITE, taper=0.1)
    for side in (-1, 1):
        canvas.polygon(centred("0,0.735 0.030,0.745 0.046,0.87 0.006,0.875", side), cloth_field(WHITE, head.light))
    canvas.stroke([(0.5, 0.745), (0.5, 0.87)], 0.004, (168, 172, 178), taper=0)


def draw_toque(canvas: Canvas, head: Head) -> None:
    w, x, base = head.width, head.hat_x, HEAD_Y - 0.70 * head.height
    paint = cloth_field((250, 250, 249), head.light)
    top = centred("-1.0,-0.06 -1.28,-0.125 -0.85,-0.20 -0.3,-0.215", w, x, base)
    right = [(2 * x - a, b) for a, b in reversed(top)]
    canvas.blob([(a, b + 0.006) for a, b in [*top, *right]], (176, 190, 196), 0.7)
    canvas.blob([*top, *right, (x, base - 0.04)], paint)
    for dx in (-0.6, -0.2, 0.2, 0.6):
        canvas.stroke([(x + dx * w, base - 0.06), (x + dx * w * 1.15, base - 0.14)], 0.006, (196, 202, 206), 0.9)
    low = centred("1.07,0.015 0,0.045 -1.07,0.015", w, x, base)
    canvas.polygon([*centred("-1.04,-0.065 0,-0.045 1.04,-0.065", w, x, base), *low], paint)
    canvas.stroke(low, 0.006, (168, 176, 182), taper=0.2)


def draw_hard_hat(canvas: Canvas, head: Head) -> None:
    w, x, base = head.width, head.hat_x, HEAD_Y - 0.62 * head.height
    yellow = (246, 196, 52)
    dome = centred("-1.13,0 -1.05,-0.10 -0.55,-0.165 0,-0.18", w, x, base)
    dome += [(2 * x - a, b) for a, b in reversed(dome[:3])]
    canvas.blob([*dome, (x, base + 0.03)], cloth_field(yellow, head.light))
    crest = centred("0,-0.185 0.006,-0.10 0,0", head.sine, x + 0.35 * w * head.sine, base)
    canvas.stroke(crest, 0.040, mix(yellow, (255, 255, 255), 0.3), taper=0.2)
    canvas.stroke(centred("-0.75,-0.12 -0.9,-0.06 -0.95,-0.01", w, x, base), 0.010, (255, 240, 180), 0.8)
    brim = centred("-1.24,0.012 -0.6,0.030 0,0.036 0.6,0.030 1.24,0.012", w, x, base)
    canvas.stroke(brim, 0.034, darker(yellow, 0.84), taper=0.35)


# Things worn or held


def draw_hat(canvas: Canvas, head: Head) -> None:
    w, x, base = head.width, head.hat_x, HEAD_Y - 0.62 * head.height
    felt = (124, 60, 96)
    paint = cloth_field(felt, head.light)
    crown = centred("-1.04,0.01 -0.98,-0.10 -0.62,-0.185 0,-0.165", w, x, base)
    crown += [(2 * x - a, b) for a, b in reversed(crown[:3])]
    canvas.blob([*crown, (x, base + 0.02)], paint)
    canvas.stroke([(x, base - 0.165), (x + 0.01, base - 0.12)], 0.012, darker(felt, 0.7), 0.7)
    canvas.stroke(centred("-1.02,-0.030 0,-0.012 1.02,-0.030", w, x, base), 0.042, (232, 206, 160), taper=0)
    brim = centred("-1.75,-0.018 -1,0.028 0,0.042 1,0.028 1.75,-0.018", w, x, base)
    canvas.stroke(brim, 0.050, darker(felt, 0.78), taper=0.75)


def draw_glasses(canvas: Canvas, head: Head) -> None:
    frame, gap = (40, 42, 52), head.face.eye_gap
    y = EYE_Y + 0.02
    for side in (-1, 1):
        _, cy = head.at(side * gap, y)
        inner, outer = head.at(side * (gap - 0.33), y)[0], head.at(side * (gap + 0.33), y)[0]
        wide, tall = abs(outer - inner) / 2, 0.215 * head.height
        cx = (inner + outer) / 2
        canvas.oval(cx, cy, wide, tall, (226, 240, 246), 0.09)
        box = [round(edge * canvas.width) for edge in (cx - wide, cy - tall, cx + wide, cy + tall)]
        canvas.draw.ellipse(box, outline=frame, width=max(1, round(0.0085 * canvas.width)))
        glare = [(cx - wide * 0.5, cy - tall * 0.1), (cx - wide * 0.1, cy - tall * 0.6)]
        canvas.stroke(glare, 0.006, (255, 255, 255), 0.5)
        canvas.stroke([head.at(side * (gap + 0.32), y - 0.04), head.at(side * 1.0, y - 0.05)], 0.009, frame, taper=0)
    bridge = [head.at(-gap + 0.31, y - 0.03), head.at(0, y - 0.075, 0.1), head.at(gap - 0.31, y - 0.03)]
    canvas.stroke(bridge, 0.009, frame, taper=0)


def draw_tie(canvas: Canvas, head: Head) -> None:
    draw_shirt(canvas, head, (236, 240, 244), 0.80)
    blue, gold = (40, 74, 138), (238, 190, 76)
    blade = [(0.487, 0.775), (0.513, 0.775), (0.541, 0.98), (0.541, 1.02), (0.459, 1.02), (0.459, 0.98)]
    canvas.polygon([(x + 0.006, y + 0.004) for x, y in blade], (20, 24, 34), 0.35)
    canvas.polygon(blade, cloth_field(blue, head.light))
    for y in (0.83, 0.885, 0.94, 0.995):
        half = 0.013 + (y - 0.775) * 0.128
        canvas.polygon(centred("-1,0.012 1,-0.016 1,0 -1,0.028", half, 0.5, y), gold)
    canvas.polygon([(0.474, 0.738), (0.526, 0.738), (0.516, 0.785), (0.484, 0.785)], mix(blue, (255, 255, 255), 0.12))


def draw_handbag(canvas: Canvas, head: Head) -> None:
    leather = (176, 84, 44)
    s = head.face.shoulders
    strap = [(0.5 - s * 0.66, 0.748), (0.5 - s * 0.74, 0.82), (0.205, 0.90)]
    canvas.stroke(strap, 0.026, darker(leather, 0.7), taper=0)
    canvas.stroke([(x - 0.003, y) for x, y in strap], 0.006, mix(leather, (255, 230, 200), 0.4), 0.8, taper=0)
    bag = [(0.055, 0.865), (0.16, 0.852), (0.272, 0.865), (0.288, 0.96), (0.27, 1.04), (0.06, 1.04), (0.036, 0.96)]
    canvas.blob([(x + 0.006, y + 0.004) for x, y in bag], (40, 26, 20), 0.4)
    canvas.blob(bag, cloth_field(leather, head.light))
    canvas.polygon(shape("0.048,0.872 0.278,0.872 0.24,0.945 0.163,0.962 0.086,0.945"), darker(leather, 0.84))
    canvas.oval(0.163, 0.952, 0.019, 0.016, (240, 204, 110))


def draw_phone(canvas: Canvas, head: Head) -> None:
    light = head.light
    hand = cloth_field(head.skin, light)
    canvas.blob(shape("0.80,1.05 0.80,0.94 0.785,0.89 0.80,0.84 0.87,0.83 0.905,0.88 0.90,0.95 0.905,1.05"), hand)
    canvas.polygon(shape("0.765,0.975 0.93,0.975 0.95,1.04 0.745,1.04"), cloth_field((74, 82, 98), light))
    case = "0.792,0.70 0.898,0.70 0.905,0.707 0.905,0.893 0.898,0.90 0.792,0.90 0.785,0.893 0.785,0.707"
    canvas.polygon(shape(case), (26, 28, 36))
    canvas.polygon([(0.796, 0.717), (0.894, 0.717), (0.894, 0.883), (0.796, 0.883)], (94, 190, 214))
    canvas.polygon([(0.796, 0.717), (0.86, 0.717), (0.796, 0.81)], (176, 226, 238))
    for y in (0.805, 0.838, 0.871):
        canvas.stroke([(0.925, y + 0.014), (0.900, y), (0.878, y)], 0.027, hand, taper=0.35)
    canvas.stroke([(0.775, 0.90), (0.778, 0.865), (0.80, 0.845)], 0.030, hand, taper=0.4)


# Wardrobe

HEADWEAR = {"chef": draw_toque, "builder": draw_hard_hat}
OUTFITS = {"plain": draw_plain, "doctor": draw_doctor, "chef": draw_chef, "builder": draw_builder, "judge": draw_judge}
WORN_OVER_CLOTHES = {"tie": draw_tie, "handbag": draw_handbag, "phone": draw_phone}
WORN = ("hat", "glasses", "tie", "handbag", "phone")
