"""Attacks by the authors of files: what a table, an archive, a run folder or a file of options may not do."""

from __future__ import annotations

import csv
import io
import json
import socket
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_runs import custom_results, record
from PIL import Image

from beholder._compare import compare
from beholder._run import Run, load_run
from beholder.cli import main
from beholder.cli.audit import recorded_params, refuse_servers
from beholder.core.errors import BadImage, BadScores, BeholderError, DataError, MissingData, UsageError
from beholder.core.files import links_out
from beholder.core.results import SCHEMA as RESULTS
from beholder.datasets import load_dataset
from beholder.datasets.content import Part
from beholder.datasets.images import open_image
from beholder.report import report
from beholder.scores.imported import read_harness_log, read_score_file
from beholder.scores.store import Places
from beholder.site import build_site
from beholder.view import scored_sets


def picture(colour: str = "red") -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(sink, "PNG")
    return sink.getvalue()


RED = picture()
SIZE = len(RED)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every address that was looked up or connected to."""
    asked: list[object] = []

    def refused(*address: object, **_: object) -> Any:
        asked.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    return asked


# A cell of a table is the name of a file below the table, and nothing else

FORMS = [
    'crop:{"path":"SECRET","box":[0,0,8,8]}',
    'CROP:{"path":"SECRET","box":[0,0,8,8]}',
    ' crop:{"path":"SECRET","box":[0,0,8,8]}',
    '\u200bcrop:{"path":"SECRET","box":[0,0,8,8]}',
    './crop:{"path":"SECRET","box":[0,0,8,8]}',
    'crop:{"path":"http:\\/\\/127.0.0.1:9\\/a.png","box":[0,0,8,8]}',
    'crop:{"path":"\\u0068ttp:\\u002f/127.0.0.1:9/a.png","box":[0,0,8,8]}',
    'crop:{"path":"a.png","box":[0,0,8,8],"match":"SECRET"}',
    'perturbed:{"change":"resized to one pixel more","uri":"SECRET"}',
    'perturbed:{"change":"resized to one pixel more","uri":"crop:{}"}',
    f"wds:SECRET#0+{SIZE}#a.png", f"WDS:SECRET#0+{SIZE}#a.png", f"ｗds:SECRET#0+{SIZE}#a.png",
    f"wds:link#0+{SIZE}#a.png",
    "hf:SECRET#0+0#image", "HF:SECRET#0+0#image", "hf://datasets/a/b.png", "glasshouse:woman",
    "SECRET", "file:SECRET", "file:/SECRET", "file://SECRET", "FILE://SECRET", "simplecache::file://SECRET",
    "http://127.0.0.1:9/a.png", "HTTP:/127.0.0.1:9/a.png", "http:\\/\\/127.0.0.1:9\\/a.png", "//127.0.0.1/a.png",
    "zip://a.png::memory://b", "s3:/bucket/a.png", "memory://a.png",
    "../secret.png", "..\\secret.png", "sub/../../secret.png", "sub/./../../secret.png", "sub\\..\\..\\secret.png",
    "%2e%2e/secret.png", "..%2fsecret.png", "．．/secret.png", "..／secret.png", "..∕secret.png", "‥/secret.png",
    "a.png\0../secret.png", "a.png\n../secret.png", "~/secret.png", "$HOME/secret.png",
    "\\\\host\\share\\secret.png", "\\\\?\\C:\\secret.png", "C:secret.png", "c:/secret.png", "C:\\secret.png",
    "link", "LINK", "Link.", "folder/secret.png", "FOLDER/SECRET.PNG", "folder\\secret.png", "folder/./secret.png",
    "/proc/self/environ", "/dev/stdin",
]  # fmt: skip


@pytest.mark.parametrize("place", ["folder:.", "folder:people.csv", "folder:./people.csv", "folder:HOME"])
def test_no_cell_of_a_table_reads_a_file_elsewhere(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: list[object]
):
    """Internal forms, addresses, absolute and climbing paths of all systems, look-alikes, links; not one is opened."""
    home, secret = tmp_path / "open", tmp_path / "secret.png"
    (home / "sub").mkdir(parents=True)
    secret.write_bytes(RED)
    (home / "a.png").write_bytes(picture("blue"))
    (home / "link").symlink_to(secret)
    (home / "folder").symlink_to(tmp_path)
    monkeypatch.chdir(home)
    place = place.replace("HOME", str(home))

    def first(cell: str) -> Any:
        with (home / "people.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["image", "gender"], [cell, "woman"], ["a.png", "man"]])
        try:
            return open_image(load_dataset(place).table["uri"][0]).getpixel((0, 0))
        except BeholderError:
            return None

    assert {cell: seen for cell in FORMS if (seen := first(cell.replace("SECRET", str(secret))))} == {}
    assert first("./a.png") == (0, 0, 255)
    assert not no_network


@pytest.mark.parametrize("path", [cell for cell in FORMS if "link" not in cell.lower()])
def test_no_cell_of_a_shard_reads_a_file_elsewhere(path: str, tmp_path: Path, no_network: list[object]):
    """A row of `hf:` may name a file in place of its bytes: one below the folder."""
    home, secret = tmp_path / "open", tmp_path / "secret.png"
    home.mkdir()
    secret.write_bytes(RED)
    (home / "folder").symlink_to(tmp_path)
    cell = {"bytes": None, "path": path.replace("SECRET", str(secret))}
    pl.DataFrame({"image": [cell], "gender": ["woman"]}).write_parquet(home / "train.parquet")
    uri = load_dataset(f"hf:{home}").table["uri"][0]
    with pytest.raises(BadImage, match=r"the row has no picture|does not exist|cannot be read"):
        open_image(uri)
    assert not no_network


def tar(path: Path, name: str = "a.png") -> None:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = SIZE
        archive.addfile(member, io.BytesIO(RED))


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder whose table, tar and shard are links to files of somebody else."""
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    tar(away / "t.tar")
    pl.DataFrame({"image": [{"bytes": RED, "path": "a.png"}], "gender": ["woman"]}).write_parquet(away / "t.parquet")
    (away / "t.csv").write_text("image,gender\na.png,woman\n")
    (home / "a.png").write_bytes(RED)
    for ending in ("tar", "parquet", "csv"):
        (home / f"t.{ending}").symlink_to(away / f"t.{ending}")
    return home


