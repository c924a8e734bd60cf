"""Things: simple pictures without people, in the same drawing style; distractors of the category level."""

from PIL import Image

from beholder.glasshouse.anatomy import Draws
from beholder.glasshouse.canvas import Canvas, Colour, Pairs, centred, cloth_field, darker, field, mix, shape


class Pencil:
    """Draws one thing: a canvas, a hand that shifts and sizes it, and the seed's own draws."""

    def __init__(self, canvas: Canvas, draws: Draws) -> None:
        self.canvas, self.draws = canvas, draws
        self.size = draws.around("size", 1.0, 0.16)
        self.x, self.y = draws.around("x", 0.0, 0.06), draws.around("y", 0.0, 0.05)
        self.flip = -1.0 if draws.uniform("flip") < 0.5 else 1.0
        self.light = draws.around("light", 0.0, 1.0)

    def colour(self, *options: Colour) -> Colour:
        return mix(self.draws.pick("colour", options), (128, 110, 90), 0.25 * self.draws.uniform("tint"))

    def placed(self, points: Pairs) -> Pairs:
        k = self.size
        return [(0.5 + self.x + self.flip * k * (x - 0.5), 0.55 + self.y + k * (y - 0.55)) for x, y in points]

    def blob(self, points: Pairs, colour: Colour) -> None:
        self.canvas.blob(self.placed(points), cloth_field(colour, self.light))

    def box(self, points: Pairs, colour: Colour) -> None:
        self.canvas.polygon(self.placed(points), cloth_field(colour, self.light))

    def line(self, points: Pairs, width: float, colour: Colour, taper: float = 0.0) -> None:
        self.canvas.stroke(self.placed(points), width * self.size, colour, taper=taper)

    def dot(self, x: float, y: float, wide: float, tall: float, colour: Colour, alpha: float = 1.0) -> None:
        ((px, py),) = self.placed([(x, y)])
        self.canvas.oval(px, py, wide * self.size, tall * self.size, colour, alpha)

    def ground_shadow(self, y: float, wide: float) -> None:
        self.dot(0.5, y, wide, 0.025, (96, 110, 112), 0.35)


def draw_dog(pencil: Pencil) -> None:
    coat = pencil.colour((176, 124, 72), (92, 70, 58), (206, 178, 140), (70, 66, 70))
    ear, muzzle = darker(coat, 0.72), mix(coat, (255, 248, 236), 0.55)
    pencil.blob([(0.34, 1.05), (0.35, 0.78), (0.5, 0.66), (0.65, 0.78), (0.66, 1.05)], coat)
    pencil.blob([(0.44, 1.05), (0.44, 0.84), (0.5, 0.76), (0.56, 0.84), (0.56, 1.05)], muzzle)
    pencil.blob(shape("0.5,0.24 0.64,0.29 0.68,0.45 0.62,0.62 0.5,0.70 0.38,0.62 0.32,0.45 0.36,0.29"), coat)
    for s in (-1, 1):
        pencil.blob(centred("0.12,0.26 0.22,0.28 0.26,0.48 0.21,0.58 0.165,0.42", s), ear)
        pencil.dot(0.5 + s * 0.075, 0.43, 0.024, 0.026, (40, 28, 24))
        pencil.dot(0.5 + s * 0.075 + 0.008, 0.42, 0.007, 0.007, (255, 255, 255))
    pencil.blob([(0.5, 0.44), (0.575, 0.53), (0.575, 0.62), (0.5, 0.67), (0.425, 0.62), (0.425, 0.53)], muzzle)
    pencil.blob([(0.46, 0.515), (0.54, 0.515), (0.52, 0.56), (0.48, 0.56)], (44, 34, 34))
    pencil.line([(0.5, 0.56), (0.5, 0.60)], 0.008, (70, 48, 44))
    pencil.line([(0.45, 0.605), (0.475, 0.625), (0.5, 0.60), (0.525, 0.625), (0.55, 0.605)], 0.009, (70, 48, 44))
    pencil.blob([(0.485, 0.625), (0.515, 0.625), (0.512, 0.665), (0.488, 0.665)], (214, 112, 118))


