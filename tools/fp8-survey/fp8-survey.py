#!/usr/bin/env python3
"""fp8-survey: how much of a directory of MLIR programs would be FP8, and why not the rest.

Runs every program under every recipe through fp8-opt, each in a process with limits
of its own, and counts. Contractions in FP8 and the reasons of others, from
remarks; programs that fail, by the first line of the error; crashes and those that
took too long or too much memory. Programs of a file are what `// -----` separates.
"""

import argparse
import concurrent.futures
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

# All that need no file besides; `static` needs a state.
RECIPES = ["none", "current", "rowwise", "block", "mxfp8", "nvfp4", "delayed"]
# How a run ended. The last three are the compiler's fault, whatever the program is.
OUTCOMES = ["ok", "error", "crash", "timeout", "memory"]
FAULTS = OUTCOMES[2:]

SEPARATOR = re.compile(r"^[ \t]*// -----.*\n?", re.MULTILINE)
# What the system can be told.
MOST_SECONDS, MOST_MIB = 10 ** 6, 2 ** 40
# What fp8-opt's standard error begins with after a crash, in front of what matters.
STACK_DUMP = re.compile(r"PLEASE submit a bug report|Stack dump:|^ *#\d|^\d+\.\s")
OUT_OF_MEMORY = re.compile(r"out of memory|bad_alloc|[Cc]annot allocate memory")
# Extents and other numbers, but not those of f32.
NUMBERS = re.compile(r"(?<![A-Za-z_\d.])(?:\d+|\?)(?:x(?:\d+|\?))*(?:\.\d+)?(?=x[a-z]|[^\w]|$)")


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="fp8-survey", description="How much of a directory of MLIR programs would be FP8, and "
        "why not the rest. Exits with 1 if anything crashed or went beyond a limit.",
        epilog="What follows -- goes to fp8-opt, such as --allow-unregistered-dialect.")
    parser.add_argument("directory", metavar="DIR", type=Path, help="where .mlir files are, or one")
    parser.add_argument("--recipe", dest="recipes", action="append", metavar="RECIPE",
                        help=f"only this one, may be repeated ({', '.join(RECIPES)})")
    parser.add_argument("--target", default="cpu", metavar="TARGET", help="cpu (the default), sm_89, sm_90a or sm_100a")
    parser.add_argument("--to", default="host", metavar="PHASE",
                        help="the last phase, such as fusion, which is quick (host)")
    parser.add_argument("--time-limit", type=float, default=60, metavar="SECONDS",
                        help="for one program under one recipe (60)")
    parser.add_argument("--memory-limit", type=int, default=4096, metavar="MIB",
                        help="the same, of address space; 0 for none (4096)")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="runs at a time (as many as there are cores)")
    parser.add_argument("--json", type=Path, metavar="FILE",
                        help="write every run and the sums there, - for the standard output, "
                             "which then has nothing else")
    parser.add_argument("--fp8-opt", type=Path, metavar="PATH",
                        default=Path(__file__).resolve().parent / "fp8-opt",
                        help="the fp8-opt to run (that beside this program)")
    arguments, own = [], sys.argv[1:]
    if "--" in own:
        own, arguments = own[:own.index("--")], own[own.index("--") + 1:]
    options = parser.parse_args(own)
    options.arguments = arguments
    if options.jobs < 1 or options.time_limit <= 0 or options.memory_limit < 0:
        parser.error("expected -j and --time-limit above 0 and --memory-limit of at least 0")
    if not options.time_limit < MOST_SECONDS or options.memory_limit > MOST_MIB:
        parser.error(f"expected --time-limit below {MOST_SECONDS} and --memory-limit up to {MOST_MIB}")
    if not os.access(options.fp8_opt, os.X_OK) or options.fp8_opt.is_dir():
        parser.error(f"expected a program as --fp8-opt, but got '{options.fp8_opt}'")
    if not options.directory.exists():
        parser.error(f"'{options.directory}': no such file or directory")
    return options


def check_recipes(options, recipes, scratch):
    """Ends with an error for a recipe, a target or a phase that fp8-opt does not know: with any
    of these no program says anything."""
    empty = scratch / "empty.mlir"
    empty.write_text("module {}\n")
    for recipe in recipes:
        command = [options.fp8_opt, empty, "-o", os.devnull,
                   f"--fp8-pipeline=recipe={recipe} target={options.target} to={options.to}",
                   f"--fp8-remarks=json:{scratch / 'empty.json'}"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, timeout=options.time_limit)
        except subprocess.TimeoutExpired:
            continue  # The runs say so of each program.
        except OSError as error:
            fail(f"'{options.fp8_opt}': {error.strerror}")
        outcome, message = classify(done.returncode, done.stderr.decode(errors="replace"))
        if outcome == "error":
            fail(message)


