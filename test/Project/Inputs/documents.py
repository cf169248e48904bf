"""Checks that README.md and docs/ say what is so.

usage: documents.py programs|operations|commands|links|adding SOURCE_DIR BUILD_DIR

programs     every `mlir` block that is a whole program parses and verifies
operations   every operation of the dialects has an example, and examples of
             operations and attributes parse
commands     every `console` block, run in order with those of its page, prints
             what the page shows
links        every link to a file or a heading leads to one
adding       what to touch to add something is there, and said alike on both pages

A comment in front of a block says more: `<!-- file: NAME -->` that it is the
file NAME, of the repository or made here for the commands that follow, and
`<!-- output -->` that it is what the last command printed. In an output a line
`...` stands for any lines, SSA values may have other names, and numbers may differ
in the last digits, as sums do from one processor to another.
"""

import itertools
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What the examples of the operations take from their surroundings.
OPERANDS = {
    "all_reduce_amax": "%amax: tensor<1x1xf32>",
    "all_reduce_state": "%state: !fp8.state",
    "amax": "%x: tensor<32x768xbf16>",
    "assemble": "%payload: tensor<32x768xf8E4M3FN>, %scale_inv: tensor<32x6xf32>",
    "attention": "%q: tensor<2x4096x32x128xbf16>, %k: tensor<2x4096x8x128xbf16>, "
    "%v: tensor<2x4096x8x128xbf16>",
    "attention_backward": "%grad: tensor<2x4096x32x128xbf16>, %q: tensor<2x4096x32x128xbf16>, "
    "%k: tensor<2x4096x8x128xbf16>, %v: tensor<2x4096x8x128xbf16>, "
    "%lse: tensor<2x32x4096xf32>, %delta: tensor<2x32x4096xf32>",
    "compute_scale": "%amax: tensor<1x1xf32>",
    "dequantize": "%q: !fp8.scaled<32x768xf8E4M3FN, block = [1, 128], scale = f32>",
    "disassemble": "%q: !fp8.scaled<32x768xf8E4M3FN, block = [1, 128], scale = f32>",
    "grouped_matmul": "%x: !fp8.scaled<1024x256xf8E4M3FN, block = [1, *], scale = f32>, "
    "%w: !fp8.scaled<4x512x256xf8E4M3FN, block = [1, 1, *], scale = f32>, "
    "%offsets: tensor<5xi32>, %counts: tensor<4xi32>, "
    "%a: !fp8.scaled<4x256x256xf8E4M3FN, block = [1, 1, *], scale = f32>",
    "lift": "%codes: tensor<64x256xf4E2M1FN>, %exponents: tensor<2x64xi32>",
    "matmul": "%a: !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>, "
    "%b: !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>, "
    "%bias: tensor<64xbf16>",
    "sibling_matmuls": "%x: tensor<32x128xbf16>, %w_gate: tensor<64x128xbf16>, "
    "%w_up: tensor<64x128xbf16>",
    "measure": "%x: tensor<32x768xbf16>, "
    "%q: !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>",
    "quantize": "%x: tensor<32x768xbf16>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>",
    "hadamard": "%x: tensor<32x768xbf16>",
    "load_cached": "%state: !fp8.state, %slot: index",
    "read_scale": "%state: !fp8.state, %slot: index",
    "read_seed": "%state: !fp8.state, %slot: index",
    "read_amax": "%state: !fp8.state, %slot: index",
    "record_amax": "%amax: tensor<1x1xf32>, %state: !fp8.state, %slot: index",
    "fusion": "%x: tensor<32x768xbf16>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>",
    "store_cached": "%q: !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>, "
    "%state: !fp8.state, %slot: index",
    "quantized_attention": "%q: tensor<2x64x4x128xbf16>, %k: tensor<2x64x4x128xbf16>, "
    "%v: tensor<2x64x4x128xbf16>, %scale: tensor<1x1xf32>",
    "transpose": "%q: !fp8.scaled<32x768xf8E4M3FN, block = [1, *], scale = f32>",
    "update_scales": "%scale: tensor<1xf32>, %amax: tensor<1xf32>, "
    "%history: tensor<16x1xf32>",
    "update_state": "%state: !fp8.state",
}
# Operations whose example is that of another one.
WITHOUT_EXAMPLE = {"yield", "attention_yield"}


class Block:
    def __init__(self, path, line, note, language, text):
        self.where = f"{path}:{line}"
        self.note, self.language, self.text = note, language, text


def read_blocks(path):
    pattern = re.compile(
        r"(?:^<!-- (?P<note>.*?) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
        re.MULTILINE | re.DOTALL,
    )
    page = path.read_text()
    for match in pattern.finditer(page):
        line = page.count("\n", 0, match.start("text"))
        yield Block(path, line, match["note"], match["language"], match["text"])


def get_pages(source):
    return [source / "README.md", *sorted((source / "docs").rglob("*.md"))]


def parse(build, where, program):
    done = subprocess.run(
        [build / "bin" / "fp8-opt", "-o", os.devnull],
        input=program,
        capture_output=True,
        text=True,
    )
    return [f"{where}: {done.stderr}"] if done.returncode else []


def check_programs(source, build):
    errors, count = [], 0
    for block in itertools.chain.from_iterable(map(read_blocks, get_pages(source))):
        code = re.sub(r"^(//.*|)\n", "", block.text, flags=re.MULTILINE)
        if block.language == "mlir" and re.match(r"func\.func|module|[#!]\w+ =", code):
            errors += parse(build, block.where, block.text)
            count += 1
    return errors, count


