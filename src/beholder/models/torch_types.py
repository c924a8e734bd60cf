"""Names for what torch and transformers pass around, so that a signature says what it takes."""

from typing import Any

# All are Any: torch and transformers are optional and skipped by mypy, so their own types cannot be used here.
Tensor = Any
Module = Any
Config = Any
Processor = Any  # of pictures, of texts or of both: a tokenizer too
Output = Any  # what a module returns: a tensor, several, or an output object of transformers
Inputs = dict[str, Tensor]
