"""Models that answer in words; the score is the probability of the agreeing answer.

`scorer.py` is the adapter, `asking.py` runs the model, `answers.py` finds the answer tokens;
`sharing.py`, `tree.py` and `tree_attention.py` compute the common beginning of prompts once.
"""
