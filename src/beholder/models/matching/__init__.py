"""Models that fuse picture and text and say whether the two match.

`scorer.py` is shared by `blip.py` (BLIP, BLIP-2) and `albef.py`; `fusion.py` runs the fusion layers.
"""
