"""Models: everything that fills cells of scores.

`families.py` lists the families, `load.py` opens a model by its name, `scorer.py` says what a model offers,
`spec.py` what identifies it, `catalog.py` the models of the studies. One folder per family.
"""
