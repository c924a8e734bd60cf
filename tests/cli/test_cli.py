"""The command line as a person or a program meets it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder.cli import app, main
from beholder.core.errors import DataError, ModelError, UsageError
from beholder.models.load import load_model

RUN = CliRunner()


def invoke(*arguments: object) -> str:
    result = RUN.invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.csv"
    path.write_text("text,concept\na kind person,kind\na cold person,cold\n")
    return path


@pytest.fixture
def audit(people: Callable[..., Path], prompts: Path, tmp_path: Path) -> list[object]:
    folder = people(6)
    places = ["--out", tmp_path / "run", "--store", tmp_path / "store", "--draws", 100]
    return ["audit", "null", "--prompts", prompts, "--dataset", f"folder:{folder}", "--by", "gender", *places]


def test_help_is_worth_reading():
    for command in ([], ["audit"], ["measure"], ["report"], ["list"], ["data"]):
        assert "Usage" in invoke(*command, "--help")


def test_an_audit_names_its_report_and_prints_a_summary(audit: list[object], tmp_path: Path):
    result = RUN.invoke(app, [str(a) for a in audit], catch_exceptions=False)
    assert result.exit_code == 0
    assert "report.html" in result.stderr
    assert "kind" in result.stdout
    assert (tmp_path / "run" / "report.html").is_file()


def test_json_is_one_document_on_standard_output(audit: list[object]):
    answer = json.loads(invoke(*audit, "--json"))
    assert {row["metric"] for row in answer["results"]} == {"custom.probability"}
    assert answer["bad_images"] == []


def test_quiet_says_nothing(audit: list[object]):
    result = RUN.invoke(app, [str(a) for a in [*audit, "--quiet"]], catch_exceptions=False)
    assert (result.stdout, result.stderr) == ("", "")


def test_the_report_is_made_again_from_a_run(audit: list[object], tmp_path: Path):
    invoke(*audit, "--quiet")
    page = tmp_path / "run" / "report.html"
    page.unlink()
    invoke("report", tmp_path / "run")
    assert page.is_file()
    assert json.loads(invoke("report", tmp_path / "run", "--json"))["results"]


@pytest.mark.parametrize("what", ["models", "datasets", "benchmarks", "metrics", "prompts"])
def test_every_list_is_also_json(what: str):
    assert len(json.loads(invoke("list", what, "--json"))) > 1
    assert invoke("list", what)


def test_metrics_carry_their_unit_and_meaning():
    rows = {row["metric"]: row for row in json.loads(invoke("list", "metrics", "--json"))}
    assert "below 1" in rows["apa.bias_ratio"]["meaning"]
    assert rows["pfi.association"]["unit"] == "probability"


def test_own_prompts_are_previewed(prompts: Path):
    rows = json.loads(invoke("list", "prompts", "--file", prompts, "--json"))
    assert [row["concept"] for row in rows] == ["kind", "cold"]


def test_data_list_says_what_is_here(tmp_path: Path):
    rows = {row["name"]: row for row in json.loads(invoke("data", "list", "--data", tmp_path, "--json"))}
    assert rows["apa"]["state"] == "not here"
    assert rows["glasshouse"]["state"] == "embedded"


def test_data_where_says_how_to_get_it(tmp_path: Path):
    answer = invoke("data", "where", "apa", "--data", tmp_path)
    assert "is not there" in answer
    assert "beholder data fetch apa" in answer


def test_data_verify_names_what_is_damaged(people: Callable[..., Path]):
    folder = people(4)
    (folder / "00002.png").write_bytes(b"nonsense")
    result = RUN.invoke(app, ["data", "verify", f"folder:{folder}", "--json"])
    assert result.exit_code == 1
    assert list(json.loads(result.stdout)["damaged"]) == ["00002.png"]


@pytest.mark.real
def test_scores_made_elsewhere_are_measured(data: Path, golden: Path, tmp_path: Path):
    arguments = ["measure", "apa", "--scores", golden / "logits_mayors.npy", "--scores", golden / "logits_actors.npy"]
    answer = json.loads(invoke(*arguments, "--data", data, "--out", tmp_path, "--draws", 100, "--compat", "--json"))
    values = {(r["metric"], r["subset"], r["concept"]): r["value"] for r in answer["results"]}
    assert values["apa.association", "mayors", "occupation"] == 0.29296875
    assert values["apa.association", "actors", "category"] == 0.70947265625
    assert any("senate/association" in line for line in answer["left_out"])
    assert pl.read_parquet(tmp_path / "results.parquet").height == len(answer["results"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "--by", "gender"], "--by goes with --prompts"),
        (["audit", "--prompts", "x.csv"], "--dataset"),
        (["audit", "--traits", "x.csv"], "--benchmark gras"),
        (["data", "fetch", "apa"], "--data DIR"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], message: str):
    with pytest.raises(UsageError, match=message):
        RUN.invoke(app, arguments, catch_exceptions=False)


@pytest.mark.real
def test_own_traits_and_wordings_are_previewed_and_measured(data: Path, tmp_path: Path):
    (tmp_path / "traits.csv").write_text("trait,valence\nkind,positive\ncold,negative\n")
    (tmp_path / "words.csv").write_text("template,text\nplain,Is this person {}?\n")
    own = ["--traits", tmp_path / "traits.csv", "--templates", tmp_path / "words.csv", "--data", data]
    rows = json.loads(invoke("list", "prompts", "-b", "gras", *own, "--json"))
    assert [row["text"] for row in rows] == ["Is this person kind?", "Is this person cold?"]
    images = pl.read_csv(data / "gras" / "selected_images_fairface.csv")["file"][:200]
    scores = pl.DataFrame({"file": images, "kind|plain": pl.Series(range(200)) / 200, "cold|plain": 0.5})
    scores.write_csv(tmp_path / "scores.csv")
    answer = json.loads(
        invoke("measure", "gras", "--scores", tmp_path / "scores.csv", *own, "--out", tmp_path / "run", "--json")
    )
    assert {row["concept"] for row in answer["results"] if row["metric"] == "gras.welch"} == {"kind", "cold"}


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What the program says on leaving with an error."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["beholder", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 2
        return capsys.readouterr().err

    return run


def test_an_error_is_a_message_and_not_a_traceback(refused: Callable[..., str], tmp_path: Path):
    told = refused("audit", "null", "--benchmark", "appa", "--out", str(tmp_path))
    assert "UnknownName" in told
    assert "Did you mean 'apa'?" in told
    assert "Traceback" not in told


def test_markup_in_a_name_is_shown_not_interpreted(refused: Callable[..., str], tmp_path: Path):
    assert "'[bold]x[/bold]'" in refused("audit", "null", "--dataset", "[bold]x[/bold]", "--out", str(tmp_path))


def test_the_version_is_told():
    from importlib.metadata import version

    assert invoke("--version").strip() == f"beholder {version('beholder')}"


def test_a_printed_name_needs_a_run_to_stand_for():
    with pytest.raises(UsageError, match="replicate RUN --as NAME"):
        invoke("replicate", "--as", "ViT-B/32")


def test_a_folder_without_a_table_says_what_to_write(tmp_path: Path, prompts: Path):
    with pytest.raises(DataError, match="a column 'image_id' with the names of the image files"):
        invoke("audit", "null", "--prompts", prompts, "--dataset", f"folder:{_empty(tmp_path)}")


def _empty(folder: Path) -> Path:
    (folder / "photos").mkdir()
    return folder / "photos"


def test_a_known_model_that_cannot_be_fetched_is_not_taken_for_another(monkeypatch: pytest.MonkeyPatch):
    def unreachable(name: str, options: object) -> None:
        raise ModelError(f"{name} is not on this machine")

    monkeypatch.setattr("beholder.models.load.fetch", unreachable)
    for asked, meant in (("CLIP ViT-B/32", False), ("vit-b/3x", True)):
        with pytest.raises(ModelError) as told:
            load_model(asked)
        assert ("did you mean" in str(told.value)) == meant
