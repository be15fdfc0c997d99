"""What ``comes`` alone says: four things to do, and where to go on."""

import comes

FIRST_STEPS = {
    "Train on a file": "comes fit tickets.csv --labels 'is_*' -o model",
    "Judge a model without true labels": "comes evaluate new.csv --labels 'is_*' --model model",
    "Collect labels on a web page": "comes annotate init project --items photos/ "
    "--classes classes.txt",
    "Compare methods": "comes fit tickets.csv --labels 'is_*' --select method -o best",
}
WAY_ON = {
    "comes demo": "see it learn; with --table tickets.csv, get a file to try",
    "comes doctor": "see whether everything is in order here",
    "comes --help": "every command; comes fit --help has the options of one",
}


def greet() -> None:
    """Print the first steps, with colours on a terminal."""
    from rich.console import Console
    from rich.text import Text

    lines = [
        Text.assemble(
            (f"comes {comes.__version__}", "bold"),
            " learns multi-label classifiers from labels that are not exact.",
        ),
    ]
    for title, command in FIRST_STEPS.items():
        lines += [Text(""), Text(title, "bold"), Text(f"  {command}", "cyan")]
    lines.append(Text(""))
    lines += [
        Text.assemble((f"{command:14}", "cyan"), meaning) for command, meaning in WAY_ON.items()
    ]
    console = Console(highlight=False)
    for line in lines:
        console.print(line, soft_wrap=True)
