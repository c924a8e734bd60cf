"""Questions as the engine lays them out, by the checkpoint's own processor and a model without weights."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from beholder.cost.work import Reading, Size, reading
from beholder.models.checkpoint.checkpoint import Checkpoint, captured_warnings
from beholder.models.generative.loaded_model import LoadedModel
from beholder.models.generative.model_types import Reuse
from beholder.models.generative.sharing import Sharing
from beholder.models.torch_scorer import as_model_error, torch, transformers


class ProcessorTokens:
    """One checkpoint, of which config, tokenizer and processor are read."""

    def __init__(self, folder: Path, at_once: int) -> None:
        """`at_once` questions are asked together where they cannot share words."""
        with as_model_error(folder), captured_warnings():
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            with torch.device("meta"):
                model = transformers.AutoModelForImageTextToText.from_config(config)
            images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", local_files_only=True)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._loaded = LoadedModel.of(folder, Checkpoint(model, images, tokenizer, []), questions=None)
        self._sharing = Sharing(self._loaded, quiet=True)
        self._at_once = at_once if self._loaded.kind.padded else 1

    def readings(self, questions: Sequence[str], pictures: Sequence[Image.Image]) -> list[tuple[Reading, Size | None]]:
        """For each picture: what is read about it, and how large the image tower is given it where that differs."""
        config, shared = self._loaded.model.config, self._sharing.reuse in (Reuse.PREFIX, Reuse.TRUNK)
        mark = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        found = []
        for image in pictures:
            layout, seen = self._sharing.layout(self._loaded.pictures.develop(image), questions)
            sequences = [text["input_ids"][0].tolist() for text in layout.texts]
            read = reading(sequences, sequences[0].count(mark), shared=shared, at_once=self._at_once)
            grid, side = seen.get("image_grid_thw"), getattr(config.vision_config, "patch_size", 1)
            found.append((read, None if grid is None else (int(grid[0][1]) * side, int(grid[0][2]) * side)))
        return found
