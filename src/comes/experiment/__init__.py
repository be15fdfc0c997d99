"""Experiments: a config file to a folder of results."""
