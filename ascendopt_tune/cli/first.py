"""``ascendopt-tune`` without arguments: what to do first."""

from __future__ import annotations

import textwrap

_WIDEST = 80
_WHAT = (
    "ascendopt-tune tunes AscendC operators: tiling program and kernel, together. Without an NPU it uses the virtual "
    "one that comes with it, whose times are modelled."
)
_STEPS = {
    "ascendopt-tune doctor": "what was found on this machine, and what is missing",
    "ascendopt-tune ops": "the operators that ship with the project",
    "ascendopt-tune run softmax --profile": "build, run and check one as it is written, and see where its time goes",
    "ascendopt-tune tune softmax --report softmax.html": "tune it: a minute or two; Ctrl-C keeps the best pair found "
    "so far",
    "ascendopt-tune tune path/to/my_op --input x=float16[8,2048]": "an operator of yours: a folder with op_host/ and "
    "op_kernel/",
}
_MORE = {
    "Every command:": "ascendopt-tune --help",
    "One of them, with examples:": "ascendopt-tune COMMAND --help",
}


def first_steps(width: int = _WIDEST) -> str:
    """What the command line says of itself, in lines that are at most ``width`` long where their words let them."""

    def fill(text: str, indent: int = 0, hang: int = 0) -> str:
        return textwrap.fill(
            text, min(width, _WIDEST), initial_indent=" " * indent, subsequent_indent=" " * (indent + hang),
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip

    lines = [fill(_WHAT), "", "What to do first:", ""]
    for command, why in _STEPS.items():
        lines += [fill(command, 2, 2), fill(why, 6)]
    lines += ["", *(fill(f"{what} {command}", hang=2) for what, command in _MORE.items())]
    return "\n".join(lines) + "\n"
