"""What an audit will cost: tokens, FLOP, bytes, time and money, before anything is scored.

`subject.py` finds out what is known of a model without its weights, `work.py` counts what a study makes it do,
`rehearsal.py` times a few seconds of that here, `estimate.py` puts these together.
"""