def fail(message):
    """Ends with one error of at most a line's length."""
    message = message.encode(errors="replace").decode()
    sys.exit(f"fp8-survey: error: {message if len(message) < 2000 else message[:2000] + ' ...'}")


# ---- One run ----


def find_programs(directory, scratch):
    """(name, path) of each program; those of a file with several are written to `scratch`,
    on the lines that they have in the file."""
    files = [directory] if directory.is_file() else sorted(
        path for path in directory.rglob("*.mlir") if path.is_file())
    programs = []
    for file in files:
        name = file.name if directory.is_file() else str(file.relative_to(directory))
        text = file.read_text(errors="surrogateescape")
        starts = [0, *(match.end() for match in SEPARATOR.finditer(text))]
        ends = [*(match.start() for match in SEPARATOR.finditer(text)), len(text)]
        if len(starts) == 1:
            programs.append((name, file))
            continue
        for number, (start, end) in enumerate(zip(starts, ends), 1):
            path = scratch / f"{len(programs)}.mlir"
            path.write_text("\n" * text.count("\n", 0, start) + text[start:end],
                            errors="surrogateescape")
            programs.append((f"{name}#{number}", path))
    return programs


def find_message(stderr):
    """The first error of a standard error without where it was, else its first line."""
    lines = [line for line in stderr.splitlines() if line.strip() and not STACK_DUMP.search(line)]
    for line in lines:
        _, error, message = line.partition("error: ")
        if error:
            return message.strip()
    return lines[0].strip() if lines else ""


def classify(returncode, stderr):
    """The outcome of a run that ended by itself, and what is to be said of it."""
    message = find_message(stderr)
    if returncode == 0:
        return "ok", ""
    # A shell around the tool, as a wrapper may be, tells signals so.
    killed = -returncode if returncode < 0 else returncode - 128 if returncode > 128 else 0
    if killed or "PLEASE submit a bug report" in stderr:
        if OUT_OF_MEMORY.search(stderr):
            return "memory", ""
        try:
            name = signal.Signals(killed).name
        except ValueError:
            name = f"exit status {returncode}"
        return "crash", ": ".join(filter(None, [name, message]))
    return "error", message or f"exit status {returncode}"


def run(options, number, name, path, recipe, scratch):
    """One program under one recipe, as an entry of the JSON file. `number` is the run's."""
    remarks, errors = scratch / f"{number}.json", scratch / f"{number}.err"
    command = [options.fp8_opt, path, "-o", os.devnull, f"--fp8-remarks=json:{remarks}",
               f"--fp8-pipeline=recipe={recipe} target={options.target} to={options.to}",
               *options.arguments]
    with open(errors, "wb") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=stderr, start_new_session=True)
        try:
            if options.memory_limit:
                limit = options.memory_limit << 20
                try:
                    resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))
                except ProcessLookupError:
                    pass  # It has ended.
            returncode = process.wait(options.time_limit)
        except subprocess.TimeoutExpired:
            returncode = None
        finally:
            # And whatever it has started.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    with open(errors, errors="replace") as stderr:
        text = stderr.read(1 << 20)
    errors.unlink()
    outcome, message = ("timeout", "") if returncode is None else classify(returncode, text)
    entry = {"program": name, "recipe": recipe, "outcome": outcome, "message": message,
             "contractions": 0, "fp8": 0, "reasons": {}}
    try:
        found = json.loads(remarks.read_text())["remarks"]
        remarks.unlink()
    except (OSError, ValueError):
        return entry  # It failed before there were any.
    entry["contractions"] = len(found)
    entry["fp8"] = sum(remark["kind"] == "passed" for remark in found)
    entry["reasons"] = dict(Counter(remark.get("reason", "no reason") for remark in found
                                    if remark["kind"] != "passed"))
    return entry


def run_all(options, programs, recipes, scratch):
    """The entries of all programs under all recipes, in this order."""
    tasks = [(name, path, recipe) for name, path in programs for recipe in recipes]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(run, options, number, *task, scratch)
                   for number, task in enumerate(tasks)]
        if sys.stderr.isatty():
            for done, _ in enumerate(concurrent.futures.as_completed(futures), 1):
                print(f"\r{done} of {len(tasks)} runs", end="", file=sys.stderr)
            print(file=sys.stderr)
        return [future.result() for future in futures]


# ---- What was found ----


def generalize(messages):
    """Each message with N for the numbers in which it differs from others of the same
    words, so that those are counted as one."""
    alike = defaultdict(set)
    for message in messages:
        alike[NUMBERS.sub("N", message)].add(message)
    general = {}
    for group in alike.values():
        numbers = [set(column) for column in zip(*map(NUMBERS.findall, group))]
        for message in group:
            position = iter(numbers)
            general[message] = NUMBERS.sub(
                lambda match: "N" if len(next(position)) > 1 else match[0], message)
    return general


