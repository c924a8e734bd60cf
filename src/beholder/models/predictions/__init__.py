"""Result files of detectors and segmenters that ran elsewhere, imported as scores: `importing.py` is the entrance."""
