"""How Glasshouse pictures are drawn: canvas, anatomy, face, hair, wardrobe, things. Pixels only."""
