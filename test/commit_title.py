#!/usr/bin/env python3
"""Checks the title of a commit: `[Area] Do one thing`, in at most 72 characters.

usage: commit_title.py FILE

FILE has the message, as git gives it to a hook (.pre-commit-config.yaml). Longer titles are cut off
by whatever lists them, and most of them name two changes.
"""

import re
import sys
from pathlib import Path

LONGEST = 72
# What git writes by itself, or will be another commit's.
OTHERS = re.compile(r'(Merge|Revert|Reapply) |(fixup|squash|amend)! ')


def check(message):
    """Says what is wrong with a message."""
    scissors = message.split("# ------------------------ >8 ------------------------")[0]
    lines = [line for line in scissors.splitlines() if not line.startswith("#")]
    while lines and not lines[0].strip():
        del lines[0]
    # git says itself that a message is empty.
    if not lines or OTHERS.match(lines[0]):
        return []
    title, errors = lines[0].rstrip(), []
    if len(title) > LONGEST:
        errors.append(f"expected a title of at most {LONGEST} characters, but got {len(title)}: "
                      f"{title}")
    if not re.match(r"\[\w+\] [A-Z]", title):
        errors.append(f"expected '[Area] Do one thing', but got '{title}'")
    if title.endswith("."):
        errors.append(f"expected a title without a full stop, but got '{title}'")
    if len(lines) > 1 and lines[1].strip():
        errors.append(f"expected an empty line below the title, but got '{lines[1]}'")
    return errors


def main():
    errors = check(Path(sys.argv[1]).read_text())
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
