"""The chapter on captions: who is named, which words are said, and whether a model knows whom captions name."""
