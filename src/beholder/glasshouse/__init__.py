"""Glasshouse: a world of drawn people, made by the project, in which every answer is known."""
