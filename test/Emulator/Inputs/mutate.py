"""Breaks the kernels of a compiled program, one statement at a time, and says what the emulator finds.

usage: mutate.py PROGRAM.so INPUTS FP8_RUN [--blackwell | --ada] [--only REGEX] [--without REGEX] [--keep DIR]

PTX lies in the program as text, so that a statement is broken by other text of the same length. A break is found by a
report, or by results other than those of the program as it is; FP8_EMULATOR_CHECK helps only where neither does. What a
program does not reach is not counted. --keep leaves the broken programs in a folder, for benchmarks/breaks.py.
Where a break fits several statements it is made of one of them, another one in each program; with FP8_TEST_EVERY=1 in the
environment or --keep, of each.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

import ada_breaks
import blackwell_breaks

# Name: what to look for, what to put in its place (padded with blanks), which occurrences: each alone, or all at once.
GONE = ""
# From a stage's address to what threads read there; and from the words of A of a product that begins to those of the next.
LOADS = r"\s+cvt\.s64[^;]*;\s+add\.s64[^;]*;\s+ld\.shared\.b32)"
FRAGMENTS = r"(wgmma\.mma_async[^{]*\{[^}]*\}, \{)(%r\d+)"
UNDER_WAY = FRAGMENTS + r"((?:, %r\d+){3}\}(?:(?!wgmma\.(?:mma|wait)|bra)[\s\S])*commit_group(?:(?!wgmma)[\s\S])*?)"
BREAKS = [
    ("wait for a full stage gone", r"@%p\d+ bra (\S+);(?=\s)", None, "full"),
    ("wait for an empty stage gone", None, None, "empty"),
    ("parity of consumers flipped", r"(selp\.b32 \s*%r\d+,) 1, 0,", r"\1 0, 1,", "each"),
    ("arrival of consumers lost", r"mbarrier\.arrive\.shared\.b64[^;]*;", GONE, "each"),
    ("bytes expected less 16", r"(mov\.b32 \s*%r\d+, )(\d+)(;\s+mbarrier\.arrive\.expect_tx)", "minus16", "each"),
    ("bytes expected more by 16", r"(mov\.b32 \s*%r\d+, )(\d+)(;\s+mbarrier\.arrive\.expect_tx)", "plus16", "each"),
    ("expect_tx without its arrival", r"mbarrier\.arrive\.expect_tx\.shared\.b64 (%rd\d+), ", "mbarrier.expect_tx.shared.b64 ", "each"),
    ("count of full barriers 2", r"(mov\.b32 \s*%r\d+, )1(;\s+mbarrier\.init)", r"\g<1>2\2", "each"),
    ("count of empty barriers less 1", r"(mov\.b32 \s*%r\d+, )([48])(;\s+mbarrier\.init)", "minus1", "each"),
    ("count of empty barriers more by 1", r"(mov\.b32 \s*%r\d+, )([48])(;\s+mbarrier\.init)", "plus1", "each"),
    ("an initialization gone", r"mbarrier\.init\.shared\.b64[^;]*;", GONE, "some"),
    ("load of an operand gone", r"cp\.async\.bulk\.tensor\.[24]d\.shared::cta[^;]*;", GONE, "each"),
    ("wgmma.wait_group gone", r"wgmma\.wait_group\.sync\.aligned \s*0;", GONE, "each"),
    ("wgmma.wait_group one later", r"(wgmma\.wait_group\.sync\.aligned \s*)0;", r"\g<1>1;", "each"),
    ("wgmma.wait_group 1 as 2", r"(wgmma\.wait_group\.sync\.aligned \s*)1;", r"\g<1>9;", "each"),
    ("wgmma.commit_group gone", r"wgmma\.commit_group\.sync\.aligned;", GONE, "all"),
    ("a product gone", r"wgmma\.mma_async[^;]*;", GONE, "some"),
    ("accumulators not cleared", r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;", "each"),
    ("accumulators cleared too often", r"setp\.ne\.b32 p, 1, 0;", "setp.ne.b32 p, 0, 0;", "some"),
    ("swizzle of descriptors 64", r"46116862933\d{8,9}", "swizzle64", "some"),
    ("stride of descriptors halved", r"46116862933\d{8,9}", "stride", "some"),
    ("K advance lost", r"(add\.s32 \s*%r\d+, %r\d+, )2;", r"\g<1>0;", "some"),
    ("K advance doubled", r"(add\.s32 \s*%r\d+, %r\d+, )2;", r"\g<1>4;", "some"),
    ("a stage too few", r"(setp\.eq\.b32 \s*%p\d+, %r\d+, )(1[0-9]);", "minus1", "each"),
    ("a stage too many", r"(setp\.eq\.b32 \s*%p\d+, %r\d+, )(1[0-9]);", "plus1", "each"),
    ("wait for stores to be read gone", r"cp\.async\.bulk\.wait_group\.read \s*\d+;", GONE, "all"),
    ("store not committed", r"cp\.async\.bulk\.commit_group;", GONE, "all"),
    ("store gone", r"cp\.async\.bulk\.tensor\.[24]d\.global[^;]*;", GONE, "each"),
    ("stmatrix gone", r"stmatrix\.[^;]*;", GONE, "some"),
    ("stmatrix 16 bytes further", r"(stmatrix\.[^;]*\[%rd\d+\+)(\d+)(\][^;]*;)", "plus16", "some"),
    ("a warpgroup's turn not given", r"bar\.arrive [^;]*;", GONE, "each"),
    ("zero before powers not written", r"st\.shared\.b32 \s*\[fp8_shared\+\d+\], 0;", GONE, "all"),
    ("barrier before the roles gone", r"bar\.sync \s*0;", GONE, "matmul"),
    ("registers given back too few", r"(setmaxnreg\.dec\.sync\.aligned\.u32 \s*)\d+;", r"\g<1>240;", "each"),
    ("elect by all lanes", r"@%p(\d+) bra (\S+);(?=\s)", None, "elect"),
    ("first lane of a warp no more alone", r"setp\.ne\.b32 \s*(%p\d+), %r\d+, 0;", None, "lane"),
    ("fence of initialized barriers gone", r"fence\.mbarrier_init[^;]*;", GONE, "each"),
    ("fence between proxies gone", r"fence\.proxy\.async[^;]*;", GONE, "each"),
    ("barrier of storing warps gone", r"bar\.sync \s*[1-9%][^;]*;", GONE, "each"),
    ("bar.warp.sync gone", r"bar\.warp\.sync[^;]*;", GONE, "each"),
    ("griddepcontrol.wait gone", r"griddepcontrol\.wait;", GONE, "each"),
    ("wgmma.fence gone", r"wgmma\.fence\.sync\.aligned;", GONE, "each"),
    ("copies of factors not waited for", r"cp\.async\.mbarrier\.arrive\.noinc\.shared\.b64", "mbarrier.arrive.shared.b64 _,", "each"),
    ("fence around the count of parts of K gone", r"fence\.acq_rel\.gpu;", GONE, "each"),
    ("arrival of parts of K of a cluster lost", r"mbarrier\.arrive\.release\.cluster[^;]*;", GONE, "each"),
    ("parts of K of a cluster not waited for", r"mbarrier\.try_wait\.parity\.acquire\.cluster\.shared\.b64 (%p\d+),[^;]*;",
     r"setp.eq.b32 \1, %r1, %r1;", "each"),
    ("turn not acquired", r"ld\.acquire\.gpu\.global", "ld.relaxed.gpu.global", "each"),
    ("turn not waited for", r"ld\.acquire\.gpu\.global\.b32 \s*(%r\d+), \[%rd\d+\];\s+setp\.ne\.b32 \s*(%p\d+), \1, (%r\d+);",
     r"setp.ne.b32 \2, \3, \3;", "each"),
    ("turn passed on without a fence", r"fence\.acq_rel\.gpu;(?=[^;]*;[^;]*;[^;]*;[^;]*st\.relaxed)", GONE, "each"),
    ("barrier around the count of parts of K gone", r"bar\.sync \s*[16], 128;(?=\s+(?:@|ld))", GONE, "each"),
    ("numbers of dropout from another lane", r"(shfl\.sync\.bfly\.b32 \s*%r\d+, %r\d+, )4(, 31, -1;)", r"\g<1>8\2", "each"),
    ("step of a key of dropout lost", r"(add\.s32 \s*%r\d+, %r\d+, )-1640531527;", r"\g<1>0;", "each"),
    ("elements of a mask not read", r"ld\.global\.v2\.b8 \s*\{(%rs\d+), (%rs\d+)\}, \[[^]]*\];", r"mov.b16 \1, 1; mov.b16 \2, 1;", "each"),
    ("a reciprocal of a cap gone", r"rcp\.approx\.ftz\.f32 ", "mov.b32 ", "each"),
    ("a query's range not written", r"st\.shared\.b16 [^;]*;", GONE, "each"),
    ("ends of all ranges not written", r"st\.shared\.v4\.b32 [^;]*;", GONE, "each"),
    ("barrier of the cluster gone", r"barrier\.cluster\.arrive[^;]*;\s*barrier\.cluster\.wait[^;]*;", GONE, "each"),
    # What makes bf16 of codes in the registers that are multiplied.
    ("codes of a wrong stage", r"(shl\.b32 \s*%r\d+, %r\d+, )(1[1-4])(;\s+add[^;]*;\s+shl\.b32[^;]*;\s+add[^;]*;" + LOADS, "minus1", "each"),
    ("factors of a wrong stage", r"(shl\.b32 \s*%r\d+, %r\d+, )(9)(;\s+add[^;]*;" + LOADS, "minus1", "each"),
    ("factors not loaded", r"cp\.async\.ca[^;]*;", GONE, "each"),
    ("codes of another step of K", r"(xor\.b32 \s*%r\d+, %r\d+, )(16|32|48)(;\s+cvt[^;]*;\s+add[^;]*;\s+ld\.shared)", r"\1 0\3", "some"),
    ("words of a product under way written", UNDER_WAY + r"(mul\.rn\.bf16x2 \s*)%r\d+,", r"\1\2\3\4\2,", "each"),
    ("words of a product exchanged", FRAGMENTS + r", (%r\d+)(, %r\d+, %r\d+\}[^;]*;)", r"\1\3, \2\4", "some"),
    # What transposes codes in the registers that are multiplied.
    ("words transposed otherwise", r"(prmt\.b32 \s*%r\d+, )(%r\d+), (%r\d+)(, %r\d+;)", r"\1\3, \2\4", "some"),
    ("word of a product under way transposed", UNDER_WAY + r"(prmt\.b32 \s*)%r\d+,", r"\1\2\3\4\2,", "each"),
    ("barrier of the cluster releases nothing", r"barrier\.cluster\.arrive(\.release)?", "barrier.cluster.arrive.relaxed", "each"),
]


def kernels(data):
    """Where the text of each kernel of a product or an attention lies."""
    for match in re.finditer(rb"\.visible \.entry (fp8_(?:matmul|attention)\w+)\(", data):
        # Braces of inline assembly stand at the margin, too, without a blank line before.
        end = data.index(b";\n\n}", match.start())
        yield match.group(1).decode(), match.start(), end


def number(match, delta):
    text = str(int(match.group(2)) + delta)
    rest = match.groups()[2] if match.re.groups > 2 else ";"
    return match.group(1) + text + rest


DELTAS = {"minus16": -16, "plus16": 16, "minus1": -1, "plus1": 1}


def replacement(match, how):
    if callable(how):
        return how(match)
    if how in DELTAS:
        return number(match, DELTAS[how])
    if how == "swizzle64":
        return str(int(match.group(0)) ^ (3 << 62))
    if how == "stride":
        bits = int(match.group(0))
        stride = bits >> 32 & 0x3FFF
        return str(bits & ~(0x3FFF << 32) | (stride // 2) << 32)
    return match.expand(how) if how else ""


def guards(text, what):
    """Statements that make a thread wait or choose, which have no text of their own: loops around try_wait, branches
    behind elect."""
    if what in ("full", "empty"):
        waits = list(re.finditer(r"mbarrier\.try_wait\.parity\.shared\.b64 (%p\d+), \[[^]]*\], %r\d+;\s+"
                                 r"not\.pred\s+(%p\d+), \1;\s+(@\2 bra \s*\S+;)", text))
        producer = text.find("setmaxnreg.dec")
        for wait in waits:
            if (wait.start() > producer) == (what == "empty"):
                yield wait.start(3), wait.end(3), ""
    elif what.startswith("elect"):
        for match in re.finditer(r"elect\.sync\s+%r\d+\|(%p\d+), -1;\s+not\.pred\s+(%p\d+), \1;\s+(@\2 bra\s+\S+;)", text):
            # One that all lanes issue stores the same.
            if what == "elect" or "global.shared::cta" not in text[match.end():match.end() + 1000]:
                yield match.start(3), match.end(3), ""
    elif what == "lane":
        for match in re.finditer(r"and\.b32\s+(%r\d+), %r\d+, 31;", text):
            use = re.search(rf"setp\.ne\.b32\s+(%p\d+), {match.group(1)}, 0;", text)
            if use:
                # No lane is below 0: all of them go on.
                yield use.start(), use.end(), use.group(0).replace("setp.ne.b32", "setp.lt.u32")


def edits(text, pattern, how, which):
    """Lists of (begin, end, text)."""
    if how is None:
        found = [[edit] for edit in guards(text, which)]
        return found[:3]
    matches = list(re.finditer(pattern, text))
    if which == "matmul":
        matches = matches[:1]
    if which == "some":
        matches = matches[:: max(1, len(matches) // 2)][:2]
    if which == "each":
        matches = matches[:3]
    made = [(m.start(), m.end(), replacement(m, how)) for m in matches]
    made = [edit for edit in made if len(edit[2]) <= edit[1] - edit[0]]
    return [made] if which == "all" and made else [[edit] for edit in made]


def summarize(report):
    report = re.sub(r"^.*?: kernel \w+(, block .*?, line \d+, '.*?')?:? ?", "", report)
    report = re.sub(r" by block .*", "", report)
    return "report: " + re.sub(r"\[[^]]*\]|\b\d+\b", "N", report).split(";")[0][:100]


def keep(args, broken, name, found):
    """Copies a broken program, and adds a line about it to breaks.tsv."""
    os.makedirs(args.keep, exist_ok=True)
    program = os.path.basename(args.program)
    shutil.copy(args.program, args.keep)
    with open(os.path.join(args.keep, "breaks.tsv"), "a+") as file:
        file.seek(0)
        path = f"{len(file.readlines()):03}.so"
        file.write("\t".join([path, program, name, found]) + "\n")
    shutil.copy(broken, os.path.join(args.keep, path))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("inputs")
    parser.add_argument("run")
    parser.add_argument("--blackwell", action="store_true", help="the kernels are for sm_100a")
    parser.add_argument("--ada", action="store_true", help="the kernels are for sm_89")
    parser.add_argument("--only")
    parser.add_argument("--without")
    parser.add_argument("--keep")
    parser.add_argument("--check", default="all", help="what FP8_EMULATOR_CHECK looks for")
    args = parser.parse_args()
    data = open(args.program, "rb").read()
    folder = tempfile.mkdtemp()
    broken, outputs = os.path.join(folder, "broken.so"), os.path.join(folder, "out.safetensors")

    def run(program, order="random", seed=1, check="none"):
        environment = {**os.environ, "FP8_EMULATOR_ORDER": order, "FP8_EMULATOR_SEED": str(seed),
                       "FP8_EMULATOR_STEPS": "20000000", "FP8_EMULATOR_CHECK": check}
        done = subprocess.run([args.run, program, f"--inputs={args.inputs}", f"--outputs={outputs}"],
                              env=environment, capture_output=True, text=True, timeout=300)
        if done.returncode:
            return None, next((line for line in done.stderr.splitlines() if "emulator" in line), done.stderr)
        return open(outputs, "rb").read(), ""

    expected, report = run(args.program)
    assert expected is not None, report
    for order, seed in [("random", 7), ("lazy", 1), ("eager", 1)]:
        same, report = run(args.program, order, seed, args.check)
        assert same == expected, f"the program as it is gives something else, {order} {seed} {report}"
    missed = total = checked = 0
    every = args.keep or os.environ.get("FP8_TEST_EVERY", "0") not in ("", "0")
    breaks = blackwell_breaks.BREAKS if args.blackwell else ada_breaks.BREAKS if args.ada else BREAKS
    for name, pattern, how, which in breaks:
        if args.only and not re.search(args.only, name) or args.without and re.search(args.without, name):
            continue
        for kernel, begin, end in kernels(data):
            text = data[begin:end].decode()
            groups = list(enumerate(edits(text, pattern, how, which)))
            if groups and not every:
                groups = [groups[zlib.crc32(f"{os.path.basename(args.program)} {name}".encode()) % len(groups)]]
            for index, group in groups:
                def run_with(edits, *how):
                    changed = text
                    for first, last, new in edits:
                        changed = changed[:first] + new.ljust(last - first) + changed[last:]
                    with open(broken, "wb") as file:
                        file.write(data[:begin] + changed.encode() + data[end:])
                    return run(broken, *how)

                total += 1
                how_found = None
                for attempt in [("random", 1), ("random", 2), ("lazy", 1), ("random", 1, args.check), ("random", 3, args.check)]:
                    got, report = run_with(group, *attempt)
                    if got is None:
                        how_found = summarize(report)
                        checked += len(attempt) == 3
                    elif got != expected:
                        how_found = "other results"
                    if how_found:
                        break
                # A whole statement, or the text would be none, and no label behind it.
                traps = [(first, text.index(";", first) + 1, "trap;") for first, _, _ in group]
                if not how_found and run_with(traps)[0] == expected:
                    how_found = "is not reached"
                    total -= 1
                if args.keep and how_found != "is not reached":
                    run_with(group)
                    keep(args, broken, f"{name} | {kernel[10:]} {index}", how_found or "NOT FOUND")
                missed += how_found is None
                print(f"{name} | {kernel[10:60]} {index} | {how_found or 'NOT FOUND'}", flush=True)
    print(f"{total - missed} of {total} found, {checked} of them by FP8_EMULATOR_CHECK alone")
    return int(missed > 0 or total == 0)


if __name__ == "__main__":
    sys.exit(main())
