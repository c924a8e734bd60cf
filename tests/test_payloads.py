"""Strings that would run if they were not shown as text, in every name of a run, on every page, in a real browser.

The content policy is switched off for it: escaping alone must hold. The policy is tested where the pages are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beholder._audit import audit_models
from beholder._compare import compare_models
from beholder._options import AuditOptions
from beholder._run import Run, load_run
from beholder.prompts.prompt_set import prompt_set
from beholder.report.comparison import write_comparison
from beholder.report.page import write_page
from beholder.report.replication import ledger, write_replication
from beholder.scores.store import Places
from beholder.site import build_site
from beholder.studies.custom.study import custom_study
from beholder.view import scored_sets
from beholder.view.server import viewer

RUNS = "window.ran=1"
PAYLOADS = tuple(
    line.replace("RUN", RUNS).replace("AWAY", "http://payload.invalid")
    for line in r"""
<script>RUN</script>
</script><script>RUN</script>
<img src=x onerror=RUN>
"><img src=x onerror="RUN">
'><svg onload=RUN>
' onmouseover='RUN' autofocus onfocus='RUN
" onmouseover="RUN" autofocus onfocus="RUN
</title><script>RUN</script>
</style><script>RUN</script>
</textarea><script>RUN</script>
<!--><script>RUN</script>-->
]]><script>RUN</script>
javascript:RUN
<a href=javascript:RUN>x</a>
<iframe srcdoc='<script>parent.ran=1</script>'>
<details open ontoggle=RUN>
<object data=javascript:RUN>
<base href=AWAY/>
<link rel=stylesheet href=AWAY/a.css>
<meta http-equiv=refresh content='0;url=AWAY'>
<form action=AWAY><input name=x>
<img src=AWAY/a.png>
<style>@import 'AWAY/b.css';*{background:url(AWAY/c)}</style>
${RUN}
{{ [].constructor.constructor('RUN')() }}
{% raw %}RUN
\u003cscript\u003eRUN\u003c/script\u003e
&lt;script&gt;RUN&lt;/script&gt;
`;RUN;//
');RUN;//
");RUN;//
<math><mi xlink:href=javascript:RUN>x
<plaintext>
<xmp>
<noscript>
""".strip().splitlines()
)


def name(first: int) -> str:
    """All payloads in one name, another one first in each."""
    return f"{first} " + " ".join(PAYLOADS[first:] + PAYLOADS[:first])


WORDS = prompt_set(name(0), [{"text": name(k), "concept": name(k + 1), "level": name(4)} for k in range(3)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "people"
    folder.mkdir()
    rng, rows = np.random.default_rng(1), []
    for i in range(24):
        file = f'{i} <img src=x onerror={RUNS}> ".png'
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(folder / file)
        rows.append({"image": file, "gender": name(5 + i % 2), "' onfocus=window.ran=1 x='": name(7 + i % 3)})
    pl.DataFrame(rows).write_csv(folder / "people.csv")
    return folder


@pytest.fixture
def pages(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every page that is written to disk."""
    monkeypatch.setattr("beholder._steps.write_page", lambda report, folder: folder)  # it is written below
    data = f"folder:{folder}"
    options = AuditOptions(dataset=data, out=tmp_path / "run", store=tmp_path / "store", draws=100)
    study = custom_study(WORDS, by=("gender",))
    run = audit_models(["null", "null:2"], [study], options)
    renamed = run.results.with_columns(pl.col("model").replace_strict({"null": name(10), "null:2": name(11)}))
    record = replace(run.record, left_out=[name(12)], bad_images=[{"image": name(13), "reason": name(14)}])
    record.models = [{**each, "name": name(10 + k), "notes": [name(15)]} for k, each in enumerate(record.models)]
    record.datasets = [{**each, "notes": [name(16)]} for each in record.datasets]
    hostile = Run(renamed.with_columns(dataset=pl.lit(name(17)), note=pl.lit(name(18))), record, run.prompts)
    hostile.save(tmp_path / "hostile")
    hostile.save_findings(tmp_path / "hostile")
    cells = ledger().head(3).with_columns(model=pl.lit(name(19)), metric=pl.lit(name(20)))
    compared = compare_models(("null", "null:2"), [study], replace(options, out=None), parts=3)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8>{hostile._repr_html_()}", encoding="utf-8")
    site = build_site([tmp_path / "hostile"], tmp_path / "site", published=False, title=name(21)).parent
    return [
        notebook,
        write_page(hostile.report, tmp_path / "hostile"),
        write_replication(cells, [], tmp_path / "replication", models=[name(22)]),
        write_comparison(compared, tmp_path / "comparison"),
        *(path for path in site.rglob("*.html") if "runs" not in path.relative_to(site).parts),
    ]


@pytest.fixture
def address(pages: list[Path], tmp_path: Path) -> Iterator[str]:
    """The viewer of the same run."""
    import uvicorn

    sheets = scored_sets([(tmp_path / "run", load_run(tmp_path / "run"))], Places(store=tmp_path / "store"))
    server = uvicorn.Server(uvicorn.Config(viewer(sheets, "token"), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/token/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(bypass_csp=True)
    yield context.new_page()
    context.close()


@pytest.mark.slow
def test_no_name_runs_or_sends_anything_on_any_page(pages: list[Path], address: str, page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    shown = ""
    for target in (*(path.as_uri() for path in pages), address):
        page.goto(target)
        page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        page.mouse.move(200, 200)
        page.mouse.wheel(0, 3000)
        page.wait_for_timeout(50)
        assert page.evaluate("window.ran") is None, target
        handlers = "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => /^on/.test(a.name)))"
        assert page.evaluate(f"{handlers}.length") == 0, target
        assert page.evaluate("document.querySelectorAll('iframe, object, base, plaintext, xmp').length") == 0, target
        shown += page.inner_text("body")
    assert not [url for url in asked if "payload.invalid" in url or url.endswith("/x")]
    assert [payload for payload in PAYLOADS if payload not in shown] == [], "all are shown as text"