@pytest.mark.parametrize("name", ["folder:{}/t.csv", "wds:{}", "wds:{}/t.tar", "hf:{}", "hf:{}/t.parquet"])
def test_a_table_or_shard_that_is_a_link_out_is_not_followed(name: str, linked: Path):
    with pytest.raises(DataError, match=r"t\.\w+ is a link to .*away/t(?s:.)*--set outside=allow"):
        load_dataset(name.format(linked))
    assert len(load_dataset(name.format(linked), settings={"outside": "allow"})) == 1


def test_the_one_table_of_a_folder_that_is_a_link_out_is_not_followed(linked: Path):
    (linked / "t.parquet").unlink()
    with pytest.raises(DataError, match=r"t\.csv is a link to"):
        load_dataset(f"folder:{linked}")


def test_a_snapshot_in_the_hubs_cache_is_read_by_its_links(tmp_path: Path):
    blobs = tmp_path / "datasets--a--b" / "blobs"
    snapshot = tmp_path / "datasets--a--b" / "snapshots" / "c0ffee" / "data"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    pl.DataFrame({"image": [{"bytes": RED, "path": "a.png"}], "gender": ["woman"]}).write_parquet(blobs / "1")
    (snapshot / "train.parquet").symlink_to("../../../blobs/1")
    (snapshot / "out.png").symlink_to(tmp_path / "x.png")
    assert len(load_dataset(f"hf:{snapshot.parent}")) == 1
    assert links_out(str(snapshot / "out.png"), str(snapshot))