def draw_giraffe(pencil: Pencil) -> None:
    coat, patch = pencil.colour((234, 194, 116), (224, 180, 104), (240, 206, 140)), (158, 98, 54)
    pencil.blob(shape("0.36,1.06 0.42,0.72 0.45,0.42 0.54,0.36 0.60,0.46 0.62,0.74 0.70,1.06"), coat)
    spots = shape("0.47,0.56 0.55,0.52 0.50,0.66 0.58,0.64 0.45,0.78 0.54,0.77 0.62,0.79 0.46,0.91 0.57,0.90")
    for i, (x, y) in enumerate(spots):
        r = 0.026 + 0.012 * pencil.draws.uniform(f"spot{i}")
        spot = shape("-1,0 -0.4,-1.2 1,-0.6 0.8,1 -0.5,1")
        pencil.blob([(x + r * across, y + r * down) for across, down in spot], patch)
    for x in (0.48, 0.55):
        pencil.line([(x, 0.28), (x + 0.004, 0.17)], 0.020, darker(coat, 0.82))
        pencil.dot(x + 0.004, 0.16, 0.018, 0.018, (92, 60, 42))
    pencil.blob([(0.60, 0.26), (0.70, 0.23), (0.71, 0.28), (0.61, 0.31)], darker(coat, 0.9))
    pencil.blob(shape("0.45,0.24 0.56,0.22 0.62,0.30 0.58,0.40 0.46,0.47 0.30,0.49 0.27,0.43 0.36,0.34"), coat)
    pencil.blob([(0.26, 0.44), (0.33, 0.38), (0.38, 0.44), (0.36, 0.495), (0.29, 0.50)], mix(coat, (110, 74, 56), 0.4))
    pencil.dot(0.305, 0.43, 0.009, 0.007, (78, 50, 42))
    pencil.dot(0.475, 0.31, 0.021, 0.023, (42, 30, 26))
    pencil.dot(0.480, 0.302, 0.007, 0.007, (255, 255, 255))
    pencil.line([(0.29, 0.475), (0.34, 0.475), (0.38, 0.46)], 0.007, (110, 74, 56), 0.5)


def draw_plant(pencil: Pencil) -> None:
    green = pencil.colour((84, 146, 92), (104, 158, 84), (66, 128, 106))
    pencil.ground_shadow(0.91, 0.2)
    for i, angle in enumerate((-0.30, -0.19, -0.08, 0.06, 0.18, 0.29)):
        x, y = 0.5 + angle, 0.20 + 0.16 * abs(angle) / 0.3 + 0.06 * pencil.draws.uniform(f"leaf{i}")
        leaf = [(0.5, 0.70), (0.5 + angle * 0.45 - 0.05, 0.48), (x, y), (0.5 + angle * 0.75 + 0.05, 0.46)]
        pencil.blob(leaf, darker(green, 0.80 + 0.08 * (i % 3)))
        vein = [(0.5, 0.69), (0.5 + angle * 0.6, 0.47), (x, y + 0.03)]
        pencil.line(vein, 0.006, mix(green, (230, 240, 200), 0.45), 0.5)
    pot = darker((206, 120, 82), 0.85 + 0.2 * pencil.draws.uniform("pot"))
    pencil.box([(0.36, 0.68), (0.64, 0.68), (0.60, 0.91), (0.40, 0.91)], pot)
    pencil.box([(0.345, 0.645), (0.655, 0.645), (0.65, 0.705), (0.35, 0.705)], mix(pot, (255, 240, 220), 0.15))


def draw_tree(pencil: Pencil) -> None:
    green = pencil.colour((92, 142, 84), (70, 122, 80), (196, 142, 70), (124, 152, 72))
    pencil.canvas.oval(0.5, 1.06, 0.75, 0.2, field((150, 178, 124)))
    pencil.blob([(0.45, 0.95), (0.475, 0.78), (0.46, 0.58), (0.54, 0.58), (0.53, 0.78), (0.56, 0.95)], (122, 88, 64))
    pencil.line([(0.5, 0.70), (0.58, 0.60), (0.62, 0.52)], 0.030, (122, 88, 64), 0.3)
    balls = shape("0.36,0.48 0.64,0.47 0.43,0.33 0.58,0.32 0.5,0.45 0.5,0.24")
    for i, ((x, y), r) in enumerate(zip(balls, (0.15, 0.15, 0.15, 0.15, 0.17, 0.11), strict=True)):
        r *= 0.9 + 0.2 * pencil.draws.uniform(f"ball{i}")
        pencil.dot(x, y + 0.012, r, r * 0.9, darker(green, 0.82))
        pencil.dot(x - 0.01, y - 0.012, r * 0.9, r * 0.8, mix(green, (240, 244, 190), 0.06 * (i % 3)))


