"""A team annotates, from the first card to a model.

You lead three people who answer questions about pictures. You will draw the cards, see how well
people agree, find out who is careless, and train on what they said. The people are simulated, and
answer over HTTP as the page does; yours open the page of `comes annotate serve`.
"""

# %%
# ## A project
#
# 2000 scenes of handwritten digits, ten classes. A tenth of the pairs becomes cards, drawn at
# random, and a fifth of these is shown to a second person: without overlap nobody can tell how well
# people agree. From a terminal: `comes annotate init`.
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from comes.annotate import create_project, serve_in_thread, set_controls, summarise
from comes.datasets import make_scenes

folder = Path(tempfile.mkdtemp(prefix="comes-"))
truth = make_scenes("train", n=2000)
items = [f"scene-{number:05}.png" for number in range(2000)]
(folder / "pictures").mkdir()
for name, pixels in zip(items, truth.X, strict=True):
    picture = (255 * pixels).astype(np.uint8).reshape(16, 16)
    Image.fromarray(picture).save(folder / "pictures" / name)
(folder / "classes.txt").write_text("\n".join(truth.label_names))
project = create_project(
    folder / "digits", folder / "pictures", folder / "classes.txt", rate=0.1, overlap=0.2
)
print(f"{len(project.item_names)} pictures, {project.count_cards()} cards")

# %%
# ## The people
#
# Ann and Bob are sure four times in five, and then right. Cal clicks "no" whatever the card shows.
# To notice somebody like Cal, mix in cards whose answers you know, here a "yes": most cards are
# "no", and would call Cal right. Control cards look like all others, and what people say to them is
# never exported.
import secrets

import pandas as pd
import requests

column = {label: number for number, label in enumerate(truth.label_names)}
row = {item: number for number, item in enumerate(items)}


def somebody(seed):
    """Return the answers of a person who looks, and cannot tell in one of five cases."""
    unsure = np.random.default_rng(seed).random(truth.relevant.shape) < 0.2

    def say(item, label):
        pair = row[item], column[label]
        return "maybe" if unsure[pair] else "yes" if truth.relevant[pair] else "no"

    return say


def say_no(item, label):
    """Answer without looking."""
    return "no"


def answer_cards(address, name, say, most):
    """Ask for cards as the page does, until there are none, and answer each."""
    tab, person = secrets.token_urlsafe(16), requests.Session()
    person.post(f"{address}/api/join", json={"name": name})
    while most > 0:
        cards = person.post(f"{address}/api/cards", json={"tab": tab}).json()["cards"][:most]
        if not cards:
            break
        answers = [
            {
                "card": card["card"],
                "answer": say(card["name"], card["class"]),
                "key": secrets.token_urlsafe(16),  # if it is sent twice, it counts once
                "seconds": 1.0,
            }
            for card in cards
        ]
        person.post(f"{address}/api/answers", json={"tab": tab, "answers": answers})
        most -= len(cards)


rows, labels = np.nonzero(truth.relevant[:30])
known = pd.DataFrame(
    {
        "item": [items[number] for number in rows],
        "label": [truth.label_names[number] for number in labels],
        "answer": "yes",
    }
)
set_controls(project, known, share=0.05)

with serve_in_thread(project) as address:
    answer_cards(address, "Ann", somebody(1), most=1000)
    answer_cards(address, "Bob", somebody(2), most=1000)
    answer_cards(address, "Cal", say_no, most=300)

# %%
# ## What the lead sees
#
# The page `/lead` shows this while people work, and so does `comes annotate people`. Kappa compares
# agreement with what chance would give: 0 is chance, 1 is perfect. "Cannot tell" against "no" is a
# disagreement, so people who doubt now and then cannot reach 1.
summary = summarise(project)
agreed = summary.agreement
print(f"{summary.n_answers} answers, {summary.n_disagreements} disagreements")
print(f"kappa {agreed.kappa:.2f} ({agreed.lower:.2f} to {agreed.upper:.2f})")
for person in summary.people:
    share = person.n_no / person.n_answers
    right = person.n_right / person.n_controls
    print(f"{person.name}: {share:.0%} no; {right:.0%} of the control cards right")

# %%
# Nobody who looks says no to every control card. Talk to Cal; here Cal is left out of counts and
# exports, as a button on the page does, too. Nothing is deleted.
import subprocess

leave_out = ["comes", "annotate", "people", project.folder, "--leave-out", "Cal"]
subprocess.run(leave_out, check=True, capture_output=True)
agreed = summarise(project).agreement
print(f"without Cal: kappa {agreed.kappa:.2f} ({agreed.lower:.2f} to {agreed.upper:.2f})")

# %%
# ## Export
#
# A row per answer, with who gave it. "Not asked" is what is not there.
from comes.annotate import collect_answers, export_answers

counts = export_answers(project, folder / "answers.csv")
print({name: counts[name] for name in ("answers", "people", "asked", "surely_not")})
answers = collect_answers(project).answers
project.engine.dispose()

# %%
from comes.report import plot_answers, save_plot

axes = plot_answers(answers, truth.relevant.mean(axis=0))
save_plot(axes, folder / "what-the-team-said.svg")

# %%
# ## Train
#
# With names of people in the answers, each person has rates of their own, and a disagreement counts
# as two answers. Pictures are trained on with `comes fit project -o model`; here the pixels of the
# scenes are at hand as a matrix, which takes no network.
from comes import CandidateClassifier

test = make_scenes("test", n=1000)
model = CandidateClassifier(n_networks=1, random_state=0).fit(truth.X, answers)
print(f"average precision on new scenes: {model.score(test.X, test.relevant):.3f}")
