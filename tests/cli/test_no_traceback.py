"""Two hundred mistakes, in process: each ends with one message of ours, and none with a traceback or a fault."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beholder.cli import main

FILES = {
    "people/people.csv": "Image;Gender;Age;note\na.png;m;23,5;x\nb.png;M;n/a;\nc.png;f;41,0;y\n",
    "nopics/people.csv": "image,gender\nx.png,m\ny.png,f\n",
    "noimage/people.csv": "picture,gender\na.png,m\n",
    "twocols/people.csv": "image,Gender,gender\na.png,m,m\n",
    "ragged/people.csv": "image,gender\na.png,m,extra\n",
    "empty/people.csv": "",
    "header/people.csv": "image,gender\n",
    "twice/people.csv": "image,gender\na.png,m\na.png,f\n",
    "climbs/people.csv": "image,gender\n../a.png,m\n",
    "two/a.csv": "image,gender\na.png,m\n",
    "two/b.csv": "image,gender\na.png,m\n",
    "broken/people.jsonl": '{"image": "a.png"\n',
    "list/people.jsonl": "[1, 2]\n",
    "broken/x.parquet": "PAR1 no",
    "prompts.csv": "text\na kind person\na cold person\n",
    "one.csv": "text\na kind person\n",
    "notext.csv": "words\na kind person\n",
    "blank.csv": "text\n\n",
    "rule.csv": "text,correct_for\na kind person,gender\n",
    "same.csv": "text\na kind person\na kind person\n",
    "scores.csv": "image_id,a kind person\na.png,high\n",
    "strangers.csv": "image_id,a kind person,a cold person\nz.png,1,2\n",
    "map.csv": "value;group;more\nm;man;x\n",
    "twomaps.csv": "value;group\nm;man\nm;woman\n",
    "audit.toml": "limt = 3\n",
    "broken.toml": "limit = \n",
    "upload.toml": "allow_upload = true\n",
    "kind.toml": "limit = [1, 2]\n",
    "gate.toml": "rules = 3\n",
    "run.json": "{}",
    "badrun/run.json": '{"schema": 99}',
    "listrun/run.json": "[]",
}
AUDIT = "audit null --dataset folder:people --prompts prompts.csv"
FOLDERS = "people nopics noimage twocols ragged empty header twice climbs two broken list nowhere prompts.csv".split()
RUNS = ("nowhere", "people", "badrun", "listrun", "prompts.csv")
OPTIONS = (
    *("--nope", "--limit 0", "--limit -3", "--limit x", "--limit 1.5", "--draws 1", "--draws many", "--delta 5"),
    *("--delta 0", "--delta -1", "--delta nan", "--seed x", "--bins age", "--bins age=", "--bins age=3,2,1"),
    *("--bins age=a,b", "--bins gender=1,2", "--bins nothing=1,2", "--set split", "--set split=x", "--set =x"),
    *("--set image=nothing", "--set image", "--image-column nothing", "--image-column", "--by nothing", "--by"),
    *("--by gender,nothing", "--by Gendre", "--within nothing", "--within nothing,age", "--person nothing"),
    *("--map gender", "--map =", "--map :=", "--map gender=", "--map gender=nowhere.csv", "--map gender=map.csv"),
    *("--map gender=twomaps.csv", "--map gender:x=y", "--map nothing:m=man", "--map gender:m", "--map gender=people"),
    *("--device nothing", "--precision nothing", "--decode nothing", "--batch-size 0", "--perturb 9", "--engine x"),
    *("--workers 0", "--gpus-per-worker -1", "--store prompts.csv", "--out prompts.csv", "--out prompts.csv/x"),
    *("--config nowhere.toml", "--config audit.toml", "--config broken.toml", "--config upload.toml"),
    *("--config kind.toml", "--config prompts.csv", "--config people", "--log nothing", "--study nothing", "-s gras"),
    *("--study custom", "--prompts nowhere.csv", "--prompts people", "--prompts notext.csv", "--prompts blank.csv"),
    *(
        "--prompts rule.csv",
        "--prompts same.csv",
        "--prompts prompts.csv --prompts one.csv --by",
        "--data nowhere -s apa",
    ),
)
MODELS = (
    *("nothing", "no/such/model", "./nowhere", "/nowhere", "null:x", "onnx:nowhere", "onnx:people", "onnx:"),
    *("predictions:nowhere", "predictions:", "openclip:nothing", "openclip:", "openai:x", "openai:m@nowhere"),
    *("glasshouse/nothing", "people", "prompts.csv", "''", "hf:", "@x", "a@b", "../x", "null null"),
)
OTHERS = (
    *(
        "nonsense",
        "data nonsense",
        "list nonsense",
        "data check",
        "data check nothing",
        "data check hf:",
        "data check wds:",
    ),
    *("data check hf:nowhere/at/all", "data check hf:people/x.csv", "data check wds:people", "data check wds:nowhere"),
    *(
        "data check folder:",
        "data where nothing",
        "data fetch nothing",
        "data fetch gras",
        "data fetch fairface --data .",
    ),
    *("data settings nothing", "data mend utkface", "data mend", "data verify nothing", "data card nothing"),
    *(
        "data verify apa",
        "data verify fairface --data nowhere",
        "data card folder:nowhere --out x",
        "list prompts -s nothing",
    ),
    *("list prompts --file nowhere.csv", "list prompts --file notext.csv", "list models --family nothing"),
    *("list models --max-parameters many", "list models --study nothing", "plan", "plan nothing", "plan custom"),
    *("plan gras --power 2", "plan gras --effect -1", "plan gras --run nowhere", "plan apa --dataset nothing"),
    *("plan perception --dataset folder:empty", "plan gras --dataset folder:people --person nothing"),
    *(
        "plan --cost nothing",
        "plan gras --cost ./nowhere",
        "measure",
        "measure custom",
        "measure nothing --scores x.csv",
    ),
    *("measure apa --scores nowhere.csv", "measure gras --scores people --data nowhere", "measure exposure --scores x"),
    *("measure custom --scores scores.csv --prompts prompts.csv --dataset folder:people",),
    *("measure custom --scores strangers.csv --prompts prompts.csv --dataset folder:people",),
    *("measure custom --scores prompts.csv --prompts prompts.csv --dataset folder:people",),
    *("measure custom --scores strangers.csv --prompts prompts.csv", "compare", "compare null", "compare null null"),
    *(
        "compare nowhere1 nowhere2",
        "gate",
        "gate nowhere",
        "gate badrun --rules gate.toml",
        "gate people --rules nowhere",
    ),
    *(
        "exposure",
        "exposure nowhere.txt",
        "exposure people/people.csv",
        "exposure people",
        "exposure prompts.csv --column 9",
    ),
    *(
        "replicate --as x",
        "replicate nowhere",
        "calibrate --worlds 0",
        "calibrate -s nothing",
        "calibrate --from nowhere",
    ),
    *("calibrate --design nothing", "calibrate --world nothing", "export nowhere", "export nowhere --to nothing"),
    *("view nowhere", "site nowhere", "runs nothing", "runs --nope", "store nothing", "bench nothing"),
    *("--plugin nowhere.py audit", "--plugin prompts.csv audit", "--plugin no.such.module audit", "verify nowhere"),
)
PEOPLE = "--dataset people --image-column Image"
MORE = (
    *("plan --prompts nowhere.csv", "plan --prompts prompts.csv", f"plan --prompts notext.csv {PEOPLE}"),
    *(f"plan --prompts prompts.csv {PEOPLE} {each}" for each in ("--by nothing", "--map gender", "--map x:m=n")),
    *(f"plan --prompts prompts.csv {PEOPLE} {each}" for each in ("--bins age=x", "--set split=x", "--by gender")),
    *("plan gras --prompts prompts.csv", "plan apa --traits prompts.csv", "plan --cost null --prompts prompts.csv"),
    *("plan gras --bins age=1,2", "plan gras --dataset people --set image=nothing", "plan pairs --dataset people"),
    *("data check table:0", "data settings", "data select folder:people --by gender", "data select nothing --by x"),
    *("data select folder:people --by nothing --each 2", "data select folder:people --by gender --each 0"),
    *("data select folder:people --by gender --each 2 --count 3", "data collect", "data collect nowhere.csv"),
    *(
        "data collect notext.csv --out x",
        "data card folder:people --croissant --out prompts.csv/x",
        "data list --data x y",
    ),
    *("init --by", "init prompts.csv --model null --by gender", "init people --dataset nowhere:x --by gender"),
    *("audit null --precision bf16", "audit null --device cuda"),
    *("audit null --prompts one.csv --dataset people --by gender", "audit null -s gras --limit 0", "audit null -s x,y"),
    *("audit null --people nowhere.csv", "audit null --people notext.csv", "audit null --people map.csv -s apa"),
    *("audit null --dataset table:0 --prompts prompts.csv", "audit null --dataset hf:people --prompts prompts.csv"),
    *(
        "compare null --dataset people",
        "compare nowhere null",
        "compare badrun listrun",
        "compare null null:1 -s nothing",
    ),
    *("gate people", "gate badrun", "gate nowhere --baseline nowhere", "gate people --junit prompts.csv/x"),
    *(
        "export people --to nothing",
        "export badrun --to evidence",
        "export listrun --to markdown",
        "report badrun --figures x",
    ),
    *("site people badrun", "view people", "view badrun --port 0", "view nowhere --port x", "verify people"),
    *(
        "store check nothing",
        "store clean --older nothing",
        "store --store prompts.csv",
        "bench tree --nothing",
        "runs x y",
    ),
    *("calibrate --worlds x", "calibrate -s custom --worlds -1", "replicate --run nothing"),
    *("exposure twomaps.csv --column nothing", "exposure map.csv --run nowhere", "exposure broken/x.parquet"),
    *("list metrics nothing", "list datasets --nope", "list prompts -s exposure", "list prompts -s custom"),
)
MISTAKES = (
    *MORE,
    *(f"data check folder:{each}" for each in FOLDERS),
    *(f"audit null --prompts prompts.csv --by gender -q --dataset folder:{each}" for each in FOLDERS),
    *(f"{AUDIT} {each}" for each in OPTIONS),
    *(f"audit {each} --dataset folder:people --prompts prompts.csv" for each in MODELS),
    *(f"{command} {each}" for command in ("report", "verify") for each in RUNS),
    *OTHERS,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    for number, name in enumerate("abc"):
        Image.fromarray(np.full((4, 4, 3), 60 * number, dtype=np.uint8)).save(place / "people" / f"{name}.png")
    return place


def test_there_are_two_hundred_of_them():
    assert len(set(MISTAKES)) >= 200


@pytest.mark.slow
def test_no_mistake_ends_in_a_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BEHOLDER_STORE", str(folder / "store"))
    monkeypatch.delenv("BEHOLDER_DATA", raising=False)
    wrong = {}
    for command in MISTAKES:
        words = [word.strip("'") for word in command.split()]
        monkeypatch.setattr(sys, "argv", ["beholder", *words])
        try:
            main()
        except SystemExit as left:
            said = capsys.readouterr()
            if left.code not in (1, 2) or "Fault:" in said.err or "Traceback" in said.err + said.out:
                wrong[command] = (left.code, said.err[-300:])
            elif not (said.err + said.out).strip():
                wrong[command] = (left.code, "nothing was said")
        except BaseException as error:
            capsys.readouterr()
            wrong[command] = ("raised", repr(error)[:300])
    assert not wrong, "\n".join(f"{command}: {code}: {said}" for command, (code, said) in wrong.items())


def test_a_fault_of_ours_is_one_sentence_and_a_file_to_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    def broken(**_: object) -> None:
        raise ZeroDivisionError("of s3://me:secret@bucket/x")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("beholder.cli.app", broken)
    monkeypatch.setattr(sys, "argv", ["beholder", "audit", "s3://me:secret@bucket/x"])
    with pytest.raises(SystemExit) as left:
        main()
    said, (file,) = capsys.readouterr().err, tmp_path.glob("beholder-fault-*.txt")
    assert left.value.code == 2
    assert said == (
        "Fault: this should not have happened (ZeroDivisionError: of s3://***@bucket/x).\n"
        f"Please report it with the file {file}: it has the command and the traceback; look through it first, since it "
        "may name files of yours.\n"
    )
    assert "Traceback (most recent call last)" in file.read_text()
    assert "secret" not in said + file.read_text()
