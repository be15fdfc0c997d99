"""``python -m comes``, for torchrun."""

from comes.cli import main

main()
