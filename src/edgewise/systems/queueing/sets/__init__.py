"""Independent sets of a graph: lists, decision diagrams and the heaviest one."""
