"""The face: head, ears, eyes, brows, nose, mouth, lines of age, beard.

Points lie on the face itself (x across, y down, 0 in its middle, ±1 at its edge) and turn with the head.
"""

import numpy as np
from PIL import Image

from beholder.glasshouse.anatomy import Hair, Head, blush, depth_of, neck_field, skin_field, skin_glow, skin_shadow
from beholder.glasshouse.canvas import HEAD_X, HEAD_Y, Canvas, Colour, Floats, Pairs, centred, closed_curve, darker, mix

EYE_Y, MOUTH_Y = -0.02, 0.615


def line_colour(skin: Colour) -> Colour:
    """The colour of drawn lines on skin: darker, or on the deepest tones a little lighter than black."""
    return mix(skin_shadow(skin), (70, 30, 24), 0.38) if sum(skin) > 230 else darker(skin_shadow(skin), 0.62)


def draw_neck(canvas: Canvas, head: Head) -> None:
    n = head.face.neck
    paint = neck_field(head.skin, head.light, HEAD_Y + 0.86 * head.height)
    left = [(0.5 - n, 0.50), (0.5 - n * 0.97, 0.64), (0.5 - n * 1.08, 0.70), (0.5 - n * 2.0, 0.755)]
    right = [(1 - x, y) for x, y in reversed(left)]
    canvas.blob([*left, (0.5 - n, 0.86), (0.5 + n, 0.86), *right], paint)


def draw_head(canvas: Canvas, head: Head, *, ears: bool) -> None:
    skin = skin_field(head.skin, head.light, 0.42 * head.width * head.sine)
    size, y = 0.035 * head.face.ear_size, HEAD_Y + 0.06 * head.height
    for side in (-1, 1) if ears else ():  # the one turned away from us hides behind the head
        x = HEAD_X + side * head.width * 1.03 - 0.10 * head.width * head.sine
        canvas.oval(x, y, size * 0.72, size * 1.3, skin)
        canvas.oval(x + side * 0.002, y, size * 0.38, size * 0.8, skin_shadow(head.skin), 0.5)
    canvas.blob(head.outline(), skin)


def draw_features(canvas: Canvas, head: Head) -> None:
    draw_age_lines(canvas, head)
    draw_beard(canvas, head)
    for side in (-1, 1):
        draw_eye(canvas, head, side)
        draw_brow(canvas, head, side)
    draw_nose(canvas, head)
    draw_smile_folds(canvas, head)
    draw_mouth(canvas, head)
    draw_moustache(canvas, head)


def draw_eye(canvas: Canvas, head: Head, side: int) -> None:
    """One eye: socket, white, iris with its highlights, lid and lashes."""
    face, tone = head.face, head.skin
    x, wide = side * face.eye_gap, face.eye_width
    up = face.eye_open * (1 - 0.05 * head.smile)
    low = 0.62 * face.eye_open * (1 - 0.45 * head.smile)
    inner, outer = x - side * wide, x + side * wide
    tilt = face.eye_tilt
    top = [(inner, EYE_Y + 0.02), (x - side * 0.35 * wide, EYE_Y - up * 0.82), (x + side * 0.35 * wide, EYE_Y - up)]
    under = [(outer, EYE_Y - tilt), (x + side * 0.4 * wide, EYE_Y + low * 0.9), (x - side * 0.4 * wide, EYE_Y + low)]
    centre = head.at(x, EYE_Y - 0.02)
    canvas.oval(centre[0], centre[1] - 0.006, 1.28 * wide * head.width, 0.155 * head.height, skin_shadow(tone), 0.22)
    canvas.blob(head.path(top + under), mix((250, 247, 243), tone, 0.08 + 0.14 * depth_of(tone)))
    draw_iris(canvas, head, x, (up + low) / 2)
    crease = [(outer + side * 0.02, EYE_Y - tilt - 0.05), (x, EYE_Y - up - 0.075), (inner, EYE_Y - 0.04)]
    lid = [top[0], (x - side * 0.3 * wide, EYE_Y - up * 0.80), (x + side * 0.35 * wide, EYE_Y - up * 0.92), under[0]]
    canvas.polygon(head.path([*lid, *crease]), mix(tone, skin_shadow(tone), 0.45))
    lash = mix((38, 26, 24), tone, 0.12)
    lift = 0.03 * face.lashes
    line = [top[0], top[1], top[2], (outer, EYE_Y - tilt), (outer + side * 0.05 * face.lashes, EYE_Y - tilt - lift)]
    canvas.stroke(head.path(line), 0.0062 + 0.0052 * face.lashes, lash, taper=0.75)
    canvas.stroke(head.path(under), 0.0025, mix(line_colour(tone), tone, 0.35))


