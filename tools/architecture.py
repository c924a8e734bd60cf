"""Draw docs/images/architecture.svg from the real imports: `python tools/architecture.py`."""

from __future__ import annotations

import html
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "images" / "architecture.svg"
WHAT = {
    "cli": "one short module per command",
    "audit": "the straight line", "compare": "where two models differ", "gate": "rules before shipping",
    "measure": "scores from files", "cost": "what an audit takes",
    "training": "audits while a model is trained",
    "site": "pages of many runs", "view": "pictures behind a number",
    "run": "results, record and report of one audit", "steps": "what every run goes through",
    "options": "what an audit is asked", "harness": "tasks for other programs",
    "report": "page, terminal, exports: asks each study for its chapter",
    "calibration": "trials with known truth",
    "studies": "one room per study",
    "chapter": "findings, tables, charts: what chapters are made of",
    "comparison": "people, groups, strata: one engine, one verdict",
    "scores": "score matrix, store, fill",
    "models": "adapters by family",
    "datasets": "images with attributes",
    "glasshouse": "the drawn world",
    "prompts": "prompts with attributes",
    "metrics": "pure functions",
    "core": "errors, files, digests, rows",
}  # fmt: skip
WIDTH, ROW, GAP, MARGIN = 860, 46, 14, 20


def layers() -> list[list[str]]:
    """The layers that import-linter holds, from the top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [[name.strip().removeprefix("beholder.").removeprefix("_") for name in row.split("|")] for row in rows]


def imports() -> dict[tuple[str, str], int]:
    """How many imports lead from one package to another."""
    graph, counts = grimp.build_graph("beholder", exclude_type_checking_imports=True), {}
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = tuple([*name.split("."), ""][1].removeprefix("_") for name in (module, other))
            if "" not in pair and pair[0] != pair[1]:
                counts[pair] = counts.get(pair, 0) + 1
    return counts


def draw() -> str:
    """The drawing: a box a package, a line for the imports, thicker where there are more."""
    boxes, y = {}, MARGIN
    for row in layers():
        width = (WIDTH - 2 * MARGIN - 260 - GAP * (len(row) - 1)) / len(row)
        for number, name in enumerate(row):
            boxes[name] = (MARGIN + 130 + number * (width + GAP), y, width)
        y += ROW + GAP
    lines = []
    for (first, second), count in sorted(imports().items()):
        if first not in boxes or second not in boxes:
            continue
        (x1, y1, w1), (x2, y2, w2) = boxes[first], boxes[second]
        side = 1 if (list(boxes).index(first) % 2) else -1
        a, b = (x1 + w1 if side > 0 else x1), (x2 + w2 if side > 0 else x2)
        far = max(a, b) + 20 + (y2 - y1) / 7 if side > 0 else min(a, b) - 20 - (y2 - y1) / 7
        top, bottom = f"{y1 + ROW / 2:.0f}", f"{y2 + ROW / 2:.0f}"
        path = f"M{a:.0f},{top} C{far:.0f},{top} {far:.0f},{bottom} {b:.0f},{bottom}"
        width = 1 + count**0.5 / 3
        lines.append(
            f'<path d="{path}" fill="none" stroke="#4c86c0" stroke-opacity="0.35" stroke-width="{width:.1f}">'
            f"<title>{first} imports {second} {count} times</title></path>"
        )
    for name, (x, top, width) in boxes.items():
        lines.append(
            f'<rect x="{x:.0f}" y="{top}" width="{width:.0f}" height="{ROW}" rx="6" fill="#f4f6f8" stroke="#667"/>'
            f'<text x="{x + width / 2:.0f}" y="{top + 19}" text-anchor="middle" font-weight="600">{name}</text>'
            f'<text x="{x + width / 2:.0f}" y="{top + 36}" text-anchor="middle" font-size="10">'
            f"{html.escape(WHAT[name] if width > 150 else '')}</text>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="13" '
        f'role="img" aria-label="Packages of Beholder; imports point down">' + "".join(lines) + "</svg>\n"
    )


if __name__ == "__main__":
    OUT.write_text(draw(), encoding="utf-8")
