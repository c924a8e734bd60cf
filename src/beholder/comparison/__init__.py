"""The one place where people are compared: who is a person, which groups, within what, and what is found.

A study chooses the statistic and declares its families. Nulls, bounds and verdicts are computed here and nowhere else.
"""
