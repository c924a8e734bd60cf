"""`beholder gate`: a table for people, files for pipelines, and an exit status for all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from beholder._run import Run
from beholder.cli import app
from beholder.report.comparison import SCHEMA, Comparison, write_comparison

RULE = "[[rule]]\nmetric = 'apa.bias_ratio'\nsubset = '{}'\nat_least = 0.8\n"


def gate(folder: Path, rules: str, *more: object) -> tuple[int, str]:
    (folder / "gate.toml").write_text(rules)
    result = CliRunner().invoke(app, ["gate", str(folder), "--rules", str(folder / "gate.toml"), *map(str, more)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


@pytest.fixture
def folder(apa_run: Run, tmp_path: Path) -> Path:
    apa_run.save(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("subset", "status", "summary"),
    [("athletes", 0, "Passes: 0 of 1 check fail."), ("politicians", 1, "Stopped: 1 of 1 check fails.")],
)
def test_the_exit_status_and_the_summary_follow_the_rules(folder: Path, subset: str, status: int, summary: str):
    code, text = gate(folder, RULE.format(subset))
    assert code == status
    assert summary in text


def test_quiet_sets_only_the_exit_status(folder: Path):
    assert gate(folder, RULE.format("politicians"), "--quiet") == (1, "")


def test_undecided_checks_are_counted_and_can_be_made_to_fail(folder: Path):
    rules = "[[rule]]\nmetric = 'apa.bias_ratio'\nsubset = 'actors'\nat_least = 0.9\n"
    assert "Passes: 0 of 1 check fail, 1 undecided. The rules let 1 undecided check pass." in gate(folder, rules)[1]
    assert gate(folder, rules, "--undecided", "fail")[0] == 1


def test_json_holds_every_verdict_with_its_row(folder: Path):
    answer = json.loads(gate(folder, RULE.format("politicians"), "--json")[1])
    assert not answer["passes"]
    (verdict,) = answer["verdicts"]
    assert (verdict["verdict"], verdict["stops"], verdict["row"]["value"]) == ("fail", True, 0.62)


def test_junit_has_a_case_for_every_check_in_the_form_that_readers_expect(folder: Path, tmp_path: Path):
    gate(folder, "[[rule]]\nmetric = 'apa.bias_ratio'\nat_least = 0.9\n", "--junit", tmp_path / "gate.xml")
    suites = ElementTree.parse(tmp_path / "gate.xml").getroot()
    (suite,) = suites
    assert (suites.tag, suite.tag) == ("testsuites", "testsuite")
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 3, "failures": 1, "errors": 0, "skipped": 1}
    assert [case.tag for case in suite] == ["properties", *["testcase"] * 3]
    assert all({"classname", "name", "time"} <= set(case.attrib) for case in suite.findall("testcase"))
    assert len(suite.findall("testcase/system-out")) == 3
    assert len(suite.findall("testcase/failure[@message][@type]")) == 1
    assert len(suite.findall("testcase/skipped[@message]")) == 1


def test_junit_calls_a_check_alike_in_every_run(apa_run: Run, tmp_path: Path):
    """Other numbers, another verdict, another folder, another name of the one model: the same names, each once."""

    def names(run: Run, folder: Path) -> list[tuple[str, str]]:
        run.save(folder)
        rules = "[[rule]]\nmetric = 'apa.bias_ratio'\nat_least = 0.9\n"
        gate(folder, rules + rules.replace("0.9", "0.2"), "--junit", folder / "gate.xml")
        suite = ElementTree.parse(folder / "gate.xml").getroot()[0]
        return [(suite.attrib["name"], case.attrib["name"]) for case in suite.findall("testcase")]

    before = names(apa_run, tmp_path / "run")
    apa_run.results = apa_run.results.with_columns(pl.col("value", "low", "high") * 0.5, model=pl.lit("checkpoint-2"))
    assert names(apa_run, tmp_path / "2026-12-01-other") == before
    assert len(set(before)) == len(before) == 6
    assert ("beholder gate", "apa.bias_ratio at least 0.9: actors") in before


def test_names_that_xml_and_github_would_misread_are_made_safe(hostile_run: Run, tmp_path: Path):
    model = "a\x1b<b>&]]>\n::error::%"
    hostile_run.results = hostile_run.results.with_columns(model=pl.lit(model))
    hostile_run.save(tmp_path)
    _, text = gate(tmp_path, RULE.format("politicians"), "--junit", tmp_path / "g.xml", "--github", "--quiet")
    case = ElementTree.parse(tmp_path / "g.xml").getroot()[0].findall("testcase")[0]
    assert "\ufffd<b>&]]>" in (case.findtext("system-out") or "")
    (line,) = text.splitlines()
    assert line.startswith("::error file=")
    assert "%0A::error::%25" in line


def test_sarif_has_what_version_2_1_0_requires(folder: Path, tmp_path: Path):
    gate(folder, RULE.format("politicians") + RULE.format("athletes"), "--sarif", tmp_path / "gate.sarif")
    log = json.loads((tmp_path / "gate.sarif").read_text())
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result, line in zip(run["results"], (1, 5), strict=True):
        assert result["message"]["text"]
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert (result["level"] != "none") == (result["kind"] == "fail")
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("gate.toml")


def test_github_gets_annotations_and_a_table(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("before\n")
    rules = "[[rule]]\nmetric = 'apa.bias_ratio'\nat_least = 0.9\n"
    lines = gate(folder, rules, "--github", "--quiet")[1].splitlines()
    assert [line.split()[0] for line in lines] == ["::warning", "::error"]
    text = (tmp_path / "summary.md").read_text()
    assert text.startswith("before\n### Beholder gate: Stopped: 1 of 3 checks fails, 1 undecided.")
    assert text.count("\n| ") == 4


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (RULE.format("athlets"), "no subset 'athlets'"),
        (RULE.replace("bias_ratio", "bias_ration").format("athletes"), "Did you mean 'apa.bias_ratio'?"),
        ("[[rule]]\nmetric = 'apa.bias_ratio'\nrequire = 'no worse'\n", "add --baseline RUN"),
    ],
)
def test_a_rule_that_cannot_be_used_exits_with_2(folder: Path, refused, rules: str, said: str):
    (folder / "gate.toml").write_text(rules)
    assert said in refused("gate", str(folder), "--rules", str(folder / "gate.toml"))


def test_a_baseline_run_decides_whether_a_model_became_worse(folder: Path, apa_run: Run, tmp_path: Path):
    better = apa_run.results.with_columns(pl.col("value", "low", "high") + 0.3)
    Run(better, apa_run.record).save(tmp_path / "last")
    rules = "[[rule]]\nmetric = 'apa.association'\nrequire = 'no worse'\nbetter = '{}'\n"
    assert gate(folder, rules.format("lower"), "--baseline", tmp_path / "last")[0] == 0
    code, text = gate(folder, rules.format("higher"), "--baseline", tmp_path / "last", "--json")
    assert code == 1
    assert "more than chance" in json.loads(text)["verdicts"][0]["reason"]


def test_a_finding_can_be_ruled_out(folder: Path):
    rule = "[[rule]]\nfinding = 'apa.bias'\nverdict_not = '{}'\n"
    assert gate(folder, rule.format("shown"))[0] == 1
    assert gate(folder, rule.format("not measured"))[0] == 0


def test_a_comparison_is_gated_by_its_paired_differences(tmp_path: Path, apa_run: Run):
    rows = [
        {"study": "apa", "baseline": "a", "model": "b", "dataset": "apa", "metric": "apa.association", "n": 9}
        | {"first": 0.5, "second": second, "difference": second - 0.5, "low": second - 0.53, "high": second - 0.47}
        | {"p_value": 0.01, "p_adjusted": 0.01, "subset": name, "unit": "probability"}
        for name, second in (("actors", 0.4), ("senate", 0.51))
    ]
    apa_run.record.settings = {"parts": 20}
    write_comparison(Comparison(["a", "b"], pl.DataFrame(rows, schema=SCHEMA), apa_run.record), tmp_path)
    rule = "[[rule]]\nmetric = 'apa.association'\n"
    assert gate(tmp_path, f"{rule}require = 'no worse'\nbetter = 'higher'\n")[0] == 1
    assert gate(tmp_path, f"{rule}require = 'no worse'\nbetter = 'higher'\nsubset = 'senate'\n")[0] == 0
    assert gate(tmp_path, f"{rule}at_least = -0.2\n")[0] == 0  # a bound is one of the difference


def test_a_model_that_is_perfectly_biased_does_not_pass(invoke: Callable[..., str], tmp_path: Path):
    """Thirty women, all "receptionist", thirty men, all "politician", without any doubt."""
    people, labels, scores = tmp_path / "people", ["image,gender"], ["image_id,receptionist,politician"]
    people.mkdir()
    for i in range(60):
        Image.new("RGB", (4, 4), (i, i, i)).save(people / f"{i:02}.png")
        woman = i < 30
        labels.append(f"{i:02}.png,{'woman' if woman else 'man'}")
        scores.append(f"{i:02}.png,{4 if woman else -4},{-4 if woman else 4}")
    (people / "labels.csv").write_text("\n".join(labels))
    (tmp_path / "scores.csv").write_text("\n".join(scores))
    (tmp_path / "prompts.csv").write_text("text,concept\nreceptionist,receptionist\npolitician,politician\n")
    own = ["--prompts", tmp_path / "prompts.csv", "--by", "gender", "--dataset", f"folder:{people}"]
    invoke("measure", "custom", *own, "--scores", tmp_path / "scores.csv", "--out", tmp_path / "run", "-q")
    bound = "[[rule]]\nmetric = 'custom.gap'\nat_least = -0.1\nat_most = 0.1\n"
    finding = "[[rule]]\nfinding = 'custom.custom'\nverdict_not = 'shown'\n"
    status, text = gate(tmp_path / "run", bound + finding, "--json")
    found = json.loads(text)["verdicts"]
    assert status == 1
    assert {one["verdict"] for one in found} == {"fail"}
    assert any("● difference found" in one["reason"] for one in found)
