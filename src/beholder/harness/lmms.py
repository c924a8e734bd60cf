"""A study as a folder that lmms-eval takes as a task: `--include_path FOLDER --tasks beholder_STUDY`."""

import json
from itertools import product
from pathlib import Path

from beholder.core.files import write_whole
from beholder.harness import Questions

FUNCTIONS = Path(__file__).with_name("utils.py")
DRAWN = {"max_new_tokens": 8, "temperature": 1.0, "top_p": 1.0, "do_sample": True}
COUNTED = {"output_type": "generate_until", "generation_kwargs": DRAWN}
LIKELIHOODS = {"output_type": "multiple_choice", "target_delimiter": "", "doc_to_choice": "choices"}


def write_tasks(questions: Questions, folder: Path) -> int:
    """Write the task, and the pictures that no file holds as they are asked about; how many questions there are."""
    asked, name = questions.instruction, f"beholder_{questions.asked['study']}"
    cases = [dict.fromkeys([word, word.lower(), word.capitalize(), word.upper()]) for word in (asked.yes, asked.no)]
    spelled = [blank + word for words in cases for blank, word in product(("", " "), words)]
    lines = [
        json.dumps({"image": image, "text": text, "about": json.dumps(about), "choices": spelled}, ensure_ascii=False)
        for image, text, about in questions.each(folder.resolve() / "pictures", answers=[asked.yes, asked.no])
    ]
    rows = folder.resolve() / f"{name}.jsonl"
    task = {
        **{"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": str(rows)}, "test_split": "train"},
        **(COUNTED if questions.draws else LIKELIHOODS),
        **{"doc_to_text": "text", "doc_to_target": 0, "metadata": [{"version": 1}]},
    }
    written = [f"{key}: {json.dumps(value)}" for key, value in task.items()]  # JSON is YAML
    written += [f"{function}: !function utils.{function}" for function in ("doc_to_visual", "process_results")]
    written += [
        "metric_list:",
        "- metric: beholder",
        "  aggregation: !function utils.p_yes",
        "  higher_is_better: true",
    ]
    write_whole(rows, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    write_whole(folder / f"{name}.yaml", "".join(f"{line}\n" for line in written).encode("utf-8", "replace"))
    write_whole(folder / FUNCTIONS.name, FUNCTIONS.read_bytes())
    return len(lines)
