"""Small functions by example: a call in the module that has it, and what it gives."""

from importlib import import_module

import pytest

EXAMPLES = [
    ("_gate", 'worsening("lower", {"first": 0.2, "second": 0.3, "low": 0.05, "high": 0.15})[1:]', "(0.05, 0.15)"),
    (
        "cli.audit",
        'scores_by_model(["Detic=boxes.json", "maps"], "LSeg")',
        "{'Detic': [PosixPath('boxes.json')], 'LSeg': [PosixPath('maps')]}",
    ),
    (
        "cli.console",
        'pace(25.0, 1000, 9000, "images"), pace(0.4, 10, 0, "images")',
        "('25.0 images/s, 40 s left, about 6.7 min for the run', '2.5 s/image, 25 s left')",
    ),
    (
        "cli.console",
        "duration(4.2), duration(42), duration(95), duration(9000)",
        "('4.2 s', '42 s', '1.6 min', '2.5 h')",
    ),
    ("cli.console", "size(999), size(1_234_567)", "('999 B', '1.2 MB')"),
    ("cli.console", 'shortened("onnx:/models/a/b: images", 8)', "'b: imag…'"),
    ("comparison.family", "normal_scale(np.array(2.571), np.array(5.0)).round(2)", "np.float64(1.96)"),
    ("comparison.power", "round(smallest_found(lambda size: min(size, 1.0)), 3)", "0.8"),
    ("comparison.power", "people_needed(0.2, 0.1)", "4.0"),
    (
        "comparison.shuffles",
        "shares_of(np.array([2.0]), np.array([[3.0], [1.0]]), np.array([2]), np.array([[1], [1]]))[0].ravel().tolist()",
        "[0.5, 1.5]",
    ),
    (
        "core.errors",
        'masked("https://me:pass@host/a?v=1&token=abc and s3://bucket/b"), masked("openai:m@http://host/v1?max=3")',
        "('https://***@host/a?v=1&token=*** and s3://bucket/b', 'openai:m@http://host/v1?max=3')",
    ),
    (
        "core.files",
        '[leads_out(name) for name in ("faces/a.jpg", "a..jpg", "../a.jpg", "/etc/passwd", "C:\\\\a.jpg", "s3://a/b")]',
        "[False, False, True, True, True, True]",
    ),
    (
        "core.files",
        'place("s3://bucket/scores"), place(Path("s3://bucket/scores")), place("file:///tmp/a")',
        "(RemotePath('s3://bucket/scores'), RemotePath('s3://bucket/scores'), PosixPath('/tmp/a'))",
    ),
    (
        "core.options",
        'values_of("age"), values_of(["age", "race"]), values_of(None)',
        "(('age',), ('age', 'race'), ())",
    ),
    (
        "core.results",
        'place({"subset": "actors", "group": None, "against": None, "concept": "actor", "template": None})',
        "'actors · actor'",
    ),
    ("core.read", 'column_name(" Skin Tone")', "'skin_tone'"),
    (
        "core.read",
        'as_csv(pl.DataFrame({"group": ["=1+1", "a-b"], "value": [-1.5, 2.0]}))',
        'b"group,value\\n\'=1+1,-1.5\\na-b,2.0\\n"',
    ),
    (
        "datasets.settings",
        'sorted(words_of("A man\'s hat.")), sorted(words_of("A man\'s hat.", "blanks"))',
        "(['a', 'hat', 'man', 's'], ['a', 'hat.', \"man's\"])",
    ),
    ("datasets.shards", 'list(_expanded("a-{08..10}.tar"))', "['a-08.tar', 'a-09.tar', 'a-10.tar']"),
    ("metrics.calibration", "equal_width_bins(np.array([0.0, 0.1, 0.11, 1.0]))", "array([0, 0, 1, 9])"),
    (
        "models.albef",
        'albef_caption("This is a photo of a U.S. House-member.")',
        "'this is a photo of a us house member'",
    ),
    (
        "models.albef",
        'lavis_caption("This is a photo of a U.S. House-member.")',
        "'this is a photo of a u s house-member'",
    ),
    ("models.generative.answers", '_variants("Yes")', "['Yes', ' Yes', 'yes', ' yes', 'YES', ' YES']"),
    ("models.predictions", 'same_name("Dining_table ")', "'dining table'"),
    (
        "models.predictions",
        'same_image("000000000139.jpg"), same_image(139), same_image("actors/000.jpg")',
        "('139', '139', 'actors/000')",
    ),
    ("models.scorer", "list(batches([1, 2, 3], 2))", "[[1, 2], [3]]"),
    ("models.spec", 'device_names("cuda:0,cuda:2")', "['cuda:0', 'cuda:2']"),
    ("prompts.prompt_set", 'correct_for(gender="woman", name="Brown & Co")', "'gender=woman&name=Brown %26 Co'"),
    (
        "report.exports",
        '[_without_folders(word) for word in ("/home/ann/clip/", "folder:~/my staff", "a/b", "--data=C:\\\\a\\\\b")]',
        "['clip', 'folder:my staff', 'a/b', '--data=b']",
    ),
    ("report.exports", '_md("<b> a|b *c*")', "'\\\\<b\\\\> a\\\\|b \\\\*c\\\\*'"),
    ("report.exports", '_tex("50 % of a_b, 人")', "'50 \\\\% of a\\\\_b, U+4EBA'"),
    (
        "report.exports",
        '_name({"model": "m", "dataset": "d", "metric": "b.ratio", "subset": "women & men"}, several=True)',
        "'m/d/b.ratio/women men'",
    ),
    (
        "report.facts",
        'people({"persons": {"described": "2 people, 3 pictures; each person counts once", "column": "name"}})',
        "'2 people, 3 pictures; each person counts once (by the column name)'",
    ),
    (
        "report.page",
        'Ledger(pl.DataFrame({"a": ["x", None, "x"], "b": [1, 2, 3]}), [Column("A", ["a"])]).data["fields"]',
        "{'a': {'words': ['x'], 'cells': [0, None, 0]}}",
    ),
    (
        "report.page",
        'str(bold_numbers("31 % against <b>")), str(bold_numbers("for 60-69"))',
        "('<b>31 %</b> against &lt;b&gt;', 'for 60-69')",
    ),
    (
        "report.report",
        'slug("apa glasshouse/contrastive: bias"), len(slug("long " * 99))',
        "('apa-glasshouse-contrastive-bias', 181)",
    ),
    (
        "report.scorecard",
        'in_words(0.4, "ratio", 1.0), in_words(-0.82, "natural logarithm", 0.0), in_words(0.0006, "share", 0.0)',
        "('0.40 times', '0.44 times', '0.06 %')",
    ),
    ("studies.apa.prompts", 'article("actress"), article("US senator")', "('an', 'a')"),
    (
        "studies.exposure.chapter",
        "plain(1234.5), plain(-0.1234), plain(0.00123), plain(0)",
        "('1,234', '−0.12', '0.0012', '0')",
    ),
    ("studies.exposure.mentions", 'folded("Élan, vital\\nO\'Neil\\n".encode())', "b'elan  vital\\no neil\\n'"),
    (
        "studies.public_figures.measures",
        'correct_occupation("actors", "woman"), correct_occupation("athletes", "woman")',
        "('actress', 'athlete')",
    ),
    (
        "studies.public_figures.measures",
        'either_word("actress"), either_word("teacher")',
        "('actor or actress', 'teacher')",
    ),
]


@pytest.mark.parametrize(("module", "call", "expected"), EXAMPLES)
def test_example_holds(module: str, call: str, expected: str) -> None:
    assert repr(eval(call, vars(import_module(f"beholder.{module}")).copy())) == expected
