"""How large modules, classes and functions are, and how large they may be."""

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.tidy.project import PRODUCT, ROOT, Source, product, sources

# Past these a reader no longer holds the thing in mind; what needs more is two things.
MODULE_LINES = 600
CLASS_LINES = 250
FUNCTION_LINES = 70
# Classes from before that limit, with the lines that they may have. Lower a number when its class
# shrinks; a row goes when the class is within the limit.
LARGE_CLASSES = {
    "brokers.controlplane.store.OrmStore": 344,
    "brokers.coordination.hosted.Hosted": 426,
    "brokers.replication.partition.Partition": 452,
    "brokers.replication.replicas.Replicas": 362,
    "brokers.server.agent_link.AgentLink": 321,
    "brokers.server.broker.Broker": 453,
    "brokers.server.client.Client": 513,
    "brokers.storage.appends.Appends": 327,
    "brokers.storage.log.PartitionLog": 489,
    "brokers.storage.log_dir.LogDir": 418,
    "brokers.storage.log_folder.LogFolder": 395,
    "brokers.storage.recovery._Recovery": 371,
    "brokers.storage.segment.Segment": 508,
    "brokers.supervisor.daemon.Supervisor": 420,
    "brokers.supervisor.watcher.Watcher": 388,
    "connectors.runtime.sink_slice._SinkSlice": 364,
    "console.monitoring.observed.Observed": 332,
    "gateway.kafka.readers.engine.Readers": 373,
    "gateway.kafka.readers.feed.Feed": 315,
    "gateway.rest.produce.stream.Stream": 270,
}
# Handlers that catch everything, by package. Each supervises others, or cleans up and raises
# the error again; lower a number when one goes.
BROAD_HANDLERS = {
    "brokers.controlplane": 4,
    "brokers.coordination": 7,
    "brokers.replication": 3,
    "brokers.server": 11,
    "brokers.storage": 2,
    "cli": 1,
    "connectors": 34,
    "console": 3,
    "gateway": 14,
    "spark_integration": 6,
}
EVERYTHING = {"Exception", "BaseException"}
# A wider line of a template is cut off beside its neighbour in a review. The number of those that
# are left may only fall.
TEMPLATE_COLUMNS = 140
WIDE_TEMPLATE_LINES = 38


def module_lines(source: Source) -> int:
    return source.text.count("\n")


def functions(source: Source) -> list[tuple[int, str]]:
    return [
        (
            (node.end_lineno or node.lineno) - node.lineno + 1,
            f"{source.path}:{node.lineno} {node.name}",
        )
        for node in source.functions()
    ]


def test_no_module_is_longer_than_its_cap() -> None:
    too_long = [s.path for s in sources() if module_lines(s) > MODULE_LINES]

    assert too_long == []


def test_no_function_of_the_product_is_longer_than_its_cap() -> None:
    too_long = [
        where
        for source in product()
        for lines, where in functions(source)
        if lines > FUNCTION_LINES
    ]

    assert too_long == []


def test_classes_are_within_their_limit_or_shrink() -> None:
    found = {
        f"{source.dotted}.{node.name}": lines
        for source in product()
        for node in source.nodes()
        if isinstance(node, ast.ClassDef)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > CLASS_LINES
    }

    grown = {name: lines for name, lines in found.items() if lines > LARGE_CLASSES.get(name, 0)}
    assert grown == {}, "take them apart, or let them be as they were"
    assert LARGE_CLASSES.keys() - found.keys() == set(), "rows of classes within the limit"


def test_handlers_that_catch_everything_become_fewer() -> None:
    found = Counter(
        room_name(source)
        for source in product()
        if source.top in PRODUCT
        for node in source.nodes()
        if catches_everything(node)
    )

    # A handler that is gone leaves no room for another one: its row is lowered with it.
    assert dict(found) == dict(BROAD_HANDLERS)


def catches_everything(node: ast.AST) -> bool:
    """Tell whether a node is such a handler, or the end of a block that may suppress errors."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        is_exit = node.name in {"__exit__", "__aexit__"}
        return is_exit and node.returns is not None and "bool" in ast.unparse(node.returns)
    if not isinstance(node, ast.ExceptHandler):
        return False
    caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(each is None or ast.unparse(each) in EVERYTHING for each in caught)


def test_no_line_of_a_template_becomes_too_wide() -> None:
    templates = sorted(Path(ROOT, "console", "templates").rglob("*.html"))
    wide = [
        f"{path.name}:{number}"
        for path in templates
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > TEMPLATE_COLUMNS
    ]

    assert len(wide) == WIDE_TEMPLATE_LINES, wide


def test_sizes_are_shown(report: Callable[[str], None]) -> None:
    report(size_table(sources()))


def size_table(measured: Sequence[Source]) -> str:
    rooms: dict[str, list[Source]] = {}
    for source in measured:
        rooms.setdefault(room_name(source), []).append(source)
    rooms["product"] = list(product())
    heading = f"{'':24}{'modules':>8}{'median':>8}{'p90':>6}{'max':>6}"
    lines = [heading + f"{'functions':>12}{'median':>8}{'p90':>6}{'max':>6}"]
    for room, members in rooms.items():
        module_sizes = [module_lines(source) for source in members]
        function_sizes = [lines for source in members for lines, _ in functions(source)]
        lines.append(f"{room:24}{figures(module_sizes, 8)}{figures(function_sizes, 12)}")
    longest = max((module_lines(source), str(source.path)) for source in product())
    deepest = max(found for source in product() for found in functions(source))
    lines.append(f"longest module   {longest[1]} ({longest[0]} of {MODULE_LINES} lines)")
    lines.append(f"longest function {deepest[1]} ({deepest[0]} of {FUNCTION_LINES} lines)")
    return "\n".join(lines)


def room_name(source: Source) -> str:
    folders = source.path.parts[:-1]
    return ".".join(folders[:2]) if source.top == "brokers" else source.top


def figures(sizes: list[int], width: int) -> str:
    cells = (len(sizes), percentile(sizes, 0.5), percentile(sizes, 0.9), percentile(sizes, 1))
    return f"{cells[0]:>{width}}{cells[1]:>8}{cells[2]:>6}{cells[3]:>6}"


def percentile(sizes: list[int], part: float) -> int:
    ordered = sorted(sizes)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0