def draw_iris(canvas: Canvas, head: Head, x: float, opening: float) -> None:
    px, py = head.at(x, EYE_Y - 0.012)
    radius = min(0.0205, opening * head.height * 1.12 + 0.004)
    colour = head.eyes
    canvas.oval(px, py, radius * 0.96, radius, darker(colour, 0.62))
    canvas.oval(px, py + 0.001, radius * 0.76, radius * 0.80, mix(colour, (255, 230, 190), 0.12))
    canvas.oval(px, py, radius * 0.46, radius * 0.48, (18, 14, 14))
    glint = 0.0045 * (1 if head.light >= 0 else -1)
    canvas.oval(px + glint, py - 0.0055, 0.0042, 0.0042, (255, 255, 255))
    canvas.oval(px - glint, py + 0.0055, 0.0022, 0.0022, (255, 255, 255), 0.6)


def draw_brow(canvas: Canvas, head: Head, side: int) -> None:
    face, x = head.face, side * head.face.eye_gap
    y = EYE_Y - face.brow_lift + 0.07 - 0.02 * head.smile
    inner, outer = x - side * 0.27, x + side * 0.31
    arch = face.brow_arch
    points = [(inner, y - 0.002), (x - side * 0.05, y - arch * 0.75), (x + side * 0.12, y - arch), (outer, y + 0.045)]
    colour = mix(head.hair.brow_colour, head.skin, 0.10)
    canvas.stroke(head.path(points), face.brow_weight, colour, 0.92, taper=0.62)


def draw_nose(canvas: Canvas, head: Head) -> None:
    face, tone = head.face, head.skin
    w, tip = face.nose_width, EYE_Y + face.nose_length
    shadow, line = skin_shadow(tone), line_colour(tone)
    side = -1.0 if head.light >= 0 else 1.0
    bridge = [head.at(side * 0.10, -0.10), head.at(side * 0.075, 0.10, 0.10)]
    canvas.stroke([*bridge, head.at(side * w * 0.85, tip - 0.04, 0.12)], 0.010, shadow, 0.32)
    canvas.oval(*head.at(0, tip - 0.015, 0.24), w * 0.62 * head.width, 0.056 * head.height, skin_glow(tone), 0.45)
    canvas.oval(*head.at(0, tip - 0.16, 0.2), 0.045 * head.width, 0.12 * head.height, skin_glow(tone), 0.30)
    under = [head.at(-w, tip, 0.1), head.at(-0.4 * w, tip + 0.055, 0.2), head.at(0.4 * w, tip + 0.055, 0.2)]
    canvas.stroke([*under, head.at(w, tip, 0.1)], 0.0062, line, 0.7)
    for edge in (-1, 1):
        wing = [head.at(edge * w * 0.98, tip - 0.075, 0.1), head.at(edge * w * 1.12, tip - 0.02, 0.1)]
        canvas.stroke([*wing, head.at(edge * w * 0.85, tip + 0.025, 0.1)], 0.0048, line, 0.65)
        canvas.oval(*head.at(edge * w * 0.52, tip + 0.022, 0.16), 0.0062, 0.0036, darker(line, 0.75), 0.75)


def draw_smile_folds(canvas: Canvas, head: Head) -> None:
    smile = head.smile
    if smile < 0.2:
        return
    wide = head.face.mouth_width * (1 + 0.32 * smile)
    for side in (-1, 1):
        fold = [(side * 0.29, 0.33), (side * (wide + 0.10), 0.45), (side * (wide + 0.105), 0.56)]
        canvas.stroke(head.path(fold), 0.0045, line_colour(head.skin), 0.30 * smile)


