"""Options about labels that do not fit the columns, or each other."""

from hostile.casework import refused_commands, said_commands
from hostile.label_cases import AREA

refused_commands(
    AREA,
    {
        "a label column that is not there": ("fit names.csv --labels mabye -o m", r"maybe"),
        "a wildcard that matches nothing": ("fit wide.csv --labels 'had_*' -o m", r"had_"),
        "no option for labels": ("fit new.csv -o m", r"--labels"),
        "the same column as labels and truth": (
            "fit names.csv --labels maybe --relevant maybe -o m",
            r"maybe",
        ),
        "a column as label and item": ("fit names.csv --labels maybe --item maybe -o m", r"maybe"),
        "a label column that is ignored": (
            "fit names.csv --labels maybe --ignore maybe -o m",
            r"maybe",
        ),
        "candidates and complementary at once": (
            "fit names.csv --labels maybe --candidates --complementary -o m",
            r"both",
        ),
        "a separator for wide columns": (
            "datasets wide.csv --labels 'has_*' --ignore 'is_*' --separator ,",
            r"separator",
        ),
        "label names for wide columns": (
            "datasets wide.csv --labels 'has_*' --ignore 'is_*' --label-names a,b",
            r"the same names",
        ),
        "a label listed twice": (
            "datasets names.csv --labels maybe --label-names sea,sea,sky,sun,tree",
            r"sea|twice",
        ),
        "a state that is none": (
            "datasets wide.csv --labels 'has_*' --ignore 'is_*' --answers 1=perhaps,0=no",
            r"perhaps",
        ),
        "a word with two meanings": (
            "datasets wide.csv --labels 'has_*' --answers 1=yes,1=no",
            r"'1'",
        ),
        "pairs without an equals sign": (
            "datasets wide.csv --labels 'has_*' --answers 1,0",
            r"1=yes",
        ),
        "long columns that are not there": ("datasets long.csv --long a,b,c", r"'a'|item"),
        "two columns for a long table": ("datasets long.csv --long item,label", r"long|answer"),
        "answers without features": ("fit long.csv --epochs 1 -o m", r"--features"),
        "features without items": ("fit long.csv --features new.csv --epochs 1 -o m", r"item"),
        "positives that never say no, by comes": (
            "fit wide.csv --labels 'has_*' --ignore 'is_*' --positives --method comes-hl "
            "--epochs 1 -o m",
            r"positive|ticked|no",
        ),
        "nothing left to learn from": (
            "fit names.csv --labels maybe --ignore red,green,blue --epochs 1 -o m",
            r"feature",
        ),
    },
)

said_commands(
    AREA,
    {
        "a separator that does not occur": (
            "fit names.csv --labels maybe --separator '|' --epochs 1 -o m",
            r"no cell has the separator",
        ),
        "a separator of two letters": (
            "datasets names.csv --labels maybe --separator and",
            r"no cell has the separator",
        ),
    },
)
