"""What an audit will cost: tokens, FLOP, bytes, time and money, before anything is scored.

`subject.py` finds out what is known of a model without its weights, `tokens.py` counts what it reads, `work.py` what a
study makes it do, `rehearsal.py` times a few seconds of that here, `devices.py` knows other devices, `estimate.py` puts
these together.
"""
