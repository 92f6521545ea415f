"""The project as the tidy tests read it: its files, and its Python as syntax trees."""

import ast
import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Folders that tools write; whatever else lies in the checkout is the project.
NOT_OURS = {
    ".git",
    ".venv",
    ".samsa",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "__pycache__",
}
# Folders at the top that hold the product, against those that check or describe it.
PRODUCT = ("brokers", "cli", "gateway", "connectors", "console", "spark_integration")
NOT_PYTHON_PRODUCT = ("tests", "docs", ".ci", "docker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One Python file."""

    path: Path
    text: str
    tree: ast.Module

    @classmethod
    def parse(cls, path: str | Path, text: str) -> "Source":
        return cls(path=Path(path), text=text, tree=ast.parse(text))

    @property
    def dotted(self) -> str:
        """The name it is imported by; a package's `__init__` has the package's."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def top(self) -> str:
        return self.path.parts[0]

    def nodes(self) -> tuple[ast.AST, ...]:
        """Return every node of the tree."""
        return nodes_of(self.tree)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in self.nodes():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def imports(self) -> Iterator[tuple[int, str]]:
        """Every import as (line, dotted name); `from a import b` is `a.b`."""
        for node in self.nodes():
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((node.lineno, dotted) for dotted, _ in bindings(node))

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """Every call as (dotted name, node), the name as it was before an import renamed it."""
        meaning = {
            local: dotted
            for node in self.nodes()
            if isinstance(node, ast.Import | ast.ImportFrom)
            for dotted, local in bindings(node)
        }
        for node in self.nodes():
            if isinstance(node, ast.Call):
                first, dot, rest = ast.unparse(node.func).partition(".")
                yield f"{meaning.get(first, first)}{dot}{rest}", node


@functools.cache
def nodes_of(tree: ast.Module) -> tuple[ast.AST, ...]:
    # Two dozen rules ask for the million nodes of the project: walking takes longer than the rules.
    return tuple(ast.walk(tree))


def bindings(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """What a statement imports, as (dotted name, the name that stands for it in the file)."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            # `import a.b` makes `a.b` readable as it is written.
            yield alias.name, alias.asname or alias.name
        elif node.module and node.level == 0:
            # A star may be anything of the module, so it counts as the whole of it.
            dotted = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
            yield dotted, alias.asname or alias.name


def is_within(dotted: str, prefix: str) -> bool:
    return f"{dotted}.".startswith(f"{prefix}.")


def walk(folder: Path = ROOT) -> Iterator[Path]:
    """Every file and folder of the project, relative to its root."""
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.name.startswith(".coverage"):
            continue
        yield path.relative_to(ROOT)
        if path.is_dir():
            yield from walk(path)


@functools.cache
def sources() -> tuple[Source, ...]:
    """All Python of the project, migrations (which Django writes) excepted."""
    paths = [path for path in walk() if path.suffix == ".py" and "migrations" not in path.parts]
    with no_collections():
        return tuple(
            Source.parse(path, (ROOT / path).read_text(encoding="utf-8")) for path in paths
        )


@contextmanager
def no_collections() -> Iterator[None]:
    """Keep the garbage collector from going through trees that grow and have no garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def product() -> tuple[Source, ...]:
    """The Python that people run; benchmarks are held to the same rules."""
    return tuple(source for source in sources() if source.top not in NOT_PYTHON_PRODUCT)
