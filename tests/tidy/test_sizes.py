"""How large modules and functions are, and how large they may be."""

from collections.abc import Callable, Sequence

from tests.tidy.project import Source, product, sources

# Past these a reader no longer holds the thing in mind; what needs more is two things.
MODULE_LINES = 600
FUNCTION_LINES = 70


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