def check_operations(source, build):
    pages = sorted((source / "docs" / "generated").glob("*Dialect.md"))
    errors, count = [], 0
    for page, text in ((page, page.read_text()) for page in pages):
        sections = re.split(r"^### `(fp8\w*\.\w+)` \(", text, flags=re.MULTILINE)
        for name, section in zip(sections[1::2], sections[2::2]):
            short = name.partition(".")[2]
            examples = re.findall(r"^```mlir\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
            if not examples and short not in WITHOUT_EXAMPLE:
                errors.append(f"{name}: expected an example in its description")
            for example in examples:
                if not re.match(r"[#!]\w+ =", example):
                    operands = OPERANDS.get(short, "")
                    example = f"func.func @f({operands}) {{\n{example}\nreturn\n}}"
                errors += parse(build, name, example)
                count += 1
        for attribute in re.findall(r"`(#fp8\w*\.\w+<[^`]*>)`", text):
            if "..." not in attribute:
                errors += parse(build, page.name, f"#example = {' '.join(attribute.split())}")
                count += 1
    return errors, count


def is_same_line(actual, expected):
    # The numbers of SSA values change with every pass that makes one more.
    actual, expected = (re.sub(r"%\w+", "%", line) for line in (actual, expected))
    number = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
    if " ".join(number.sub("0", actual).split()) != " ".join(
        number.sub("0", expected).split()
    ):
        return False
    return all(
        a == e
        or ("." in a + e and math.isclose(float(a), float(e), rel_tol=1e-2, abs_tol=1e-6))
        for a, e in zip(number.findall(actual), number.findall(expected))
    )


def is_same(actual, expected):
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(is_same(actual[i:], expected[1:]) for i in range(len(actual) + 1))
    return (
        bool(actual)
        and is_same_line(actual[0], expected[0])
        and is_same(actual[1:], expected[1:])
    )


def split_lines(text):
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def compare(where, command, actual, expected):
    if is_same(split_lines(actual), split_lines(expected)):
        return []
    return [f"{where}: $ {command}\nexpected:\n{expected}\nbut got:\n{actual}"]


class Shell:
    """A copy of the repository, as far as commands see it."""

    def __init__(self, source, build, directory):
        self.directory = pathlib.Path(directory)
        for name in ("examples", "include", "python", "docs"):
            (self.directory / name).symlink_to(source / name)
        (self.directory / "build").symlink_to(build)
        python = self.directory / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)

    def run(self, command):
        done = subprocess.run(
            ["bash", "-c", "set -o pipefail\n" + command],
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.stdout, done.returncode


def check_page(path, source, shell):
    errors, count, last = [], 0, None
    for block in read_blocks(path):
        if block.note == "output":
            errors += compare(block.where, last[0], last[1], block.text)
        elif block.note and block.note.startswith("file: "):
            name = block.note.removeprefix("file: ")
            if not (source / name).exists():
                (shell.directory / name).write_text(block.text)
            elif block.text.strip() not in (source / name).read_text():
                errors.append(f"{block.where}: differs from {name}")
        elif block.language == "console":
            for step in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, expected = re.fullmatch(
                    r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", step, re.DOTALL
                ).groups()
                output, status = shell.run(command)
                last = (command, output)
                count += 1
                if (status != 0) != ("error:" in output):
                    errors.append(f"{block.where}: $ {command}exits with {status}\n{output}")
                if expected:
                    errors += compare(block.where, command, output, expected)
    return errors, count


def check_commands(source, build):
    errors, count = [], 0
    for path in get_pages(source):
        with tempfile.TemporaryDirectory() as directory:
            shell = Shell(source, build, directory)
            page_errors, page_count = check_page(path, source, shell)
            errors += page_errors
            count += page_count
    return errors, count


def get_anchors(path):
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings}


def check_links(source, build):
    errors, count = [], 0
    for page in [source / "CONTRIBUTING.md", source / "CHANGELOG.md", *get_pages(source)]:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
            # The generators' own tables of contents link to anchors inside a page.
            if target.startswith("#") and page.parent.name == "generated":
                continue
            name, _, anchor = target.partition("#")
            path = page.parent / name if name else page
            count += 1
            if not path.exists() or (anchor and anchor not in get_anchors(path)):
                errors.append(f"{page}: expected '{target}' to lead somewhere")
    return errors, count


def read_rows(page, heading):
    """The rows of the tables below a heading, by their first cell."""
    section = page.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| (.*) \|$", section, re.MULTILINE)
    # The pages are in different folders.
    return {name: re.sub(r"\]\(.*?\)", "]", text) for name, text in rows}


def check_adding(source, build):
    contributing = read_rows(source / "CONTRIBUTING.md", "Adding things")
    pipeline = read_rows(source / "docs" / "Pipeline.md", "Adding things")
    errors = [
        f"docs/Pipeline.md: expected the row '{name}' to be that of CONTRIBUTING.md"
        for name, text in pipeline.items() if contributing.get(name) != text
    ]
    paths = [path for text in contributing.values() for path in re.findall(r"`([\w./-]+/[\w./-]+)`", text)]
    for path in paths:
        # X stands for what is added: what is around it is there.
        known = pathlib.Path(re.sub(r"/[^/]*(?:X|SMx|-x\b|\bx[.-]).*", "", path))
        if not (source / known).exists():
            errors.append(f"CONTRIBUTING.md: expected '{path}' to lead somewhere")
    return errors, len(paths)


def main():
    what, source, build = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    check = {
        "programs": check_programs,
        "operations": check_operations,
        "commands": check_commands,
        "links": check_links,
        "adding": check_adding,
    }[what]
    errors, count = check(source, build)
    print(*errors, sep="\n\n")
    # A page whose blocks are no longer found must not look like success.
    if errors or not count:
        sys.exit(f"{len(errors)} errors in {count} {what}")
    print(f"{count} {what}")


if __name__ == "__main__":
    main()