def lip_colours(head: Head) -> tuple[Colour, Colour]:
    """Upper and lower lip: natural to tinted; rosy on every skin."""
    tone, tint = head.skin, head.face.lip_tint
    depth = depth_of(tone)
    natural = mix(mix(blush(tone), skin_shadow(tone), 0.55), (142, 84, 80), 0.35 * depth)
    tinted = mix(natural, mix((182, 70, 76), (118, 52, 58), depth), tint * (1 - 0.35 * depth))
    return darker(tinted, 0.86), mix(tinted, skin_glow(tone), 0.12)


def draw_mouth(canvas: Canvas, head: Head) -> None:
    face, smile = head.face, head.smile
    wide, full = face.mouth_width * (1 + 0.36 * smile), face.lip_fullness
    corner = MOUTH_Y + 0.004 - 0.125 * smile
    sag = 0.012 + 0.045 * smile
    open_by = 0.105 * max(0.0, smile - 0.45) / 0.55
    upper, lower = lip_colours(head)
    left, right = (-wide, corner), (wide, corner)
    line = [(-0.45 * wide, MOUTH_Y + sag * 0.6), (0.0, MOUTH_Y + sag), (0.45 * wide, MOUTH_Y + sag * 0.6)]
    bottom = [(x, y + open_by * (1.0 if x == 0 else 0.72)) for x, y in line]
    if open_by:
        draw_teeth(canvas, head, [left, *line, right, *reversed(bottom)])
    peak = MOUTH_Y - full * (0.95 - 0.45 * smile)
    lip_top = [(0.36 * wide, peak), (0.0, peak + 0.25 * full), (-0.36 * wide, peak)]
    canvas.blob(head.path([left, *line, right, *lip_top]), upper)
    lip_bottom = [(x * 0.92, y + full * (1.45 if x == 0 else 1.12)) for x, y in reversed(bottom)]
    canvas.blob(head.path([left, *bottom, right, *lip_bottom]), lower)
    canvas.oval(*head.at(0, bottom[1][1] + 0.75 * full), 0.28 * wide * head.width, 0.0032, skin_glow(lower), 0.5)
    seam = mix(darker(upper, 0.55), (60, 20, 20), 0.3)
    canvas.stroke(head.path([left, *line, right]), 0.0050, seam, 0.85, taper=0.6)
    under = [(x * wide, bottom[1][1] + full * down) for x, down in ((-0.4, 2.0), (0, 2.2), (0.4, 2.0))]
    canvas.stroke(head.path(under), 0.0065, skin_shadow(head.skin), 0.4)


def draw_teeth(canvas: Canvas, head: Head, points: Pairs) -> None:
    """The inside of an open smile: a bright row of teeth above a dark edge."""
    canvas.blob(head.path(points), (92, 34, 36))
    top = [(x * 0.93, y) for x, y in points[:5]]
    edge = [(x * 0.86, y + 0.048 + 0.02 * (1 - abs(x))) for x, y in reversed(top[1:4])]
    canvas.blob(head.path([*top, *edge]), (250, 247, 240))


def draw_age_lines(canvas: Canvas, head: Head) -> None:
    """Lines that come with the years: brow, corners of the eyes, beside and under the mouth."""
    strength = (head.age - 38) / 42
    if strength <= 0:
        return
    colour, alpha = line_colour(head.skin), 0.10 + 0.42 * strength
    for row in range(1 + round(2 * strength)):
        y = -0.44 - 0.085 * row
        wrinkle = [(-0.42, y), (-0.15, y - 0.018), (0.15, y - 0.018), (0.42, y)]
        canvas.stroke(head.path(wrinkle), 0.0042, colour, alpha * 0.7)
    for side in (-1, 1):
        eye = side * head.face.eye_gap
        for fan in (-0.055, 0.005, 0.06)[: 1 + round(2 * strength)]:
            crow = [(eye + side * 0.27, EYE_Y + fan * 0.3), (eye + side * 0.40, EYE_Y + fan * 1.5)]
            canvas.stroke(head.path(crow), 0.0038, colour, alpha)
        bag = [(eye - 0.2, EYE_Y + 0.115), (eye, EYE_Y + 0.155), (eye + 0.2, EYE_Y + 0.115)]
        canvas.stroke(head.path(bag), 0.0045, colour, alpha * 0.75)
        fold = [(side * 0.27, 0.36), (side * 0.44, 0.48), (side * 0.46, 0.62)]
        canvas.stroke(head.path(fold), 0.0060, colour, alpha * 0.85)
        jowl = [(side * 0.43, 0.70), (side * 0.42, 0.78), (side * 0.37, 0.84)]
        canvas.stroke(head.path(jowl), 0.0055, colour, alpha * 0.55)


