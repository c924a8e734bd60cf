"""Models that answer in words; the score is the probability of the agreeing answer.

`scorer.py` is the adapter, `loaded_model.py` runs the model, `answers.py` finds the answer tokens, `model_types.py` is
the table of model types; `sharing.py`, `tree.py` and `tree_attention.py` compute the common beginning of prompts
once and prove at start that this changes no answer.
"""
