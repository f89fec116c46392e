"""The exact optimum of small conflict graphs, and the exact backlog of schedules."""