def draw_beard(canvas: Canvas, head: Head) -> None:
    kind = head.hair.beard
    if kind not in ("stubble", "beard"):
        return
    colour = mix(darker(head.hair.colour, 0.88), head.skin, 0.12)
    edge = head.outline(1.0 if kind == "stubble" else 1.035)[4:10]
    cheek = [(-0.80, 0.36), (-0.52, 0.47), (-0.30, 0.485), (0.0, 0.50), (0.30, 0.485), (0.52, 0.47), (0.80, 0.36)]
    canvas.blob(np.concatenate([edge, head.path(cheek)]), colour, 0.24 if kind == "stubble" else 0.92)


def draw_moustache(canvas: Canvas, head: Head) -> None:
    """The hair on the upper lip, alone or with a beard."""
    if head.hair.beard not in ("moustache", "beard"):
        return
    wide, rise = head.face.mouth_width * 1.1, 0.05 * head.smile
    right = [(wide * 0.45, 0.478), (wide * 0.85, 0.535 - rise), (wide, 0.615 - rise * 1.4)]
    right += [(wide * 0.5, 0.575 - 0.2 * rise)]
    left = [(-x, y) for x, y in reversed(right)]
    colour = mix(darker(head.hair.colour, 0.88), head.skin, 0.12)
    canvas.blob(head.path([(0.0, 0.495), *right, (0.0, 0.57), *left]), colour, 0.95)


# Hair

HIDES_EARS = frozenset({"long", "wavy", "bob", "medium", "curly"})


def draw_back_hair(canvas: Canvas, head: Head, paint: Image.Image, *, covered: bool) -> None:
    """Hair behind head and neck; `covered` leaves room for a hat."""
    hair, style = head.hair, head.hair.style
    shift = -0.25 * head.width * head.sine
    if style in ("long", "wavy"):
        canvas.polygon(fall(head, 0.74 + 0.12 * hair.length, 1.22 + 0.10 * hair.volume, shift), paint)
    elif style in ("bob", "medium"):
        low = 0.60 + 0.07 * hair.length if style == "bob" else 0.65
        canvas.polygon(fall(head, low, 1.16 + 0.10 * hair.volume, shift), paint)
    elif style == "curly":
        grow = 1.28 + 0.10 * hair.volume
        middle, tall = (HEAD_Y + 0.03, 0.95) if covered else (HEAD_Y - 0.03, grow * 0.96)
        canvas.polygon(cloud(HEAD_X + shift, middle, head.width * grow * 1.08, head.height * tall), paint)
    elif style == "balding":
        canvas.oval(HEAD_X + shift * 0.4, HEAD_Y - 0.06 * head.height, head.width * 1.03, head.height * 0.34, paint)
    elif style == "bun" and not covered:
        canvas.oval(HEAD_X + shift * 1.6, HEAD_Y - head.height * 1.13, 0.060 + 0.008 * hair.volume, 0.052, paint)


def fall(head: Head, low: float, wide: float, shift: float) -> Floats:
    """Hair falling from the crown to `low`, straight or in waves."""
    hair, w = head.hair, head.width
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
    hair = head.hair
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
    hair = head.hair
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
    light, dark = mix(colour, (255, 236, 214), 0.22), darker(colour, 0.70)
    back = list(reversed(edge))
    for index, shade in ((2, dark), (3, light), (4, dark), (5, light), (7, dark), (8, light)):
        start, end = np.asarray(arc[index]), np.asarray(back[min(6, round(index * 6 / 10))])
        first, last = start + 0.18 * (end - start), start + 0.86 * (end - start)
        bend = (first + last) / 2 + np.array([0.010 if index > 5 else -0.010, -0.006])
        canvas.stroke(np.stack([first, bend, last]), 0.0055, shade, 0.45)
