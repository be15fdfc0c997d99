"""Candidate labels and answers generated from true labels.

====================  =======================================================  =======
process               an irrelevant label j of an instance x is excluded       Lemma 1
====================  =======================================================  =======
`case_a`              with probability 1 - flip_rate, independently            holds
`case_b`              on an exact share of the instances irrelevant to j       holds
`independent`         with probability exclude_rate, independently             holds
`one_uniform`         if it is the one drawn among the irrelevant ones         fails
`random_size`         if it is in a random set of random size (CTL)            fails
`instance_dependent`  with a probability that depends on x                     fails
====================  =======================================================  =======

Lemma 1 says that the instances that exclude j are a fair sample of those irrelevant to j,
p(x | j excluded) = p(x | j irrelevant). It holds if the probability of excluding an irrelevant
label is one number per label. In `one_uniform` and `random_size` it depends on how many labels are
relevant: an instance with few irrelevant labels excludes each of them more often. There the lemma
holds only in special cases, such as when every instance has the same number of relevant labels.

`Case` names the processes for `generate`. `simulate_answers` draws yes, no and maybe.
"""

from comes.generation.answer_draws import simulate_answers
from comes.generation.candidate_draws import case_a, case_b, independent, one_uniform, random_size
from comes.generation.feature_draws import instance_dependent
from comes.generation.named_cases import Case, generate

__all__ = [
    "Case",
    "case_a",
    "case_b",
    "generate",
    "independent",
    "instance_dependent",
    "one_uniform",
    "random_size",
    "simulate_answers",
]
