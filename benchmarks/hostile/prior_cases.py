"""Tables of priors, clean samples and rates that cannot be."""

import pandas as pd

from comes.priors import read_priors
from hostile.casework import Place, handled, refused, said
from hostile.materials import LABELS, ROWS, frame, relevant, text_of, wide

AREA = "priors and rates"
FIT = "fit names.csv --labels maybe --method comes-hl --epochs 1 -o m --priors p.csv"


def _fit(place: Place, table: str) -> str:
    place.write("p.csv", table)
    return place.comes(FIT)


def _priors(**changes: object) -> str:
    values: dict[str, object] = dict.fromkeys(LABELS, 0.3)
    rows = "\n".join(f"{name},{value}" for name, value in (values | changes).items())
    return f"label,class_prior\n{rows}\n"


@refused(AREA, r"tree")
def _a_label_without_a_prior(place: Place) -> object:
    return _fit(place, "label,class_prior\nsea,.3\nsky,.3\nsun,.3\n")


@refused(AREA, r"plum")
def _a_prior_of_an_unknown_label(place: Place) -> object:
    return _fit(place, _priors(plum=0.1))


@refused(AREA, r"sea|twice|once")
def _a_label_twice(place: Place) -> object:
    return _fit(place, _priors() + "sea,0.5\n")


@refused(AREA, r"\[0, 1\]|between 0 and 1|1\.3")
def _a_prior_above_one(place: Place) -> object:
    return _fit(place, _priors(sky=1.3))


@refused(AREA, r"\[0, 1\]|between 0 and 1|30|percent")
def _priors_in_percent(place: Place) -> object:
    return _fit(place, _priors(sea=30, sky=20, sun=5, tree=12))


@refused(AREA, r"often|number")
def _a_prior_that_is_a_word(place: Place) -> object:
    return _fit(place, _priors(sky="often"))


@said(AREA, r"no class prior for 'sky'")
def _an_empty_prior(place: Place) -> object:
    return _fit(place, _priors(sky=""))


@said(AREA, r"\b0\b|zero|never relevant")
def _priors_of_nothing(place: Place) -> object:
    return _fit(place, _priors(sea=0, sky=0, sun=0, tree=0))


@said(AREA, r"\b1\b|always|sky")
def _a_prior_of_one_where_labels_are_excluded(place: Place) -> object:
    return _fit(place, _priors(sky=1))


@refused(AREA, r"label|class_prior|column")
def _columns_of_other_names(place: Place) -> object:
    return _fit(place, "name,prior\nsea,.3\nsky,.3\nsun,.3\ntree,.3\n")


@refused(AREA, r"empty|no rows|column")
def _an_empty_table_of_priors(place: Place) -> object:
    return _fit(place, "")


@refused(AREA, r"priors|not.*there|found|p\.csv")
def _priors_that_are_not_there(place: Place) -> object:
    return place.comes(FIT)


@refused(AREA, r"standard_error|error")
def _an_error_below_zero(place: Place) -> object:
    rows = "\n".join(f"{name},0.3,-0.1" for name in LABELS)
    return _fit(place, f"label,class_prior,standard_error\n{rows}\n")


@refused(AREA, r"known_prior|\[0, 1\]|2")
def _a_known_prior_above_one(place: Place) -> object:
    place.comes("priors names.csv --labels maybe -o p.csv")
    table = pd.read_csv("p.csv")
    table["known_prior"] = [2.0, None, None, None]
    return _fit(place, text_of(table))


@handled(AREA)
def _priors_in_another_order(place: Place) -> object:
    place.write("p.csv", "label,class_prior\ntree,.1\nsun,.2\nsky,.3\nsea,.4\n")
    read = read_priors("p.csv")
    return isinstance(read, pd.Series) and read[LABELS].tolist() == [0.4, 0.3, 0.2, 0.1]


@said(AREA, r"prior.*(more|less|share|exclu|contradict|larger)|candidate")
def _a_prior_above_the_share_of_candidates(place: Place) -> object:
    return _fit(place, _priors(tree=0.99))


@refused(AREA, r"label|plum|agree|name")
def _a_clean_sample_of_other_labels(place: Place) -> object:
    table = frame(**wide(relevant(), "is_")).rename(columns={"is_tree": "is_plum"})
    place.write("c.csv", text_of(table.rename(columns=lambda c: c.removeprefix("is_"))))
    return place.comes("priors names.csv --labels maybe --clean c.csv")


@refused(AREA, r"green|feature|column")
def _a_clean_sample_without_a_feature(place: Place) -> object:
    table = frame(**wide(relevant(), "relevant:")).drop(columns="green")
    place.write("c.csv", text_of(table))
    return place.comes("fit names.csv --labels maybe --epochs 1 -o m --clean c.csv")


@refused(AREA, r"no column 'maybe'|true")
def _a_clean_sample_without_truth(place: Place) -> object:
    return place.comes("fit names.csv --labels maybe --epochs 1 -o m --clean new.csv")


@refused(AREA, r"no rows|empty|row")
def _a_clean_sample_without_rows(place: Place) -> object:
    place.write("c.csv", text_of(frame(**wide(relevant(), "relevant:"))[:0]))
    return place.comes("fit names.csv --labels maybe --epochs 1 -o m --clean c.csv")


@said(AREA, r"few|row|uncertain|error")
def _a_clean_sample_of_one_row(place: Place) -> object:
    place.write("c.csv", text_of(frame(**wide(relevant(), "relevant:"))[:1]))
    return place.comes("priors names.csv --labels maybe --clean c.csv")


@said(AREA, r"few|uncertain|nothing|exclude")
def _priors_where_nothing_is_excluded(place: Place) -> object:
    place.write("d.csv", text_of(frame(maybe=[";".join(LABELS)] * ROWS)))
    return place.comes("priors d.csv --labels maybe")


@refused(AREA, r"feature")
def _priors_without_features(place: Place) -> object:
    return place.comes("priors long.csv")


@refused(AREA, r"rate")
def _a_rate_below_zero_for_priors(place: Place) -> object:
    return place.comes("priors names.csv --labels maybe --exclude-rate -0.1")


@refused(AREA, r"exclude.rate|answers")
def _an_exclude_rate_for_priors_of_answers(place: Place) -> object:
    return place.comes("priors answers.npz --exclude-rate 0.3")
