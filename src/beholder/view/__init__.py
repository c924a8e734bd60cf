"""A local viewer: the pictures behind a number, from the user's own disk, never exported."""
