"""Pictures with a frozen network: VOC2012.

You have photos, a few hundred of them, and people who answered some questions about what they show.
You will train a head on a network that knows ImageNet, look at what it finds and where, and choose
the next questions.
"""

# %%
# ## Photos
#
# VOC2012 at 160 x 160 pixels and the weights of a ResNet-50 are read from `$COMES_DATA`. On a CPU a
# ResNet-50 takes most of the time, so this page takes 300 photos for training and 120 for testing,
# of six of the twenty classes, at 128 pixels; the last cell says how to run all of it.
import sys
import tempfile
from pathlib import Path

import numpy as np

from comes import Answers, ImageClassifier
from comes.datasets import open_dataset
from comes.errors import ComesError
from comes.files import data_folder
from comes.generation import simulate_answers

folder = Path(tempfile.mkdtemp(prefix="comes-"))
weights = (data_folder() or Path()) / "weights" / "resnet50-v1-imagenet-fp16.safetensors"
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
