"""Exposure: how often captions, from which models learn, name the people whom a benchmark shows."""
