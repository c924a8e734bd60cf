"""What the code may not do anywhere: unpickle, run text as code, skip certificates, unpack blindly."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "cloudpickle"}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "os.system", "os.popen", "yaml.load", "pickle.loads", "torch.jit.load",
    "shutil.unpack_archive", "ssl._create_unverified_context", "pl.read_pickle",
}  # fmt: skip
NEEDED = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}
REFUSED = {
    ("shell", True),
    ("verify", False),
    ("allow_pickle", True),
    ("weights_only", False),
    ("check_hostname", False),
}
REFUSED_METHODS = {"extractall"}


def faults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of everything that is forbidden."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from ((node.lineno, name) for name in names if name.partition(".")[0] in FORBIDDEN_MODULES)
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)}
            if name in FORBIDDEN_CALLS or name.rpartition(".")[2] in REFUSED_METHODS:
                yield node.lineno, name
            if name in NEEDED and given.get(NEEDED[name][0]) is not NEEDED[name][1]:
                yield node.lineno, f"{name} without {NEEDED[name]}"
            yield from ((node.lineno, str(pair)) for pair in given.items() if pair in REFUSED)


def test_no_module_unpickles_runs_text_or_skips_a_certificate():
    files = [path for folder in ("src", "tools", "speed") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 200
    found = [(str(path.relative_to(ROOT)), *fault) for path in files for fault in faults(ast.parse(path.read_text()))]
    assert not found


@pytest.mark.parametrize(
    "text",
    ["import pickle", "torch.load(x)", "np.load(x, allow_pickle=True)", "run(x, shell=True)", "tar.extractall(x)"],
)
def test_such_things_are_found(text: str):
    assert list(faults(ast.parse(text)))


def test_every_dependency_is_locked_with_hashes_and_no_index_is_named():
    text = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^([a-z0-9._-]+)==(\S+)(.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)+)", text, re.MULTILINE)
    locked = {name: version for name, version, _ in pins}
    assert len(re.findall(r"^[^ #\n]", text, re.MULTILINE)) == len(locked) > 100
    assert "://" not in text
    constraints = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    other = {name: version for name, version in constraints if locked.get(canonical(name), version) != version}
    assert not other, "constraints.txt and requirements.lock pin the same versions: make lock"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*extras["dependencies"], *(each for name in LOCKED for each in extras["optional-dependencies"][name])]
    names = {canonical(re.split(r"[\[<>=! ;]", each)[0]) for each in needed} - {"torch", "beholder-audit"}
    assert not names - set(locked), "make lock"


def test_every_promise_names_tests_that_exist():
    rows = [line for line in (ROOT / "docs" / "trust.md").read_text().splitlines() if line.startswith("| ")]
    promises = [line for line in rows if not line.endswith("| Test |")]
    assert len(promises) > 15
    for line in promises:
        named = re.findall(r"`(tests/[\w/.]+?)(?:::(\w+))?`", line.rpartition(" | ")[2])
        assert named, line
        for path, test in named:
            assert (ROOT / path).exists(), path
            assert not test or f"def {test}(" in (ROOT / path).read_text(), test


LOCKED = ("torch", "onnx", "view", "dev")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
