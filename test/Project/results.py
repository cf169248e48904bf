# RUN: %python %s %fp8_source
"""What benchmarks/results keeps: summaries, which its page says how to make again, and of the JSON
behind them what is read. A single run's times are 100,000 lines that nobody looks at twice."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
RESULTS = "benchmarks/results"
# Where a result is read, or a number that was taken from it stands.
READERS = ("test", "docs/*.py", "benchmarks/*.py", "tuning", "lib", "python")


def list_files(*patterns):
    names = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z", *patterns],
        cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    return [name for name in names if name and (SOURCE / name).exists()]


class Results(unittest.TestCase):
    def test_json_is_read(self):
        texts = [(SOURCE / name).read_text(errors="replace") for name in list_files(*READERS)
                 if not name.startswith(RESULTS)]
        found = list_files(f"{RESULTS}/*.json")
        self.assertTrue(found)
        for name in found:
            spelled = re.compile(rf"\bresults/{re.escape(Path(name).name)}|"
                                 rf'"results" / "{re.escape(Path(name).name)}"')
            self.assertTrue(any(spelled.search(text) for text in texts),
                            f"expected a test, a figure or a fit that reads {name}")

    def test_the_page_says_how_each_is_made(self):
        page = (SOURCE / RESULTS / "README.md").read_text()
        made = {name for row in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
                for name in re.findall(r"`(\w+)`", row)}
        self.assertEqual(made, {Path(name).stem for name in list_files(f"{RESULTS}/*.txt")})

    def test_the_page_names_files_that_there_are(self):
        page = (SOURCE / RESULTS / "README.md").read_text()
        paths = re.findall(r"\b(?:benchmarks|test|lib|python|docs)/[\w./-]*\w", page)
        self.assertGreater(len(paths), 10)
        for path in paths:
            if "NAME" not in path:
                self.assertTrue((SOURCE / path).exists(), f"expected '{path}' to lead somewhere")

    def test_summaries_say_what_was_run(self):
        for name in list_files(f"{RESULTS}/*.txt"):
            head = (SOURCE / name).read_text().splitlines()[:8]
            self.assertTrue(any(line.startswith("$ ") for line in head),
                            f"expected the command in the first lines of {name}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
