"""Which bits numbers have that are drawn by their bits: those of a few binades."""


def table(function):
    return bytes(map(function, range(256)))


# Exponents that the byte with the sign may have.
TABLES = {
    "e4m3": table(lambda b: b & 0x87 | (1 + (b >> 3 & 15) % 9) << 3),  # 2^-6 to 2^2
    "e5m2": table(lambda b: b & 0x83 | (9 + (b >> 2 & 31) % 9) << 2),  # 2^-6 to 2^2
    "bf16": table(lambda b: b & 0x80 | 0x3C + (b & 3)),  # 2^-7 to 1, with the next byte's bit
    "f16": table(lambda b: b & 0x83 | 8 + (b >> 2 & 7) << 2),  # 2^-7 to 1
    "f32": table(lambda b: b & 0x80 | 0x3C + (b & 3)),
    "factor": table(lambda b: 0x3F),  # 0.5 to 2
}
