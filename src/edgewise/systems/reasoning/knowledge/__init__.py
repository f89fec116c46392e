"""Knowledge graphs: names and ids, files, rules, leaks between splits, and where public data is fetched."""
