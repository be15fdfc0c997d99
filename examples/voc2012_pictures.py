"""Pictures with a frozen network: VOC2012.

You have photos, a few hundred of them, and people who answered some questions about what they show.
You will train a head on a network that knows ImageNet, see how well it finds each class, and choose
the next questions.
"""

# %%
# ## Photos
#
# VOC2012 at 160 x 160 pixels and the weights of a ResNet-50 are read from `$COMES_DATA`. On a CPU a
# ResNet-50 takes most of the time, so this page takes 240 photos for training and 100 for testing,
# of six of the twenty classes, at 128 pixels; the last cell says how to run all of it.
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from comes import Answers, ImageClassifier
from comes.datasets import open_dataset
from comes.errors import ComesError
from comes.generation import simulate_answers

folder = Path(tempfile.mkdtemp(prefix="comes-"))
data = Path(os.environ.get("COMES_DATA", ""))
weights = data / "weights" / "resnet50-v1-imagenet-fp16.safetensors"
try:
    train, test = open_dataset("VOC2012-160px:train"), open_dataset("VOC2012-160px:val")
except ComesError as missing:
    sys.exit(f"This example needs VOC2012; set COMES_DATA to the folder that has it: {missing}")
if not weights.exists():
    sys.exit(f"This example needs the weights of a network: put them at COMES_DATA, as {weights}.")
classes = ["aeroplane", "bird", "car", "cat", "dog", "person"]
columns = [train.label_names.index(name) for name in classes]


def take_photos(split, count):
    """Return the first photos of a split that show one of the classes, and what they show."""
    rows = np.flatnonzero(split.relevant[:, columns].any(axis=1))[:count]
    return split.X[rows], split.relevant[np.ix_(rows, columns)]


photos, relevant = take_photos(train, 240)
new_photos, truth = take_photos(test, 100)
drawn = simulate_answers(relevant, asked_rate=0.6, no_rate=0.9, yes_rate=0.9, seed=0)
answers = Answers(no=drawn.excluded, yes=drawn.confirmed, maybe=drawn.doubtful, label_names=classes)
print(answers)

# %%
# ## Train the head
#
# The network stays as it is. Its features are computed once and kept in the cache (`COMES_CACHE`),
# so the next head takes seconds. The head reads the classes that the network knows, clusters of
# your photos, and the last layer.
model = ImageClassifier(weights=weights, image_size=128, random_state=0).fit(photos, answers)
scores = model.decision_function(new_photos)
probabilities = model.squash_scores(scores)

# %%
# ## What it finds
#
# The area under the precision-recall curve of each class, on photos that it has not seen, beside
# the share of photos that show the class: what a ranking by chance would have.
from comes.label_metrics import measure_labels
from comes.report import plot_quality, save_plot

quality = measure_labels(scores, truth)
for name, precision, share in zip(
    classes, quality["average_precision"], truth.mean(axis=0), strict=True
):
    print(f"{name:10} {precision:.2f}   by chance {share:.2f}")
axes = plot_quality(quality, metric="average_precision", label_names=classes)
save_plot(axes, folder / "precision-of-every-class.svg")

# %%
# ## What to ask next
#
# Nobody was asked about the new photos. A question is worth most where the model cannot tell:
# `choose_questions` takes the pairs whose answer should tell most, in bits, and spreads them over
# the classes. Answers to them are marked as chosen, so that rates are estimated without them.
from comes.answers import choose_questions

questions = choose_questions(probabilities, 12)
for row, label, bits in zip(questions.row, questions.label, questions.bits, strict=True):
    name, probability = new_photos.names[row], probabilities[row, label]
    print(f"{classes[label]} in {name}? {probability:.2f}, {bits:.2f} bits")

# %%
# ## All of it
#
# Leave out `image_size` and `take_photos`, and give it a GPU or an hour. The mAP over all twenty
# classes with one pair in ten asked about, and what fine-tuning adds, are in
# [images.md](../guide/images.md). From a terminal, with maps of where the evidence is and a page of
# photos: `comes fit answers.csv --images photos/ --set weights=FILE -o model` and
# `comes predict photos/ --model model -o scores.csv --page page --maps`.