def draw_bed(pencil: Pencil) -> None:
    wood = pencil.colour((150, 106, 72), (112, 80, 62), (188, 150, 108))
    cover = pencil.draws.pick("cover", ((112, 142, 178), (186, 116, 112), (126, 160, 138), (166, 142, 180)))
    pencil.ground_shadow(0.93, 0.42)
    pencil.blob([(0.12, 0.74), (0.13, 0.40), (0.3, 0.31), (0.5, 0.29), (0.7, 0.31), (0.87, 0.40), (0.88, 0.74)], wood)
    pencil.box([(0.17, 0.52), (0.83, 0.52), (0.90, 0.80), (0.10, 0.80)], (244, 243, 238))
    for x in (0.33, 0.67):
        pillow = centred("-1,0.49 0,0.455 1,0.49 1,0.575 0,0.60 -1,0.575", 0.13, x)
        pencil.blob(pillow, (252, 250, 246))
        pencil.line([(x - 0.11, 0.575), (x, 0.592), (x + 0.11, 0.575)], 0.007, (196, 198, 200), 0.6)
    pencil.box([(0.155, 0.61), (0.845, 0.61), (0.905, 0.86), (0.095, 0.86)], cover)
    pencil.box([(0.155, 0.61), (0.845, 0.61), (0.86, 0.67), (0.14, 0.67)], mix(cover, (255, 255, 255), 0.45))
    pencil.box([(0.09, 0.82), (0.91, 0.82), (0.91, 0.90), (0.09, 0.90)], darker(wood, 0.9))
    for x in (0.12, 0.85):
        pencil.box([(x, 0.89), (x + 0.035, 0.89), (x + 0.03, 0.955), (x + 0.005, 0.955)], darker(wood, 0.75))


def draw_chair(pencil: Pencil) -> None:
    wood = pencil.colour((166, 114, 70), (116, 82, 62), (204, 164, 116), (84, 92, 100))
    seat = pencil.draws.pick("seat", ((184, 92, 84), (88, 128, 152), (220, 182, 104), (124, 148, 110)))
    pencil.ground_shadow(0.93, 0.27)
    for x in (0.345, 0.655):
        pencil.line([(x, 0.20), (x, 0.60)], 0.036, wood)
    for y in (0.24, 0.34, 0.44):
        pencil.line([(0.34, y), (0.5, y - 0.015), (0.66, y)], 0.040, mix(wood, (255, 240, 220), 0.1))
    for x in (0.36, 0.64):
        pencil.line([(x, 0.58), (x, 0.84)], 0.030, darker(wood, 0.75))
    pencil.box([(0.33, 0.56), (0.67, 0.56), (0.73, 0.67), (0.27, 0.67)], wood)
    pencil.blob([(0.34, 0.55), (0.66, 0.55), (0.70, 0.62), (0.64, 0.645), (0.36, 0.645), (0.30, 0.62)], seat)
    for x in (0.29, 0.71):
        pencil.line([(x, 0.66), (x, 0.93)], 0.038, darker(wood, 0.9))
    pencil.line([(0.29, 0.80), (0.71, 0.80)], 0.022, darker(wood, 0.8))


DRAWERS = {"dog": draw_dog, "giraffe": draw_giraffe, "plant": draw_plant, "tree": draw_tree}
DRAWERS |= {"bed": draw_bed, "chair": draw_chair}
THINGS = tuple(DRAWERS)


def draw_thing(kind: str, seed: int, size: int = 224) -> Image.Image:
    """A picture of one thing; `seed` varies its colour, size and position."""
    pencil = Pencil(Canvas(size), Draws(seed))
    DRAWERS[kind](pencil)
    return pencil.canvas.finish(pencil.light)
