"""`beholder list models`: forms of a name, and the studies' models with what they take to run."""

from __future__ import annotations

import pytest

from beholder.cli.data import form_rows, model_rows, readable


def test_every_reference_model_and_every_form_has_a_line():
    names = [row["name"] for row in form_rows()]
    assert {"glasshouse/contrastive", "OWNER/NAME[@REVISION]", "null, null:SEED", "onnx:DIR"} <= set(names)
    assert len(set(names)) == len(names)
    assert all(row["what"] for row in form_rows())


def test_filters_keep_only_what_fits_them():
    everything = model_rows()
    small = model_rows(max_parameters="200M")
    assert 0 < len(small) < len(everything)
    assert all(isinstance(row["parameters"], int) and row["parameters"] <= 200_000_000 for row in small)
    generative = model_rows(family="generative", study="gras")
    assert generative
    assert all(row["family"] == "generative" and "gras" in row["studies"] for row in generative)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("tables", "text"), [({"apa": "Table 6"}, "apa Table 6"), ({"apa": "", "gras": "T1"}, "apa; gras T1")]
)
def test_a_line_for_the_terminal_names_the_tables(tables: dict[str, str], text: str):
    row = {**model_rows()[0], "studies": tables}
    assert readable(row)["tables"] == text
