"""Optima and best known values of instances, by integer programming and by the solvers of other packages.

A solver takes a batch of instances and returns a value for each, or None where it cannot solve them. It stops
after a number of nodes and not of seconds, so that it finds the same on every machine.
"""