@pytest.mark.parametrize("kind", ["wds", "hf"])
def test_a_shard_whose_name_reads_as_an_address_is_refused(kind: str, tmp_path: Path):
    """Its rows would be read from the file that the beginning of its name names: here a link to a private one."""
    (tmp_path / "home").mkdir()
    (tmp_path / "secret.png").write_bytes(RED)
    (tmp_path / "home" / "x").symlink_to(tmp_path / "secret.png")
    if kind == "wds":
        tar(tmp_path / "home" / f"x#0+{SIZE}#y.tar")
    else:
        table = pl.DataFrame({"image": [{"bytes": RED, "path": "a.png"}]})
        table.write_parquet(tmp_path / "home" / "x#0+0#y.parquet")
    with pytest.raises(BadImage, match="as addresses do"):
        load_dataset(f"{kind}:{tmp_path / 'home'}")
    assert str(Part("wds", "/a#b.tar", 1, 2, "c#3+4#d")) == "wds:/a#b.tar#1+2#c#3+4#d"


# A file of options is no command line


@pytest.mark.parametrize("line", ['engine = "ray://127.0.0.1:10001"', "yes = true", "allow-pickle = true"])
def test_a_file_of_options_lets_nothing_in_or_out(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], no_network: Any
):
    (tmp_path / "audit.toml").write_text(f"{line}\n")
    monkeypatch.setattr(sys, "argv", ["beholder", "audit", "null", "--config", str(tmp_path / "audit.toml")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "cannot come from a file. Say it each time: --" in capsys.readouterr().err
    assert not no_network


@pytest.mark.parametrize("where", ["https://evil.example/v1", "http://10.0.0.1/v1", "https://api.openai.com.evil.example/v1",
    "https://api.openai.com:8443/v1", "http://api.openai.com/v1", "https://localhost.evil.example/v1"])  # fmt: skip
def test_a_file_of_options_does_not_say_who_gets_the_key(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], no_network: Any
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdef")
    (tmp_path / "audit.toml").write_text(f'models = ["null", "openai:m@{where}"]\n')
    monkeypatch.setattr(sys, "argv", ["beholder", "audit", "--config", str(tmp_path / "audit.toml")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "the address of a server cannot come from a file: it would get your key" in capsys.readouterr().err
    assert not no_network


def test_a_file_of_options_may_name_servers_of_this_machine_and_of_openai():
    refuse_servers(["null", "openai:m@http://127.0.0.1:1/v1", "openai:m@http://localhost:1", "anthropic:m"], None)
    refuse_servers(["openai:gpt@https://api.openai.com/v1", "gemini:m"], None)


# A run folder reaches no network


@pytest.mark.parametrize(
    "origin", ["folder:s3://bucket/a", "hf:someone/faces", "wds:gs://b/{0..9}.tar", "hf://datasets/a"]
)
def test_opening_a_forged_run_reaches_no_network(origin: str, no_network: list[object], tmp_path: Path):
    """Not for scores, not to compare it, not to compute it again, and not for the store that its options name."""
    made = Run(record=record("clip"))
    made.record.datasets, made.record.studies = [{"name": "faces", "origin": origin}], ["apa"]
    made.save(forged := tmp_path / "forged")
    for attempt in (
        lambda: load_run(forged).scores(store=tmp_path),
        lambda: scored_sets([(forged, load_run(forged))], Places(None, tmp_path)),
        lambda: compare(forged, forged, store=tmp_path),
    ):
        with pytest.raises(MissingData, match=r"not on this machine. Nothing was asked of it(?s:.)*yourself: --data"):
            attempt()
    for line, option in ((f"dataset = '{origin}'", "data"), ("store = 's3://bucket/store'", "store")):
        (forged / "audit.toml").write_text(line + "\n")
        with pytest.raises(MissingData, match=f"yourself: --{option}"):
            recorded_params(forged, {})
    assert recorded_params(forged, {"store": "s3://bucket/store"})["store"]
    assert not no_network


# A site is built anew of checked data


@pytest.fixture
def site_run(apa_run: Run, tmp_path: Path) -> Path:
    """A small run, saved, in whose folder strangers have put more."""
    few = apa_run.results.filter(pl.col("metric") == "apa.bias_ratio")
    Run(few, apa_run.record).save(folder := tmp_path / "run")
    (folder / "report.html").write_text("<script>alert(1)</script>")
    (folder / "findings.json").write_text('{"findings": [{"sentence": "All is well."}]}')
    (folder / "results.csv").write_text("=cmd|'/c calc'!A1")
    (folder / "extra.html").write_text("FORGED")
    return folder


@pytest.mark.slow
def test_a_site_copies_nothing_of_a_forged_run_folder(site_run: Path, tmp_path: Path):
    record = json.loads((site_run / "run.json").read_text())
    (site_run / "run.json").write_text(json.dumps({**record, "hidden": "FORGED", "command": ["</script><b>"]}))
    build_site([site_run], tmp_path / "site", published=False)
    made = {path.name: path.read_text() for path in (tmp_path / "site" / "runs" / "run").glob("*.[hcj]*")}
    assert set(made) == {"report.html", "results.csv", "findings.json", "run.json", "prompts.csv"} & set(made)
    assert len(made) >= 4
    for text in made.values():
        assert not [forged for forged in ("alert(1)", "FORGED", "All is well", "calc'") if forged in text]
    assert "</script><b>" not in made["report.html"]
    assert "Content-Security-Policy" in made["report.html"]
    assert made["results.csv"].splitlines()[0] == ",".join(RESULTS)


@pytest.mark.parametrize("name", ["results.csv", "run.json", "results.parquet", "prompts.csv", "report.html"])
def test_a_site_reads_no_link_in_a_run_folder(name: str, site_run: Path, tmp_path: Path):
    (tmp_path / "id_rsa").write_text("PRIVATE KEY")
    (site_run / name).unlink(missing_ok=True)
    (site_run / name).symlink_to(tmp_path / "id_rsa")
    with pytest.raises(UsageError, match=f"{name} is a link to .*id_rsa, and a site follows none"):
        build_site([site_run], tmp_path / "site", published=False)
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("name", ["index.html", "runs", "runs/run", "runs/run/results.csv", "models", "old.html"])
def test_a_site_writes_through_no_link(name: str, site_run: Path, tmp_path: Path):
    """Nor does it leave one where a web server would follow it."""
    away = tmp_path / "away"
    away.mkdir()
    (away / "kept").write_text("kept")
    link = tmp_path / "site" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(away if "." not in name else away / "kept")
    with pytest.raises(UsageError, match=f"{name} is a link to"):
        build_site([site_run], tmp_path / "site", published=False)
    assert [path.name for path in away.iterdir()] == ["kept"]
    assert (away / "kept").read_text() == "kept"


# A page shows what matters, however many rows a results file has


@pytest.mark.slow
def test_the_report_grows_no_faster_than_its_rows(tmp_path: Path):
    """Five times the rows take no more than five times the processor time, and the page says where the rest is."""
    rows = custom_results()

    def seconds(copies: int) -> float:
        named = [rows.with_columns(concept=pl.col("concept") + f" {place}") for place in range(copies)]
        Run(pl.concat(named), record("clip")).save(folder := tmp_path / str(copies))
        began = time.process_time()
        report = load_run(folder).report
        figures = [
            json.dumps(figure.spec(ink="black", width=600)) for section in report.sections for figure in section.figures
        ]
        assert max(map(len, figures)) < 400_000
        assert max(len(table.rows) for section in report.sections for table in section.tables) <= 1000
        told = [str(table.notes) for table in report.sections[0].tables], report.sections[0].figures[0].caption
        assert (copies < 600) or ("more rows are in results.csv" in str(told) and "all are in results.csv" in told[1])
        return time.process_time() - began

    seconds(2)  # imports
    assert seconds(1200) < 5 * seconds(240) + 1.0


def test_no_section_has_more_than_40_charts_or_models_in_a_chart(tmp_path: Path):
    """One chart for each model and level; the last says that there are more, and all say of how many models."""
    rows = [custom_results(f"model {place}").with_columns(template=pl.lit("mood")) for place in range(45)]
    twice = [part.with_columns(template=pl.lit("other")) for part in rows]
    Run(pl.concat([*rows, *twice]), record("clip")).save(tmp_path / "run")
    (section,) = load_run(tmp_path / "run").report.sections
    assert len(section.figures) == report.MOST_FIGURES == 40
    assert {figure.model for figure in section.figures} <= {f"model {place}" for place in range(report.MOST_MODELS)}
    assert "More of them are not drawn; all numbers are in results.csv." in section.figures[-1].caption
    assert all("the first 40 of 45 models; all are in results.csv" in each.caption for each in section.figures)
    assert {finding.model for finding in section.findings} == {f"model {place}" for place in range(45)}


@pytest.mark.parametrize("label", ['{"gender": "\\ud800"}', '{"age": 1e999}', '{"age": ' + "9" * 400 + "}", "[" * 9999])
def test_a_label_in_a_tar_that_is_no_text_is_an_error(label: str, tmp_path: Path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, data in (("a.png", RED), ("a.json", label.encode())):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    with pytest.raises(DataError, match=r"a\.tar: a\.json (has|is)"):
        load_dataset(f"wds:{tmp_path / 'a.tar'}")


def test_a_tar_that_says_it_is_larger_than_any_disk_is_an_error(tmp_path: Path):
    member = tarfile.TarInfo("a.txt")
    member.size = (1 << 63) - 1
    (tmp_path / "a.tar").write_bytes(member.tobuf(tarfile.GNU_FORMAT) + b"x" * 512)
    with pytest.raises(DataError, match=r"a\.tar"):
        load_dataset(f"wds:{tmp_path / 'a.tar'}")


def test_metadata_that_declares_an_absent_image_column_is_an_error(tmp_path: Path):
    table = pl.DataFrame({"gender": ["woman"]}).to_arrow()
    features = {"info": {"features": {"image": {"_type": "Image"}}}}
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(features)}), tmp_path / "a.parquet")
    with pytest.raises(DataError):
        load_dataset(f"hf:{tmp_path}")


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.GNUTYPE_SPARSE])
@pytest.mark.parametrize("size", [8**12, 1 << 62])
def test_a_tar_with_a_member_larger_than_memory_is_an_error(size: int, kind: bytes, tmp_path: Path):
    member = tarfile.TarInfo("a.png")
    member.size, member.type = size, kind
    (tmp_path / "a.tar").write_bytes(member.tobuf(tarfile.GNU_FORMAT) + b"x" * 512)
    with pytest.raises(DataError, match=r"a\.tar"):
        open_image(load_dataset(f"wds:{tmp_path / 'a.tar'}").table["uri"][0])


