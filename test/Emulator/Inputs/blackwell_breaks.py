"""What mutate.py breaks in kernels for sm_100a: name, what to look for, what to put there, which.

Three statements are not among them, which PTX asks for and the emulator does not miss. They are the bar.warp.sync before one lane
gives sums back for its warp, whose loads are one to the emulator, and the fences around the allocation and before it is
given back, which each follow or precede a barrier with others. Nor is the fence.proxy.async of the second of two blocks,
as one of the first comes after it: that `.shared::cta` is a block's own memory alone is not modelled.
"""

GONE = ""
# Descriptors of matrices in shared memory: version 1, in bits 46 to 48, and a swizzle.
DESCRIPTOR = r"(or\.b64 \s*%rd\d+, %rd\d+, )(-?46116\d+|461173\d+)(;)"
INSTRUCTION = r"(mov\.b32 \s*%r\d+, )(13\d{7})(;\s+tcgen05\.mma)"


def field(change):
    """Changes the number between the groups around it, an unsigned one of 32 or 64 bits."""
    def replace(match):
        number = int(match.group(2))
        bits = 64 if abs(number) >= 1 << 32 else 32
        changed = change(number % (1 << bits)) % (1 << bits)
        return f"{match.group(1)}{changed - (1 << bits) if changed >> (bits - 1) else changed}{match.group(3)}"
    return replace


def halve(shift, width):
    mask = (1 << width) - 1
    return lambda number: number & ~(mask << shift) | (number >> shift & mask) // 2 << shift


