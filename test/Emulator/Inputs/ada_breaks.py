"""What mutate.py breaks in kernels by mma.sync: name, what to look for, what to put there, which.

The wait for all copies behind the loop over K is not among them: the last ones have been waited for in the loop. Nor is what
a block does between one tile and the next, where it has a single one. Of A both pairs of lanes have the same factors.
"""

GONE = ""

BREAKS = [
    ("barrier of the block gone", r"bar\.sync \s*0;", GONE, "each"),
    ("wait for copies gone", r"cp\.async\.wait_group \s*[1-9];", GONE, "each"),
    ("wait for copies one later", r"(cp\.async\.wait_group \s*)([1-8])(;)", "plus1", "each"),
    ("a copy not committed", r"cp\.async\.commit_group;", GONE, "each"),
    ("copy of an operand gone", r"cp\.async\.cg[^;]*;", GONE, "some"),
    ("copy of factors gone", r"cp\.async\.ca[^;]*;", GONE, "some"),
    ("factors of another lane", r"(kind::mx[^;]*, \{[0-3], )(0)(\};)", "plus1", "some"),
    ("factors of another 32 of K", r"(kind::mx[^;]*, \{)(1)(, 0\}, %r\d+)", "plus1", "some"),
    ("a product gone", r"mma\.sync[^;]*;", GONE, "some"),
    ("fragments exchanged", r"(ldmatrix\.[^;{]*\{)(%r\d+), (%r\d+)(, )", r"\1\3, \2\4", "some"),
    ("a stage too few", r"(setp\.(?:eq|ne)\.b32 \s*%p\d+, %r\d+, )([2-5])(;)", "minus1", "each"),
    ("sum of a K block not added", r"add\.rn\.f32[^;]*;|add\.f32[^;]*;", GONE, "some"),
    ("results not stored", r"st\.global\.(?:b16|b32|v2\.b16)[^;]*;", GONE, "some"),
    ("fence around the count of parts of K gone", r"fence\.acq_rel\.gpu;", GONE, "each"),
    ("barrier around the count of parts of K gone", r"bar\.sync \s*1, \d+;(?=\s+(?:@|ld))", GONE, "each"),
]
