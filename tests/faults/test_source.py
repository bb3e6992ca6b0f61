"""What must not be in the source: pickles, shells, code from data, and yaml that builds objects."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(path for folder in ("src", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {"os.system", "os.popen", "np.fromfile"}


def faults(tree: ast.AST) -> list[str]:
    """What a file does that none may do."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [f"imports {name}" for name in names if name.split(".")[0] in MODULES]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            options = {keyword.arg: keyword.value for keyword in node.keywords}
            given = {key: value.value for key, value in options.items() if isinstance(value, ast.Constant)}
            if name in BUILTINS or name in CALLS:
                found.append(f"calls {name}")
            if given.get("shell"):
                found.append(f"{name} with a shell")
            if "allow_pickle" in options and given.get("allow_pickle") is not False:
                found.append(f"{name} with what may be allow_pickle=True")
            if name == "torch.load" and given.get("weights_only") is not True:
                found.append("torch.load without weights_only=True")
            if name.startswith("subprocess.") and "shell" in options and given.get("shell") is not False:
                found.append(f"{name} with a shell")
            if given.get("trust_remote_code"):
                found.append(f"{name} runs code of others")
    return found


def test_the_source_is_found() -> None:
    assert len(FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_no_code_from_data(path: Path) -> None:
    assert faults(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from yaml import load",
        "np.load(p, allow_pickle=True)",
        "np.load(p, allow_pickle=trusted)",
        "torch.load(p)",
        "subprocess.run('ls', shell=True)",
        "os.system('ls')",
        "eval('1')",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
    ],
)
def test_the_search_finds_what_it_looks_for(code: str) -> None:
    assert faults(ast.parse(code))
