"""A static site of many runs and of the published tables: models × questions, with every number's interval."""
