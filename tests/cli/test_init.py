"""`beholder init`, and what it writes: an audit from any folder, rules, and a workflow whose steps really run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner

from beholder.cli import app, init
from beholder.core.errors import UsageError

ROOT = Path(__file__).parents[2]


def test_three_questions_are_asked_of_a_person_and_their_answers_written(
    people: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    photos = people(12)
    monkeypatch.chdir(photos.parent)
    monkeypatch.setattr(init, "_answer", lambda given, question, usual, asking: answers.pop(0))
    answers = ["./clip", f"folder:{photos.name}", "Gender"]
    CliRunner().invoke(app, ["init", "mine"], catch_exceptions=False)
    written = tomllib.loads((photos.parent / "mine" / "audit.toml").read_text())
    assert written == {
        **{"models": ["./clip"], "dataset": f"folder:../{photos.name}"},
        **{"prompts": "prompts.csv", "by": ["gender"]},
    }


def test_without_a_person_the_drawn_people_are_audited(invoke: Callable[..., str], tmp_path: Path):
    said = invoke("init", tmp_path / "a")
    assert [line.rsplit("/", 1)[1] for line in said.split("Written: ")[1:]] == [
        *("audit.toml\n", "prompts.csv\n", "gate.toml\n", "beholder.yml\n")
    ]
    assert tomllib.loads((tmp_path / "a" / "audit.toml").read_text())["dataset"] == "glasshouse"


def test_nothing_is_overwritten_and_a_wrong_label_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate.toml").write_text("mine")
    with pytest.raises(UsageError, match=r"gate\.toml exists and is not overwritten"):
        CliRunner().invoke(app, ["init"], catch_exceptions=False)
    with pytest.raises(Exception, match=r"no attribute 'gendr'(.|\n)*Did you mean 'gender'"):
        CliRunner().invoke(app, ["init", "b", "--by", "gendr"], catch_exceptions=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gate.toml"]


def test_the_workflow_of_the_docs_is_the_one_that_is_written():
    assert (ROOT / "docs/examples/gate-workflow.yml").read_bytes() == (init.FILES / "beholder.yml").read_bytes()


# A stand-in for GitHub: it runs the steps of a job in order, with artifacts, a cache and `gh` that it keeps itself

GH = """#!{python}
import pathlib, shutil, sys
kept = pathlib.Path({kept!r})
words = sys.argv[1:]
if words[:2] == ["run", "list"]:
    assert words[words.index("--workflow") + 1] == "beholder.yml" and words[words.index("--branch") + 1] == "main"
    print("17" if kept.exists() else "", end="")
elif words[:2] == ["run", "download"]:
    assert words[2] == "17" and words[words.index("--name") + 1] == "audit"
    shutil.copytree(kept, words[words.index("--dir") + 1])
else:
    sys.exit(f"gh {{words}}")
"""


class GitHub:
    """What outlives a job (artifacts, cache) and the programs that its steps call."""

    def __init__(self, folder: Path) -> None:
        self.artifact, self.cached, programs = folder / "artifact", folder / "cached", folder / "bin"
        programs.mkdir()
        for name, text in {
            "gh": GH.format(python=sys.executable, kept=str(self.artifact)),
            "pip": f'#!/bin/sh\necho "$@" >> {folder / "installed"}\n',
        }.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.installed = folder / "installed"
        self.path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(self, workflow: dict[str, Any], workspace: Path) -> int:
        """Every step; the exit status of the first that fails. A step with `if: always()` runs all the same."""
        job, status = workflow["jobs"]["gate"], 0
        environment = {**os.environ, "PATH": self.path, "GITHUB_STEP_SUMMARY": str(workspace / "summary.md")}
        environment |= {name: re.sub(r"\$\{\{.*?\}\}", "secret", value) for name, value in job["env"].items()}
        for step in job["steps"]:
            if status and not str(step.get("if", "")).startswith("always()"):
                continue
            if "run" in step:
                words = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
                done = subprocess.run(words, cwd=workspace, env=environment, capture_output=True, text=True)
                status = status or done.returncode
                self.said = f"{step['name']}: {done.stdout}{done.stderr}"
            else:
                getattr(self, step["uses"].split("@")[0].split("/")[-1].replace("-", "_"))(step.get("with"), workspace)
        self._keep(self.cached, ["store"], workspace)
        return status

    def cache(self, options: Any, workspace: Path) -> None:
        assert "hashFiles(" in options["key"]
        assert options["key"].startswith(options["restore-keys"])
        if self.cached.exists():
            shutil.copytree(self.cached / options["path"], workspace / options["path"])

    def checkout(self, options: Any, workspace: Path) -> None: ...

    def setup_python(self, options: Any, workspace: Path) -> None:
        assert options["python-version"] == "3.11"

    def upload_sarif(self, options: Any, workspace: Path) -> None:
        assert json.loads((workspace / options["sarif_file"]).read_text())["version"] == "2.1.0"

    def upload_artifact(self, options: Any, workspace: Path) -> None:
        self._keep(self.artifact, options["path"].split(), workspace)

    def _keep(self, home: Path, names: list[str], workspace: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        for name in names:
            (shutil.copytree if (workspace / name).is_dir() else shutil.copy)(workspace / name, home / name)


@pytest.mark.slow
def test_the_workflow_runs_and_pairs_the_second_run_with_the_first(
    people: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """On main; then a change with another model, which sees the same people."""
    monkeypatch.chdir(tmp_path)
    photos, statuses = people(40), []
    github = GitHub(tmp_path)
    for number, model in enumerate(("null:1", "null:2")):
        workspace = tmp_path / f"checkout-{number}"
        named = ["--model", model, "--dataset", f"folder:{photos}", "--by", "gender"]
        CliRunner().invoke(app, ["init", str(workspace), *named], catch_exceptions=False)
        workflow = yaml.safe_load((workspace / ".github/workflows/beholder.yml").read_text())
        statuses.append(github.run(workflow, workspace))
        assert (workspace / "summary.md").read_text().startswith("### Beholder gate: Passes"), github.said
        root = ElementTree.parse(workspace / "gate.xml").getroot()
        assert root.attrib["failures"] == "0"
        said = [
            case.findtext("system-out") or "" for case in root.iter("testcase") if "no worse" in case.attrib["name"]
        ]
        assert said
        assert all("in pairs" in text for text in said), github.said
    assert statuses == [0, 0]
    (extra,) = {re.search(r"\[(\w+)\]", line)[1] for line in github.installed.read_text().splitlines()}  # type: ignore[index]
    assert extra in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
