# RUN: %python %s %fp8_source
"""Each recipe's page of docs/Recipes has a table of its keys and their defaults, and lists and
helps that name recipes have all of them."""

import importlib.util
import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("recipe_keys",
                                              SOURCE / "python" / "fp8" / "recipe_keys.py")
recipe_keys = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recipe_keys)

# Where recipes are named: from what to what, and which need something that is not there.
LISTS = (("include/fp8/Pipelines/PipelineOptions.td", "def Recipe", ">;", ()),
         ("tools/fp8-survey/fp8-survey.py", "RECIPES = [", "]", ("static",)),
         ("python/fp8/report.py", "RECIPES = (", ")", ("static", "none")))


def find_pages():
    """Pages by their titles, which are the recipes' names."""
    pages = {}
    for path in (SOURCE / "docs" / "Recipes").glob("*.md"):
        text = path.read_text()
        pages[text.split("\n", 1)[0].removeprefix("# ")] = text
    return pages


def read_table(page):
    """The defaults of a page's table, by keys; a row may have several of both."""
    defaults = {}
    section = page.split("\n## Options\n")[1].split("\n## ")[0]
    for keys, values in re.findall(r"^\| (`[^|]+) \| ([^|]*?) *\|", section, re.MULTILINE):
        keys, values = re.findall("`([^`]+)`", keys), re.findall("`([^`]+)`", values)
        defaults.update(zip(keys, values or [None] * len(keys), strict=True))
    return defaults


def write(default):
    if default is None:
        return None
    return str(default).lower() if isinstance(default, bool) else f"{default:g}" \
        if isinstance(default, float) else str(default)


class Pages(unittest.TestCase):
    def test_keys_and_defaults(self):
        pages = find_pages()
        for name, keys in recipe_keys.RECIPES.items():
            with self.subTest(name):
                self.assertIn(name, pages)
                if keys:
                    self.assertEqual(read_table(pages[name]),
                                     {key.name: write(key.default) for key in keys})

class Lists(unittest.TestCase):
    def test_names(self):
        for path, begin, end, without in LISTS:
            with self.subTest(path):
                text = (SOURCE / path).read_text()
                first = text.index(begin) + len(begin)
                named = re.findall(r"\w+", text[first:text.index(end, first)])
                self.assertEqual(set(recipe_keys.RECIPES) - set(named), set(without))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
