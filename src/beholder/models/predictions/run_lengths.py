"""COCO's run lengths: a mask as counts of pixels that are not and are in it, in turn, column by column.

Uncompressed they are a list of numbers, compressed a text of six bits a character.
"""

from __future__ import annotations


def mask_share(segmentation: object) -> float:
    """The share of a picture's pixels that its mask covers; raises ValueError for what is no mask.

    >>> mask_share({"size": [2, 3], "counts": [1, 3, 2]})
    0.5
    """
    if not isinstance(segmentation, dict) or not {"size", "counts"} <= set(segmentation):
        raise ValueError("has a 'segmentation' that is not run lengths: {'size': [height, width], 'counts': …}")
    height, width = _size(segmentation["size"])
    counts = run_lengths(segmentation["counts"])
    if sum(counts) != height * width:
        raise ValueError(f"has a mask of {sum(counts)} pixels for a picture of {height} × {width}")
    return sum(counts[1::2]) / (height * width)


def run_lengths(counts: object) -> list[int]:
    """The counts as numbers, whether they come as numbers or as text."""
    numbers = _decompressed(counts) if isinstance(counts, str) else counts
    if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("has run lengths that are no whole numbers from 0")
    return numbers


def _decompressed(text: str) -> list[int]:
    """Numbers of five bits a character, lowest first; the third and later ones as the change since two before."""
    counts: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64:
            raise ValueError(f"has compressed run lengths with {character!r} in them")
        value |= (bits & 0x1F) << shift
        shift += 5
        if bits & 0x20:
            continue
        signed = value - (1 << shift) if bits & 0x10 else value
        counts.append(signed + counts[-2] if len(counts) > 2 else signed)
        value = shift = 0
    if shift:
        raise ValueError("has compressed run lengths that break off")
    return counts


def _size(size: object) -> tuple[int, int]:
    if not isinstance(size, list) or len(size) != 2 or not all(type(side) is int and side > 0 for side in size):
        raise ValueError(f"has a mask of size {size!r}, not [height, width]")
    return size[0], size[1]
