"""Templates stay readable. djlint, which `make lint` runs, does not check the length of lines."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_LINE_LENGTH = 120


def test_templates__lines_are_short() -> None:
    templates = [
        path
        for folder in ("mastra_memory/templates", "templates")
        for path in (ROOT / folder).rglob("*.html")
    ]
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in templates
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MAX_LINE_LENGTH
    ]
    assert templates and not long
