# RUN: %python %s %fp8_source
"""No sentence of a page has more than 35 words: the middle of a page that is read has 20.

Rows of tables are not counted: their cells are lists."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1])
LONGEST = 35
# What ends with a full stop and is no end.
SHORT = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|No|Fig)\.$")


def list_pages():
    names = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z", "*.md"],
        cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    # Generated pages are what the sources say; the changelog is a table of what was.
    return [Path(name) for name in names if name and (SOURCE / name).exists()
            and name != "CHANGELOG.md" and not name.startswith("docs/generated/")]


def read_paragraphs(text):
    """Prose, each paragraph, item or heading by itself."""
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "\n", text, flags=re.DOTALL)
    text = re.sub(r"^(?:\|.*|#.*|!\[.*)$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)
    # A link is its text, and code one word.
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def split_sentences(paragraph):
    sentence = []
    for word in paragraph.split():
        sentence.append(word)
        bare = word.rstrip("*_)\"'")
        if bare.endswith((".", "!", "?")) and not SHORT.search(word):
            yield sentence
            sentence = []
    yield sentence


def count_words(sentence):
    # A number with its unit, or a sign between two numbers, is no word of its own.
    return sum(bool(re.search(r"[A-Za-z0-9]", word)) for word in sentence)


def find_long(page):
    return [(count_words(sentence), " ".join(sentence))
            for paragraph in read_paragraphs((SOURCE / page).read_text())
            for sentence in split_sentences(paragraph) if count_words(sentence) > LONGEST]


def main():
    pages = list_pages()
    errors = [f"{page}: expected at most {LONGEST} words in a sentence, but got {words}: {text}"
              for page in pages for words, text in find_long(page)]
    for error in errors:
        print(error)
    return 1 if errors or len(pages) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
