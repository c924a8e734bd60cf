"""Models that look for a concept in every part of a picture: `detection.py` and `segmentation.py`."""
