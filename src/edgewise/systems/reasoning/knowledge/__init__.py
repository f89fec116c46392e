"""Knowledge graphs: vocabulary, files, rules, leaks between splits, and downloads."""
