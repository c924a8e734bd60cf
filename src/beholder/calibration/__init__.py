"""Calibration: every claim of every study in worlds of which it is known what the model sees."""