BREAKS = [
    ("wait gone", r"mbarrier\.try_wait\.parity\.shared\.b64 \s*(%p\d+), [^;]*;", r"mov.pred \1, -1;", "every"),
    ("parity flipped", r"(selp\.b32 \s*%r\d+,) 1, 0,", r"\1 0, 1,", "each"),
    ("arrival of those who take sums lost", r"mbarrier\.arrive\.shared\.b64[^;]*;", GONE, "each"),
    ("commit gone", r"tcgen05\.commit[^;]*;", GONE, "each"),
    ("bytes expected less 16", r"(mov\.b32 \s*%r\d+, )(\d+)(;\s+mbarrier\.arrive\.expect_tx)", "minus16", "each"),
    ("bytes expected more by 16", r"(mov\.b32 \s*%r\d+, )(\d+)(;\s+mbarrier\.arrive\.expect_tx)", "plus16", "each"),
    ("count of barriers 2", r"(mov\.b32 \s*%r\d+, )1(;\s+mbarrier\.init)", r"\g<1>2\2", "each"),
    ("count of those who take sums less 1", r"(mov\.b32 \s*%r\d+, )(4)(;\s+mbarrier\.init)", "minus1", "each"),
    ("count of those who take sums more by 1", r"(mov\.b32 \s*%r\d+, )(4)(;\s+mbarrier\.init)", "plus1", "each"),
    ("an initialization gone", r"mbarrier\.init\.shared\.b64[^;]*;", GONE, "some"),
    ("load of an operand gone", r"cp\.async\.bulk\.tensor\.[234]d\.shared::(?:cta|cluster)[^;]*;", GONE, "each"),
    ("a product gone", r"tcgen05\.mma[^;]*;", GONE, "each"),
    ("sums not cleared", r"setp\.ne\.b32 (\s*%p\d+, %r\d+, )0;(?=[^@]*tcgen05\.mma)", r"setp.ge.u32\g<1>0;", "each"),
    ("sums cleared too often", r"mov\.pred \s*(%p\d+), -1;", r"mov.pred \1, 0;", "each"),
    ("type of A", INSTRUCTION, field(lambda number: number ^ 1 << 7), "each"),
    ("order of B's elements", INSTRUCTION, field(lambda number: number ^ 1 << 16), "each"),
    ("N halved", INSTRUCTION, field(halve(17, 6)), "each"),
    ("M halved", INSTRUCTION, field(halve(24, 5)), "each"),
    ("swizzle of descriptors", DESCRIPTOR, field(lambda number: number ^ 3 << 61), "each"),
    ("version of descriptors", DESCRIPTOR, field(lambda number: number ^ 1 << 46), "each"),
    ("stride of descriptors halved", DESCRIPTOR, field(halve(32, 14)), "each"),
    ("advance along K", r"(mov\.b64 \s*%rd\d+, )2;", r"\g<1>4;", "each"),
    ("sets of sums overlap", r"(shl\.b32 \s*%r\d+, %r\d+, )(5)(;\s+add\.s32 \s*%r\d+, %r\d+, %r)", "minus1", "each"),
    ("sets of sums share other columns", r"(mad\.lo\.s32 \s*%r\d+, %r\d+, )(192|224)(, )", r"\g<1>160\3", "each"),
    ("sums given back a part early", r"(setp\.ne\.b32 \s*%p\d+, %r\d+, )([1-9])(;\s+@%p\d+ bra \s*\S+;\s+tcgen05\.fence::before)", "minus1", "each"),
    ("shared sums taken last", r"(selp\.b32 \s*%r\d+, )(%r\d+), (%r\d+),(?=[^@]*tcgen05\.ld)", r"\1\3, \2,", "each"),
    ("P not written", r"tcgen05\.st[^;]*;", GONE, "each"),
    ("P not waited for", r"tcgen05\.wait::st[^;]*;", GONE, "each"),
    ("sums scaled too rarely", r"vote\.sync\.any", r"vote.sync.all", "each"),
    ("numbers of dropout from another lane", r"(shfl\.sync\.bfly\.b32 \s*%r\d+, %r\d+, )8(, 31, -1;)", r"\g<1>4\2", "each"),
    ("step of a key of dropout lost", r"(add\.s32 \s*%r\d+, %r\d+, )-1640531527;", r"\g<1>0;", "each"),
    ("elements of a mask not read", r"ld\.global\.v2\.b8 \s*\{(%rs\d+), (%rs\d+)\}, \[[^]]*\];", r"mov.b16 \1, 1; mov.b16 \2, 1;", "each"),
    ("a reciprocal of a cap gone", r"rcp\.approx\.ftz\.f32 ", "mov.b32 ", "each"),
    ("lanes of warps", r"(and\.b32 \s*%r\d+, %r\d+, )6291456;", r"\g<1>4194304;", "each"),
    ("a stage too few", r"(setp\.eq\.b32 \s*%p\d+, %r\d+, )(9|12);", "minus1", "each"),
    ("a stage too many", r"(setp\.eq\.b32 \s*%p\d+, %r\d+, )(9|12);", "plus1", "each"),
    ("too few columns", r"(mov\.b32 \s*%r\d+, )64(;\s+tcgen05\.(?:alloc|dealloc))", r"\g<1>32\2", "all"),
    ("columns not given back", r"tcgen05\.dealloc[^;]*;", GONE, "each"),
    ("barrier of the block gone", r"bar\.sync \s*0;", GONE, "each"),
    ("products by all lanes, or copies", None, None, "elect but for stores"),
    ("first lane of a warp no more alone", None, None, "lane"),
    ("store gone", r"cp\.async\.bulk\.tensor\.[234]d\.global[^;]*;", GONE, "each"),
    ("store not committed", r"cp\.async\.bulk\.commit_group;", GONE, "all"),
    ("wait for stores to be read gone", r"cp\.async\.bulk\.wait_group\.read \s*\d+;", GONE, "all"),
    ("part of a row not written", r"st\.shared\.v4\.b32[^;]*;", GONE, "some"),
    ("element not stored", r"st\.global\.b16[^;]*;", GONE, "some"),
    ("commit at one block alone", r"mov\.b16 (\s*%rs\d+), 3;", r"mov.b16 \1, 1;", "each"),
    ("arrival of one block lost", r"mbarrier\.arrive\.shared::cluster[^;]*;", GONE, "each"),
    ("barrier of the cluster gone", r"barrier\.cluster\.arrive[^;]*;\s*barrier\.cluster\.wait[^;]*;", GONE, "each"),
    ("factors not copied to tensor memory", r"tcgen05\.cp[^;]*;", GONE, "each"),
    ("factors not loaded", r"cp\.async\.c[ag][^;]*;", GONE, "each"),
    ("copies of factors not waited for", r"cp\.async\.mbarrier\.arrive\.noinc\.shared\.b64", "mbarrier.arrive.shared.b64 _,", "each"),
    ("sums of a K block not cleared", r"mov\.pred (\s*%p\d+), 0;(?=[^@]*tcgen05\.mma)", r"mov.pred\g<1>,-1;", "each"),
    ("sums of a K block not added", r"fma\.rn\.f32x2[^;]*;", GONE, "some"),
    ("factors of columns not multiplied", r"mul\.rn\.f32x2[^;]*;", GONE, "some"),
    ("factor of another row", r"ld\.shared\.b32 \s*(%r\d+), (\[%rd\d+)\];(?=[^@]*tcgen05\.ld)", r"ld.shared.b32 \1,\2+4];", "some"),
    ("registers given back too few", r"(setmaxnreg\.dec\.sync\.aligned\.u32) \s*\d+;", r"\g<1> 240;", "each"),
    ("wait for the last sums of a K block gone", r"tcgen05\.wait::ld[^;]*;(?=\s*// end inline asm\s*tcgen05\.fence)", GONE, "each"),
    ("number of factors", r"(mov\.b32 \s*%r\d+, )(680\d{6})(;\s+tcgen05\.mma)", field(lambda number: number ^ 1 << 29), "each"),
    ("table of groups not written", r"st\.shared\.b32[^;]*;", GONE, "each"),
    ("table of groups read before it is there", r"(st\.shared\.b32[^;]*;\s*\$L\w+:\s*)bar\.sync \s*0;", r"\1", "each"),
    ("bounds of groups beyond the rows", r"min\.u32 (\s*%r\d+, %r\d+), %r\d+;(?=\s*st\.shared)", r"mov.b32\1;", "each"),
    ("tile that ends with its group stored whole", r"(add\.s32 \s*%r\d+, %r\d+, )128(;\s+setp\.[gl][et]\.u32)", r"\g<1>0\2", "each"),
    ("row of another group stored", r"@%p\d+ (st\.global\.v4\.b32[^;]*;)", r"\1", "some"),
    ("part of a group's row not stored", r"st\.global\.v4\.b32[^;]*;", GONE, "some"),
    ("rows of no group not cleared", r"st\.global\.v2\.b64[^;]*;", GONE, "each"),
    # What changes no result here.
    ("tcgen05.wait::ld gone", r"tcgen05\.wait::ld[^;]*;", GONE, "each"),
    ("fence before sums are given back gone", r"tcgen05\.fence::before_thread_sync;(?=\s*bar\.warp)", GONE, "each"),
    ("fence after a wait gone", r"(not\.pred[^@]*@%p\d+ bra \s*\S+;\s+)tcgen05\.fence::after_thread_sync;", r"\1", "each"),
    ("fence of initialized barriers gone", r"fence\.mbarrier_init[^;]*;", GONE, "all"),
    ("fence between proxies gone", r"fence\.proxy\.async[^;]*;", GONE, "each"),
    ("barrier of storing warps gone", r"bar\.sync \s*[1-9%][^;]*;", GONE, "each"),
]
