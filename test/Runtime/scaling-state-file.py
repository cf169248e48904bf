# RUN: %python %s %fp8_build/lib/libfp8rt.so %t
# UNSUPPORTED: sanitizers
"""What a saved state holds, what loading adapts, reports and refuses."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import libfp8rt  # noqa: E402

F32 = np.float32
VERSION, MANIFEST = "fp8.scaling_state.version", "fp8.scaling_state.manifest"
CHECKSUM = "fp8.scaling_state.checksum"
library = libfp8rt.Library(sys.argv[1])
folder = Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()


def make(names="abc", length=4, formats=None, **recipe):
    return library.create(names, formats or ["e4m3"] * len(names), length, **recipe)


def run(state, amaxes):
    for row in amaxes:
        state.amax[:] = row
        state.underflow += 1
        state.call("update")


def metadata(path):
    header = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
    return header["__metadata__"]


def expect(actual, wanted):
    if not np.array_equal(actual, wanted):
        raise SystemExit(f"expected {wanted!r}, but got {actual!r}")


def refuses(state, path, status, message, flags=0):
    """Loading fails and changes nothing."""
    before, after = folder / "before", folder / "after"
    state.save(before)
    try:
        state.load(path, flags)
    except libfp8rt.Error as error:
        expect((error.status, str(error)), (status, f"{path}: {message}"))
    else:
        raise SystemExit(f"expected an error: {message}")
    state.save(after)
    expect(after.read_bytes(), before.read_bytes())


def test_contents():
    """Another implementation of the format reads what is documented."""
    path = folder / "contents"
    state = make()
    run(state, [[1, 2, np.inf], [3, 0, 4]])
    state.amax[:] = [9, -8, np.nan]
    state.saturated[1] = 5
    state.save(path)
    tensors = load_file(path)
    expect(tensors["amax"].view(np.uint32), np.array([9, 8, np.nan], F32).view(np.uint32))
    expect(tensors["amax_history"], np.array([[0, 1, 3], [0, 0, 2], [0, np.inf, 4]], F32))
    expect(tensors["last_amax"], np.array([3, 0, 4], F32))
    expect(tensors["scale"], np.array([F32(448) / F32(3), 224, 1], F32))
    expect(tensors["recorded"], [2, 1, 2])
    expect(tensors["non_finite"], [0, 0, 1])
    expect(tensors["underflow"], [2, 2, 2])
    expect(tensors["saturated"], [0, 5, 0])
    expect(tensors["steps"], 2)
    expect(len(tensors), 9)
    expect(metadata(path)[VERSION], "2")
    expect([s["name"] for s in json.loads(metadata(path)[MANIFEST])["slots"]], list("abc"))


def test_resume():
    """50 steps are 25 steps, a file, and 25 steps: the same bytes."""
    random = np.random.default_rng(5)
    for compat in ("te_fused", "te_unfused", "flax"):
        for length in (1, 2, 7, 40):
            amaxes = np.exp2(random.uniform(-30, 30, (50, 3))).astype(F32)
            amaxes[random.random((50, 3)) < 0.2] = 0
            amaxes[random.random((50, 3)) < 0.05] = np.inf
            amaxes[random.random((50, 3)) < 0.05] = np.nan
            whole, first, second = (make(length=length, compat=compat) for _ in range(3))
            run(whole, amaxes)
            run(first, amaxes[:25])
            first.amax[:] = amaxes[25]
            first.save(folder / "half")
            second.load(folder / "half", libfp8rt.STRICT)
            second.save(folder / "again")
            expect((folder / "again").read_bytes(), (folder / "half").read_bytes())
            second.underflow += 1
            second.call("update")
            run(second, amaxes[26:])
            whole.save(folder / "whole")
            second.save(folder / "resumed")
            expect((folder / "resumed").read_bytes(), (folder / "whole").read_bytes())
            for row in ("scale", "scale_inv"):
                a, b = getattr(whole, row), getattr(second, row)
                expect(b.view(np.uint32), a.view(np.uint32))


def test_frozen():
    """What waits for the update is saved and loaded, also while frozen."""
    state, other = make(), make()
    state.amax[:] = [1, 2, 3]
    state.call("freeze")
    state.amax[:] = 7
    state.save(folder / "frozen")
    other.call("freeze")
    other.load(folder / "frozen")
    expect(other.amax, [0, 0, 0])
    other.call("unfreeze")
    expect(other.amax, [1, 2, 3])


def test_history_length():
    """The newest amaxes stay; zeros come in as the oldest."""
    saved = make("ab", 5)
    run(saved, [[1, 0], [2, 0], [3, 0], [4, 10]])
    saved.amax[0] = 5
    saved.save(folder / "five")
    for length, a in ((1, [5]), (3, [5, 3, 4]), (5, [5, 1, 2, 3, 4]), (7, [5, 0, 0, 1, 2, 3, 4])):
        state = make("ab", length)
        run(state, [[50, 60]] * 9)
        report = state.load(folder / "five")
        expect(state.histories()[:, 0], a)
        expect(state.histories()[:, 1], ([0] * 7 + [10])[-length:] if length > 1 else [0])
        expect(state.scale, saved.scale)
        expect(report.amax_history_len, 5)
        text = "" if length == 5 else f"amax_history_len: expected {length}, but got 5\n"
        expect(report.text.decode(), text)
        if length != 5:
            refuses(
                state,
                folder / "five",
                libfp8rt.MISMATCH,
                f"expected no difference, but amax_history_len: expected {length}, but got 5",
                libfp8rt.STRICT,
            )
    flax = make("a", 4, compat="flax")
    run(flax, [[1], [2], [3], [4]])
    flax.save(folder / "flax")
    for length, a in ((1, [4]), (2, [4, 3]), (6, [4, 0, 0, 1, 2, 3])):
        state = make("a", length, compat="flax")
        state.load(folder / "flax")
        expect(state.histories()[:, 0], a)


def test_adapted_maximum():
    """After a cut the maxima are those of the rows that are left."""
    saved = make("a", 5)
    run(saved, [[100], [4], [2], [1]])
    saved.save(folder / "cut")
    state = make("a", 3)
    state.load(folder / "cut")
    run(state, [[1]])
    expect(state.scale, [224])


def test_slots():
    """Slots are matched by name, wherever they are."""
    saved = make("abcd")
    run(saved, [[1, 2, 4, 8]])
    saved.save(folder / "abcd")
    state = make("edcx")
    run(state, [[16, 16, 16, 16]])
    report = state.load(folder / "abcd")
    expect((report.matched, report.missing, report.extra), (2, 2, 2))
    expect(
        report.text.decode(),
        "slot 'a' is extra\nslot 'b' is extra\nslot 'e' is missing\nslot 'x' is missing\n",
    )
    expect(state.scale, [28, 56, 112, 28])
    expect(state.histories()[-1], [16, 8, 4, 16])
    message = "expected no difference, but slot 'a' is extra"
    refuses(state, folder / "abcd", libfp8rt.MISMATCH, message, libfp8rt.STRICT)
    message = "expected the state of this program, but no slot has a name in common"
    refuses(make("xyz"), folder / "abcd", libfp8rt.MISMATCH, message)


def test_recipes():
    make("a").save(folder / "a")
    message = "expected {} to be {}, but got {}"
    for key, ours, theirs in (
        ("compat", "flax", "te_fused"),
        ("amax_compute_algo", "most_recent", "max"),
        ("margin", 1, 0),
        ("pow2", True, False),
        ("reduce_amax", False, True),
    ):
        text = message.format(key, *(str(value).lower() for value in (ours, theirs)))
        refuses(make("a", **{key: ours}), folder / "a", libfp8rt.MISMATCH, text)
    text = "slot 'a': expected format 'e5m2', but got 'e4m3'"
    refuses(make("a", formats=["e5m2"]), folder / "a", libfp8rt.MISMATCH, text)


def test_first_version():
    """Files of the first version have a checksum or none."""
    state, path = make("ab"), folder / "first"
    run(state, [[1, 2]])
    state.save(path)
    tensors, info = load_file(path), metadata(path)
    expect(info[VERSION], "2")
    info[VERSION] = "1"
    for drop in ([], [CHECKSUM]):
        save_file(tensors, path, {k: v for k, v in info.items() if k not in drop})
        loaded = make("ab")
        loaded.load(path)
        expect(loaded.scale, state.scale)


def test_bad_files():
    state, path = make("ab"), folder / "bad"
    run(state, [[1, 2]])
    state.save(path)
    bytes_, tensors, info = path.read_bytes(), load_file(path), metadata(path)

    def bad(status, message, values={}, meta={}, drop=()):
        changed = {k: v for k, v in {**tensors, **values}.items() if k not in drop}
        about = {k: v for k, v in {**info, **meta}.items() if k not in drop}
        save_file(changed, path, about)
        refuses(state, path, status, message)

    manifest = json.loads(info[MANIFEST])
    f32 = lambda *v: np.array(v, F32)
    text = f"expected a scaling state, but the metadata has no {VERSION}"
    bad(libfp8rt.FILE, text, drop=[VERSION])
    text = "expected version 1 or 2 of a scaling state, but got '3'"
    bad(libfp8rt.VERSION, text, meta={VERSION: "3"})
    # Damage to the key itself.
    text = f"expected the metadata {CHECKSUM}, but it is missing"
    bad(libfp8rt.FILE, text, drop=[CHECKSUM])
    bad(libfp8rt.FILE, text, meta={CHECKSUM.replace("fp8", "fp9"): info[CHECKSUM]}, drop=[CHECKSUM])
    bad(libfp8rt.FILE, f"expected the metadata {MANIFEST}, but it is missing", drop=[MANIFEST])
    text = "expected the manifest to be JSON in UTF-8, but it is malformed at byte 1"
    bad(libfp8rt.FILE, text, meta={MANIFEST: "?"})
    text = "manifest: expected pow2 to be true or false, but got 1"
    bad(libfp8rt.FILE, text, meta={MANIFEST: json.dumps({**manifest, "pow2": 1})})
    bad(libfp8rt.FILE, "expected a tensor 'scale', but it is missing", drop=["scale"])
    bad(libfp8rt.FILE, "expected 9 tensors, but got 10", {"more": f32(1)})
    bad(libfp8rt.FILE, "tensor 'steps': expected I64, but got F32", {"steps": f32(1)})
    text = "expected the shape that the manifest gives, of 2 slots and 3 past amaxes"
    text += ", but got another"
    bad(libfp8rt.FILE, f"tensor 'amax_history': {text}", {"amax_history": np.zeros((2, 4), F32)})
    bad(libfp8rt.FILE, f"tensor 'scale': {text}", {"scale": f32(1)})
    for value, shown in ((-1, "-1.000000"), (np.nan, "nan"), (np.inf, "inf")):
        text = f"slot 'b': expected a scale of at least 0, but got {shown}"
        bad(libfp8rt.FILE, text, {"scale": f32(1, value)})
    text = "expected amaxes of at least 0, but got -2.000000"
    bad(libfp8rt.FILE, text, {"amax": f32(0, -2)})
    bad(libfp8rt.FILE, text, {"last_amax": f32(-2, 0)})
    text = "expected counts of at least 0, but got -1"
    bad(libfp8rt.FILE, text, {"recorded": np.array([-1, 0])})
    # Cut off anywhere, and lengthened; the reader's own messages are tested with it.
    for cut in [*range(0, len(bytes_), 7), len(bytes_) - 1]:
        path.write_bytes(bytes_[:cut])
        try:
            state.load(path)
        except libfp8rt.Error as error:
            expect(error.status, libfp8rt.FILE)
        else:
            raise SystemExit(f"expected an error for {cut} of {len(bytes_)} bytes")
    path.unlink()
    refuses(state, path, libfp8rt.FILE, "cannot open: No such file or directory")
    text = f"{folder}/no/where: cannot open its directory: No such file or directory"
    try:
        state.save(folder / "no" / "where")
    except libfp8rt.Error as error:
        expect((error.status, str(error)), (libfp8rt.FILE, text))


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name)
