"""Every choice that no paper states, as Markdown for docs/fidelity.md: `python tools/choices_list.py`."""

from __future__ import annotations

from beholder.studies import STUDIES


def markdown_choices() -> str:
    """Study by study: what `--compat` follows, and what the paper leaves open."""
    parts = []
    for study in STUDIES.values():
        if study.tells.choices:
            name, follows = study.short or study.title, study.tells.compat
            lines = [f"**{name}** (`--compat` follows {follows})", "", *(f"- {each}." for each in study.tells.choices)]
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(markdown_choices())
