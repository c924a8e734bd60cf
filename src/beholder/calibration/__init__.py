"""Calibration: the instrument against a standard whose true value is known, metric by metric."""
