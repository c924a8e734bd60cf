"""Perception's chapter: its findings, tables and figures, aggregated first, since a run has thousands of rows."""
