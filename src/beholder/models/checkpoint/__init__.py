"""Checkpoints: `folder.py` and `files.py` read folders, `hub.py` fetches them, `checkpoint.py` loads the weights."""
