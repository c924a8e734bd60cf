"""Models: everything that fills cells of scores.

`catalog.py` lists families and models, `load.py` opens a model by its name, `scorer.py` says what a model offers,
`spec.py` what identifies it, `predictions.py` imports what ran elsewhere. One folder per family.
"""
