"""Models with an image tower and a text tower; the score is the cosine of two vectors.

`two_towers.py` reads transformers folders, `openclip.py` open_clip models, `onnx.py` ONNX files;
`embedding.py` is shared by all of them.
"""
