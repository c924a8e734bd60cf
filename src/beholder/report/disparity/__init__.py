"""Disparity's chapter: findings, tables and figures; of hundreds of concepts those with the widest gaps come first."""
