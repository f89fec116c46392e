"""Studies: seeds, sweeps and benchmark grids, which are folders of planned runs in child processes.

The process that plans and watches never imports torch; its children are ordinary runs.
"""
