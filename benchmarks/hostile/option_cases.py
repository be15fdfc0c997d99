"""Options: out of range, contradictory, unknown, of another type, for another kind of data."""

import pandas as pd

from hostile.casework import Place, refused, refused_commands, said, said_commands
from hostile.materials import text_of

AREA = "options"
FIT = "fit names.csv --labels maybe --epochs 1 -o m "
DRAW = "datasets convert truth.csv --relevant 'is_*' -o g.csv --simulate "

refused_commands(
    AREA,
    {
        "a command that does not exist": ("fti names.csv", r"fti"),
        "an option that does not exist": (FIT + "--epoch 3", r"--epoch"),
        "an option without its value": ("fit names.csv --labels", r"--labels.*argument|argument"),
        "no output": ("fit names.csv --labels maybe", r"--output|-o"),
        "no data": ("fit -o m", r"DATA"),
        "two data sets": ("fit names.csv wide.csv --labels maybe -o m", r"wide\.csv|unexpected"),
        "epochs below zero": ("fit names.csv --labels maybe --epochs -1 -o m", r"--epochs.*0"),
        "epochs as a word": ("fit names.csv --labels maybe --epochs many -o m", r"--epochs.*int"),
        "half an epoch": ("fit names.csv --labels maybe --epochs 0.5 -o m", r"--epochs.*int"),
        "no epochs for a table": ("fit names.csv --labels maybe --epochs 0 -o m", r"epochs"),
        "a batch of nothing": (FIT + "--set batch_size=0", r"batch_size"),
        "a learning rate below zero": (FIT + "--learning-rate -1", r"learning-rate"),
        "a learning rate of zero": (FIT + "--learning-rate 0", r"learning.rate"),
        "a learning rate that is no number": (FIT + "--learning-rate nan", r"learning.rate"),
        "a learning rate that runs away": (
            FIT + "--epochs 20 --learning-rate 1e9",
            r"learning.rate",
        ),
        "a method that does not exist": (FIT + "--method comes-hll", r"comes-hl"),
        "a variant of a method without any": (FIT + "--method bce --set variant=x", r"variant"),
        "a variant that does not exist": (
            FIT + "--method ccmn --set variant=x",
            r"variant.*ranking",
        ),
        "a network that does not exist": (FIT + "--model resnet", r"mlp"),
        "a reduction that does not exist": (
            FIT + "--method comes-hl --set reduction=total",
            r"per_label",
        ),
        "a threshold that does not exist": (FIT + "--threshold half", r"minmax|zero"),
        "a device that is not there": (FIT + "--device cuda:7", r"cuda"),
        "a device that does not exist": (FIT + "--device warp", r"warp|device"),
        "a seed below zero": (FIT + "--seed -3", r"--seed"),
        "a rate above one": (FIT + "--set exclude_rate=1.5", r"rate of 'exclude'"),
        "a rate of nothing": (FIT + "--set exclude_rate=0", r"exclude"),
        "a rate that is a word": (FIT + "--set exclude_rate=often", r"exclude.*often"),
        "rates for other labels": (FIT + "--set exclude_rate=.1,.2", r"rate of 'exclude'.*4"),
        "a setting without a value": (FIT + "--set exclude_rate", r"NAME=VALUE.*'exclude_rate'"),
        "a setting that does not exist": (FIT + "--set exclud_rate=0.5", r"exclude_rate"),
        "rates of answers for candidates": (FIT + "--set no_rate=0.5", r"no.rate|answers"),
        "an exclude rate for answers": (
            "fit answers.npz --set exclude_rate=0.5 --epochs 1 -o m",
            r"rate of 'exclude'.*'no'",
        ),
        "a flip rate for a method that has none": (
            FIT + "--set flip_rate=0.1",
            r"flip_rate is for ccmn",
        ),
        "a flip rate of one": (FIT + "--method ccmn --set flip_rate=1", r"flip.rate.*1"),
        "a flood level that is a word": (
            FIT + "--method comes-rl --set flood_level=high",
            r"flood_level.*high",
        ),
        "a flood level for another method": (
            FIT + "--method bce --set flood_level=2",
            r"flood_level is for",
        ),
        "a flood level below zero": (
            FIT + "--method comes-rl --set flood_level=-2",
            r"flood_level.*-2",
        ),
        "options of images for a table": (FIT + "--backbone resnet50", r"image"),
        "augmentation without images": (FIT + "--set augment=crop", r"for images"),
        "a setting to choose that is none": (FIT + "--select depth", r"lr.*depth"),
        "a mistake rate of one half": (
            "fit answers.npz --set mistake_rate=0.6 --epochs 1 -o m",
            r"mistake",
        ),
        "a test share of everything": ("split names.csv --labels maybe --test-share 1", r"share"),
        "a test share below zero": ("split names.csv --labels maybe --test-share -0.2", r"share"),
        "groups by a column that is not there": (
            "split names.csv --labels maybe --groups patient",
            r"patient",
        ),
        "parts of another format": (
            "split names.csv --labels maybe -o a.parquet",
            r"must end in \.csv",
        ),
        "a case that does not exist": (DRAW + "z", r"--simulate"),
        "a rate above one to generate": (DRAW + "b --rate 2", r"rate"),
        "rates for fewer labels to generate": (DRAW + "b --rate .1,.2", r"rate.*4|4.*rate"),
        "strength for a case without it": (DRAW + "b --set strength=3", r"strength"),
        "rates of answers for candidates to generate": (
            DRAW + "b --set asked_rate=.5",
            r"asked.rate|answers",
        ),
        "an asked rate of nothing": (DRAW + "answers --set asked_rate=0", r"asked.rate"),
        "candidates of what has no truth": (
            "datasets convert names.csv --labels maybe -o g.csv --simulate b",
            r"true|relevant",
        ),
        "a form that does not exist": (DRAW + "b --form tall", r"--form"),
        "a way of priors that does not exist": (
            "priors names.csv --labels maybe --method guess",
            r"bbe",
        ),
        "a convention that does not exist": (
            "evaluate wide.csv --relevant 'is_*' --model m --convention mlc",
            r"convention",
        ),
        "a shard that is none": ("bench x.toml --shard 3", r"shard.*2/8"),
        "more workers than none": ("bench x.toml --workers 0", r"workers"),
        "options of a page without a page": ("predict new.csv -m m -o p.csv --maps", r"--page"),
        "questions without a file for them": (
            "predict new.csv -m m -o p.csv --questions 3",
            r"--ask-next",
        ),
        "no labels at the top": ("predict new.csv -m m -o p.csv --top 0", r"--top"),
        "a word in place of json": (
            "datasets names.csv --labels maybe --json yes",
            r"yes|unexpected",
        ),
    },
)

said_commands(
    AREA,
    {
        "a test share of one row in a thousand": (
            "split names.csv --labels maybe --test-share 0.001",
            r"Warning: .*test",
        ),
        "a batch larger than the data": (
            FIT + "--set batch_size=100000",
            r"batch|undertrained|epoch",
        ),
        "a known rate that the data contradict": (
            "priors names.csv --labels maybe --exclude-rate 0.05",
            r"rate",
        ),
    },
)


@said(AREA, r"rate.*0\.05|contradict|more often|exclude")
def _a_rate_that_the_data_contradict(place: Place) -> object:
    return place.comes(FIT + "--set exclude_rate=0.05")


@refused(AREA, r"mod|model|not.*there|no model|found")
def _options_that_come_too_late(place: Place) -> object:
    return place.comes("predict new.csv --model mod -o p.csv")


@refused(AREA, r"group|town")
def _one_group_for_all_rows(place: Place) -> object:
    place.write("d.csv", text_of(pd.read_csv("names.csv").assign(town="Bonn")))
    return place.comes("split d.csv --labels maybe --groups town")
