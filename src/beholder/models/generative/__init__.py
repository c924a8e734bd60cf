"""Models that answer in words; the score is the probability of the agreeing answer.

`scorer.py` is the adapter, `loaded_model.py` runs the model, `answers.py` finds the answer tokens;
`sharing.py`, `tree.py`, `tree_attention.py` and `trunk.py` compute the common beginning of prompts once;
`proof.py` shows at start that this changes no answer.
"""
