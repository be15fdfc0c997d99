"""The options that say what the columns of a file mean, written once for all commands."""

from typing import TYPE_CHECKING, Annotated, Any

from comes.cli.help_pages import options_under
from comes.cli.options import parse_pairs, split_names
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions

option = options_under("Reading data")


def reading_options(
    labels: Annotated[
        str | None,
        option(
            help="Label columns of a table: one per label (0/1, or no/yes/maybe/nothing), "
            'separated by commas, wildcards allowed; or one of label names such as "apple;plate".'
        ),
    ] = None,
    relevant: Annotated[
        str | None, option(help="The same for the true labels, where the table has them.")
    ] = None,
    ignore: Annotated[
        str | None, option(help="Columns that are neither label nor feature.")
    ] = None,
    text: Annotated[
        str | None, option(help="Columns of a table that are texts, if not found to be.")
    ] = None,
    category: Annotated[
        str | None, option(help="Columns of a table that are categories, such as codes.")
    ] = None,
    number: Annotated[
        str | None, option(help="Columns of a table that are numbers; other cells are missing.")
    ] = None,
    date: Annotated[
        str | None, option(help="Columns of a table that are dates; other cells are missing.")
    ] = None,
    item: Annotated[str | None, option(help="The column that names the items.")] = None,
    long: Annotated[
        str | None,
        option(
            help="The columns of a table of answers, if not item,label,answer; then those of the "
            "person and the source."
        ),
    ] = None,
    answers: Annotated[
        str | None,
        option(
            help="What the words of answers mean, yes, no, maybe or 'not asked': "
            "1=yes,0=no,'-1=not asked'."
        ),
    ] = None,
    features: Annotated[
        str | None,
        option(help="A file of features with the same items, for a file of labels."),
    ] = None,
    images: Annotated[str | None, option(help="The folder or .zip of the images.")] = None,
    skip_broken: Annotated[
        bool, option("--skip-broken", help="Leave out images that cannot be read.")
    ] = False,
    candidates: Annotated[
        bool, option("--candidates", help="The labels are candidates, not true labels.")
    ] = False,
    complementary: Annotated[
        bool, option("--complementary", help="The labels mark what is surely irrelevant.")
    ] = False,
    positives: Annotated[
        bool, option("--positives", help="The labels were ticked; others may be relevant.")
    ] = False,
    separator: Annotated[
        str | None,
        option(
            help="What separates label names in a cell: ';', ',', '|', space, tab, list. Default: "
            "found, if it is clear."
        ),
    ] = None,
    label_names: Annotated[
        str | None,
        option(help="All labels, if a column of names may not show them all."),
    ] = None,
    difficult: Annotated[
        str | None, option(help="VOC's difficult objects: irrelevant (default) or relevant.")
    ] = None,
    unannotated: Annotated[
        str | None, option(help="COCO's images without annotation: drop (default) or keep.")
    ] = None,
) -> "ReadOptions":
    """Return what the columns mean; the parameters are the options."""
    from comes.datasets import ReadOptions

    kinds = {"candidates": candidates, "complementary": complementary, "positives": positives}
    given = [kind for kind, is_given in kinds.items() if is_given]
    if len(given) > 1:
        raise ComesError(f"labels are {' or '.join(given)}; got both options. Leave one out.")
    checked: dict[str, Any] = {"difficult": difficult, "unannotated": unannotated}
    if given:
        checked["labels_are"] = given[0]
    return ReadOptions(
        labels=split_names(labels),
        relevant=split_names(relevant),
        ignore=split_names(ignore),
        text=split_names(text),
        category=split_names(category),
        number=split_names(number),
        date=split_names(date),
        item=item,
        long=split_names(long),
        words=parse_pairs(answers, "--answers"),
        features=features,
        images=images,
        skip_broken=skip_broken,
        label_names=split_names(label_names),
        separator=separator,
        **checked,
    )
