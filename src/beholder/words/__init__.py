"""Words: their vectors, the words behind a concept, and how near a concept lies to each group's words."""
