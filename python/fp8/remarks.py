"""What the compiler decided of each matrix product, and why."""

from dataclasses import dataclass

_KINDS = ("fp8", "high precision", "copy")


@dataclass(frozen=True)
class Remark:
    """About one matrix product, or one copy of an operand that its kernel needs.

    What a remark lacks is "".
    """

    kind: str  # "fp8", "high precision" or "copy"
    name: str  # of the product, e.g. "layers.3.mlp.up"
    function: str
    location: str  # file:line:column
    role: str  # "fprop", "dgrad" or "wgrad"
    shape: str  # "M=32 N=64 K=256"
    recipe: str
    reason: str  # why it stays in high precision, or is copied
    suggestion: str  # what would change that
    text: str  # all of it in one line
    details: dict  # the rest, e.g. a_granularity, accumulate, padding

    def __str__(self):
        return self.text


def make_remarks(entries):
    """Remarks of what fp8._core has of them."""
    return tuple(Remark(_KINDS[entry[0]], *entry[1:]) for entry in entries)


def explain(remarks):
    """A text that answers "why is this layer not in FP8?": how many are, then one line for
    each, those in high precision with the reason and what would change it."""
    products = [remark for remark in remarks if remark.kind != "copy"]
    count = sum(remark.kind == "fp8" for remark in products)
    lines = [f"{count} of {len(products)} matrix products in FP8"]
    width = max((len(remark.name) for remark in remarks), default=0)
    for remark in remarks:
        line = f"{remark.name:{width}}  {remark.role or '-':5}  {remark.shape}  "
        if remark.kind == "fp8":
            line += f"fp8 by {remark.recipe}"
            line += "".join(f", {word}{remark.details[key]}" for key, word in (("transforms", ""), ("without", "without "))
                            if key in remark.details)
        else:
            line += f"{remark.kind}: {remark.reason}"
            if remark.suggestion:
                line += f"; {remark.suggestion}"
        lines.append(line)
    return "\n".join(lines)
