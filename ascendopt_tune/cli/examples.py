"""Examples at the end of the help of commands and groups that have no longer text of their own."""

from __future__ import annotations

from rich.markup import escape

_EXAMPLES: dict[str, tuple[str, ...]] = {
    "doctor": ("ascendopt-tune doctor", "ascendopt-tune doctor --json"),
    "ops": ("ascendopt-tune ops", "ascendopt-tune ops --json"),
    "toolkit": (
        "ascendopt-tune toolkit",
        "g++ -c main.cpp -I$(ascendopt-tune toolkit --prefix)/include",
    ),
    "silicon-check": ("ascendopt-tune silicon-check -o results", "ascendopt-tune silicon-check --reduced"),
    "completion": (
        'eval "$(ascendopt-tune completion bash)"',
        "ascendopt-tune completion zsh > ~/.zfunc/_ascendopt-tune",
        "ascendopt-tune completion fish > ~/.config/fish/completions/ascendopt-tune.fish",
    ),
    "calibrate": (
        "ascendopt-tune calibrate -o mine.toml",
        "ascendopt-tune tune add --chip mine.toml",
    ),
    "fidelity": (
        "ascendopt-tune fidelity --csv rows.csv --plot rows.html",
        "ascendopt-tune fidelity data_copy add/4",
        "ascendopt-tune fidelity --cold",
        "ascendopt-tune fidelity --cross-validate",
        "ascendopt-tune fidelity --measurements mine.csv --all",
        "ascendopt-tune fidelity --operators swi_glu group_norm/16",
    ),
    "cache": ("ascendopt-tune cache list", "ascendopt-tune cache export bundle.tar.gz"),
    "cache list": ("ascendopt-tune cache list", "ascendopt-tune cache list --operator rms_norm --json"),
    "cache show": ("ascendopt-tune cache show 3a7bd3e2",),
    "cache explain": ("ascendopt-tune cache explain rms_norm --input x=float16[64,1024] --input gamma=float16[1024]",),
    "cache verify": ("ascendopt-tune cache verify",),
    "cache export": ("ascendopt-tune cache export bundle.tar.gz --operator rms_norm --sign key.pem",),
    "cache unpack": ("ascendopt-tune cache unpack bundle.tar.gz layer",),
    "cache import": (
        "ascendopt-tune cache import bundle.tar.gz",
        "ascendopt-tune cache import bundle.tar.gz --operator my_op=path/to/my_op",
    ),
    "cache merge": ("ascendopt-tune cache merge path/to/another/cache",),
    "cache diff": ("ascendopt-tune cache diff path/to/bundle", "ascendopt-tune cache diff old new --json"),
    "cache gc": ("ascendopt-tune cache gc --dry-run", "ascendopt-tune cache gc --older-than 90"),
    "bank": ("ascendopt-tune bank show", "ascendopt-tune bank search 'the vector pipe waits for copies'"),
    "bank search": (
        "ascendopt-tune bank search 'the scalar unit is busy with one element after the other' -k 5",
        "ascendopt-tune bank search --op softmax --case x=float16[512,512]",
    ),
    "bank show": ("ascendopt-tune bank show", "ascendopt-tune bank show 3a7b"),
    "bank merge": ("ascendopt-tune bank merge path/to/bank theirs.jsonl",),
    "bank export": ("ascendopt-tune bank export mine.jsonl --validated --motif double-buffer",),
    "bank import": ("ascendopt-tune bank import points.json",),
    "bank plot": ("ascendopt-tune bank plot landscape.html",),
    "bench": ("ascendopt-tune bench operators", "ascendopt-tune bench search --list development --budget 20 --seeds 1"),
    "bench operators": ("ascendopt-tune bench operators --list development",),
    "bench sensitivity": (
        "ascendopt-tune bench sensitivity --results path/to/results --sizes decode",
        "ascendopt-tune bench sensitivity --results path/to/results --state flushed",
    ),
    "dsl": ("ascendopt-tune dsl check scale.py --input x=float32[8,1000]",),
}


def of(command: str) -> str:
    """The examples of a command or group as the end of its help, in rich's markup."""
    return "\n\n".join(["[bold]Examples[/]", *map(escape, _EXAMPLES[command])])