@pytest.mark.parametrize("size", ["-5", "9" * 40])
def test_a_tar_with_a_size_that_is_none_is_an_error(size: str, tmp_path: Path):
    member = tarfile.TarInfo("a.png")
    member.pax_headers = {"size": size}
    (tmp_path / "a.tar").write_bytes(member.tobuf(tarfile.PAX_FORMAT) + b"x" * 512)
    with pytest.raises(DataError, match=r"a\.tar"):
        load_dataset(f"wds:{tmp_path / 'a.tar'}")


def test_names_of_classes_with_half_a_character_are_an_error(tmp_path: Path):
    table = pl.DataFrame({"image": [{"bytes": RED, "path": "a.png"}], "gender": [0]}).to_arrow()
    features = {"info": {"features": {"gender": {"names": ["\ud800"]}}}}
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(features)}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: the names of its classes have half a character"):
        load_dataset(f"hf:{tmp_path}")


@pytest.mark.parametrize("text", ["crop:x", "crop:{}", "crop:[]", "crop:5", "perturbed:x", "perturbed:{}"])
def test_a_text_that_only_begins_as_our_own_forms_do_is_an_error(text: str):
    with pytest.raises(BadImage, match="is not an address of a crop"):
        open_image(text)


@pytest.mark.parametrize("choices", [5, True, {"Yes": 1, "No": 2}, "Yes"])
@pytest.mark.parametrize("log", ["inspect", "lmms"])
def test_choices_that_are_no_list_are_told(log: str, choices: object, tmp_path: Path):
    about = {"image_id": "a.png", "prompt_id": "kind", "choices": choices}
    said = {"id": 1, "metadata": about, "output": {"choices": [{"message": {"content": "Yes"}}]}}
    entry = {"eval": {}, "status": "success", "samples": [said]}
    if log == "lmms":
        entry = {"filtered_resps": ["(-0.5, True)", "(-1.5, False)"], "beholder": about}
    path = tmp_path / ("a.json" if log == "inspect" else "a.jsonl")
    path.write_text(json.dumps(entry))
    with pytest.raises(BadScores, match="'choices' must be a list of answers; it is "):
        read_harness_log(path)


