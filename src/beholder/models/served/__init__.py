"""Models behind an OpenAI-compatible server: `scorer.py` opens a model and asks it."""
