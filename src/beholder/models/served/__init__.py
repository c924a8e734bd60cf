"""Models behind an OpenAI-compatible server.

`open.py` connects, `scorer.py` asks, `client.py` sends requests within `limits.py`, `answers.py` reads the replies.
"""