def summarize(entries, recipes):
    """The sums of all entries, as the JSON file has them."""
    by_recipe = {recipe: [entry for entry in entries if entry["recipe"] == recipe]
                 for recipe in recipes}
    general = generalize(reason for entry in entries for reason in entry["reasons"])
    general |= generalize(entry["message"] for entry in entries)
    reasons, failures = Counter(), defaultdict(set)
    for entry in entries:
        for reason, count in entry["reasons"].items():
            reasons[entry["recipe"], general[reason]] += count
        if entry["outcome"] != "ok":
            failures[entry["outcome"], general[entry["message"]]].add(entry["program"])
    return {
        "recipes": [{
            "recipe": recipe,
            "contractions": sum(entry["contractions"] for entry in of_recipe),
            "fp8": sum(entry["fp8"] for entry in of_recipe),
            **{outcome: sum(entry["outcome"] == outcome for entry in of_recipe)
               for outcome in OUTCOMES},
        } for recipe, of_recipe in by_recipe.items()],
        "reasons": [{"recipe": recipe, "reason": reason, "contractions": count}
                    for (recipe, reason), count in reasons.most_common()],
        "failures": [{"outcome": outcome, "message": message, "programs": sorted(programs)}
                     for (outcome, message), programs in sorted(
                         failures.items(), key=lambda item: (-FAULTS.count(item[0][0]),
                                                             -len(item[1]), item[0]))],
    }


def print_table(rows, left):
    """Columns of a table, to the right but for that of number `left`."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [cell.ljust(width) if number == left else cell.rjust(width)
                 for number, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def print_reasons(summary, recipes):
    """How many contractions stay in high precision under each recipe, by reason."""
    counts = defaultdict(Counter)
    for row in summary["reasons"]:
        if row["reason"] != "its recipe is none":
            counts[row["reason"]][row["recipe"]] = row["contractions"]
    if not counts:
        return
    recipes = [recipe for recipe in recipes if any(count[recipe] for count in counts.values())]
    rows = [[*recipes, "reason"]]
    for reason, count in sorted(counts.items(), key=lambda item: -sum(item[1].values())):
        rows.append([*(str(count[recipe]) for recipe in recipes), reason])
    print("\ncontractions in high precision")
    print_table(rows, len(recipes))


def print_summary(summary, programs):
    print(f"{len(programs)} programs")
    rows = [["recipe", *OUTCOMES, "contractions", "fp8", "share"]]
    for row in summary["recipes"]:
        share = f"{100 * row['fp8'] / row['contractions']:.0f} %" if row["contractions"] else "-"
        rows.append([row["recipe"], *(str(row[outcome]) for outcome in OUTCOMES),
                     str(row["contractions"]), str(row["fp8"]), share])
    print_table(rows, 0)
    print_reasons(summary, [row["recipe"] for row in summary["recipes"]])
    if summary["failures"]:
        print("\nprograms that fail")
    for row in summary["failures"]:
        print(f"{len(row['programs']):6}  {row['outcome']}"
              f"{': ' if row['message'] else ''}{row['message']}")
        shown = row["programs"] if row["outcome"] in FAULTS else row["programs"][:3]
        for program in shown:
            print(f"          {program}")
        if len(shown) < len(row["programs"]):
            print(f"          and {len(row['programs']) - len(shown)} more")


def write(path, text):
    """Whole or not at all: what a link leads to, but a device or a pipe is written to. As fp8.files
    does, which need not be installed where this is."""
    draft = None
    try:
        if path.exists() and not path.is_file():
            path.write_text(text)
            return
        target = Path(os.path.realpath(path))
        draft = target.with_name(f".fp8-survey.{os.getpid()}")
        draft.write_text(text)
        draft.replace(target)
    except OSError as error:
        if draft:
            draft.unlink(missing_ok=True)
        sys.exit(f"fp8-survey: error: '{path}': {error.strerror}")


def main():
    options = parse_arguments()
    recipes = list(dict.fromkeys(options.recipes or RECIPES))
    with tempfile.TemporaryDirectory(prefix="fp8-survey") as scratch:
        scratch = Path(scratch)
        programs = find_programs(options.directory, scratch)
        if not programs:
            sys.exit(f"fp8-survey: error: expected .mlir files in '{options.directory}', but found none")
        check_recipes(options, recipes, scratch)
        entries = run_all(options, programs, recipes, scratch)
    summary = summarize(entries, recipes)
    text = json.dumps({"version": 1, **summary, "runs": entries}, indent=2) + "\n"
    try:
        if str(options.json) == "-":
            sys.stdout.write(text)
        else:
            print_summary(summary, programs)
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer would be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write the output: {error.strerror}")
    if options.json and str(options.json) != "-":
        write(options.json, text)
    sys.exit(any(entry["outcome"] in FAULTS for entry in entries))


if __name__ == "__main__":
    main()
