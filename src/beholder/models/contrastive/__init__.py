"""Models with an image tower and a text tower; the score is the cosine of two vectors."""