@pytest.mark.parametrize("output", [5, [1], "x", {"choices": 5}, {"choices": {"a": 1}}, {"choices": [None]}])
def test_an_output_that_is_no_answer_is_told(output: object, tmp_path: Path):
    said = {"id": 1, "metadata": {"image_id": "a.png", "prompt_id": "kind"}, "output": output}
    (tmp_path / "a.json").write_text(json.dumps({"eval": {}, "status": "success", "samples": [said]}))
    with pytest.raises(BadScores, match=r"a\.json, sample 1: the reply holds no choices"):
        read_harness_log(tmp_path / "a.json")


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "Nowhere/Zone")])
@pytest.mark.parametrize("column", ["image_id", "prompt_id"])
def test_an_id_that_is_a_time_beyond_all_calendars_is_told(column: str, kind: pa.DataType, tmp_path: Path):
    columns = {"image_id": pa.array(["a"]), "prompt_id": pa.array(["b"]), "score": pa.array([0.5])}
    pq.write_table(pa.table(columns | {column: pa.array([2**62], kind)}), tmp_path / "a.parquet")
    with pytest.raises(BadScores, match=r"a\.parquet: ids of the type timestamp.* cannot be read as texts"):
        read_score_file(tmp_path / "a.parquet", [])


@pytest.mark.parametrize("name", ["*", "^.*$"])
def test_a_column_whose_name_is_a_pattern_is_told(name: str, tmp_path: Path):
    (tmp_path / "a.png").write_bytes(RED)
    (tmp_path / "people.csv").write_text(f"image,gender,{name}\na.png,woman,1\n")
    with pytest.raises(DataError, match="has the form of a search pattern"):
        load_dataset(f"folder:{tmp_path}")


def test_nan_in_a_column_of_texts_is_no_label(tmp_path: Path):
    (tmp_path / "metadata.jsonl").write_text(
        '{"file_name": "a.png", "name": "x"}\n{"file_name": "b.png", "name": NaN}\n'
    )
    assert load_dataset(f"folder:{tmp_path}").table["name"].to_list() == ["x", None]


def test_a_shard_that_was_replaced_is_read_anew(tmp_path: Path):
    for colour in ("red", "blue"):
        table = pl.DataFrame({"image": [{"bytes": picture(colour), "path": "a.png"}], "gender": [colour]})
        table.write_parquet(tmp_path / "a.parquet", statistics=colour == "red")
        pixel = open_image(load_dataset(f"hf:{tmp_path}").table["uri"][0]).getpixel((0, 0))
        assert pixel == {"red": (255, 0, 0), "blue": (0, 0, 255)}[colour]
