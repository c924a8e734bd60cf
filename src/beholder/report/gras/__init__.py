"""GRAS's chapter: its findings, tables and figures, aggregated first, since a full run has 20,000 rows."""
