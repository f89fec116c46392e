"""`edgewise reasoning kge`: train, evaluate and save embeddings of a knowledge graph."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer
from edgewise.config.loading import resolve
from edgewise.config.settings import from_flags
from edgewise.systems.reasoning.embeddings.config import KGEConfig
from edgewise.systems.reasoning.embeddings.defaults import default_config
from edgewise.terminal.console import Console, table
from edgewise.terminal.fields import fields_help
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser

if TYPE_CHECKING:
    from edgewise.systems.reasoning.embeddings.training import TrainingResult
    from edgewise.systems.reasoning.knowledge.dataset import Dataset

SHOWN = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank")


def configure(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.takes_settings = True
    parser.details = _details
    parser.usage = (
        "edgewise reasoning kge FOLDER [--model NAME] [--out FOLDER] [options] [--SETTING VALUE ...]"
    )
    parser.add_argument(
        "data",
        metavar="FOLDER",
        help="folder with train.txt, valid.txt and test.txt, or the name of data in the package",
    )
    parser.add_argument(
        "--download",
        metavar="NAME",
        help="download wn18rr or fb15k-237 into FOLDER first, if it does not exist",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="output folder (runs/kge-FOLDER-MODEL)")
    parser.add_argument(
        "--without-facts", action="store_true", help="train on train.txt alone, though there is a facts.txt"
    )
    parser.add_argument("--resume", action="store_true", help="continue the interrupted training in --out")
    parser.add_argument("--device", default="cpu", metavar="NAME", help="cpu, cuda, cuda:1 or mps")
    parser.add_threads()
    parser.examples(
        "edgewise reasoning kge countries_s3",
        "edgewise reasoning kge data/umls --model distmult --dim 200 --epochs 50 --out runs/umls-distmult",
        "edgewise reasoning kge data/wn18rr --download wn18rr --evaluate-every 5",
    )


def run(options: Namespace, console: Console) -> int:
    """Train, evaluate and save embeddings, and show the figures."""
    model = resolve(KGEConfig, [from_flags(KGEConfig, options.settings)]).embedding.model
    prepare(threads=options.threads)
    from edgewise.scale.devices import check_device
    from edgewise.systems.reasoning.embeddings.store import save_kge
    from edgewise.systems.reasoning.embeddings.training import measure, train_kge
    from edgewise.systems.reasoning.knowledge.dataset import NO_RULES, load_dataset
    from edgewise.systems.reasoning.knowledge.download import download
    from edgewise.training.logging.progress import make_progress

    check_device(options.device)
    if options.download is not None:
        download(options.download, Path(options.data))
    given = load_dataset(options.data, rules=NO_RULES)
    dataset = given if options.without_facts else given.with_facts_in_training()
    defaults = default_config(model, num_entities=dataset.vocabulary.num_entities)
    flags = from_flags(KGEConfig, options.settings)
    config = resolve(KGEConfig, [Layer("the defaults", defaults.to_plain()), flags])
    folder = _folder(options, f"kge-{dataset.name}-{model}")
    result = train_kge(
        dataset,
        config,
        folder=folder,
        resume=options.resume,
        progress=make_progress(unit="questions"),
        device=options.device,
    )
    figures = {split: measure(result.model, dataset, split) for split in ("valid", "test")}
    outcome = _outcome(dataset, config, result, figures)
    outcome["training_atoms"] = {"all": len(dataset.train), "of_train_txt": len(given.train)}
    save_kge(folder, result.model, vocabulary=dataset.vocabulary, about=outcome)
    console.show({"folder": str(folder), **outcome}, _text(dataset, outcome, folder))
    return 0


def _folder(options: Namespace, name: str) -> Path:
    """Create the output folder before training."""
    folder: Path = options.out or Path("runs") / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise ConfigError(f"--out: cannot create the folder {folder}: {error.strerror}") from error
    if occupied and not options.resume:
        raise ConfigError(f"{folder} is not empty", hint="give another --out, or --resume to continue it")
    return folder


def _outcome(
    dataset: Dataset, config: KGEConfig, result: TrainingResult, figures: dict[str, dict[str, float]]
) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "entities": dataset.vocabulary.num_entities,
        "predicates": dataset.vocabulary.num_predicates,
        "config": config.to_plain(),
        "train_cpu_seconds": round(result.cpu_seconds, 2),
        "loss": result.losses[-1],
        "figures": figures,
        "validation": {str(epoch): found for epoch, found in result.validation.items()},
        "leaks": dataset.leaks.to_plain(),
    }


def _origin(outcome: dict[str, Any]) -> str:
    """Return where the training atoms come from, where that is not train.txt alone."""
    counts = outcome["training_atoms"]
    if counts["all"] == counts["of_train_txt"]:
        return ""
    return f" ({counts['all'] - counts['of_train_txt']:,} of them from facts.txt)"


def _text(dataset: Dataset, outcome: dict[str, Any], folder: Path) -> str:
    config = outcome["config"]
    head = (
        f"{dataset.name}: {outcome['entities']:,} entities, {outcome['predicates']:,} predicates,"
        f" {len(dataset.train):,} training atoms{_origin(outcome)}\n"
        f"{config['embedding']['model']}, dim {config['embedding']['dim']}, {config['loss']},"
        f" {config['epochs']} epochs, {outcome['train_cpu_seconds']:.1f} CPU-seconds"
    )
    rows = [
        [split, len(dataset.split(split)), *(found[name] for name in SHOWN)]
        for split, found in outcome["figures"].items()
    ]
    leaks = dataset.leaks.warnings() or [
        "no atom is in two splits, and all entities are in the training data"
    ]
    ranking = "filtered ranks among all entities, both sides; ties get their mean rank"
    warnings = "\n".join(f"data: {line}" for line in leaks)
    figures = table(["split", "atoms", *SHOWN], rows)
    return f"{head}\n\n{figures}\n({ranking})\n\n{warnings}\nembeddings: {folder}"


def _details(arguments: Sequence[str]) -> str:
    del arguments
    fields = fields_help(KGEConfig())
    note = "Defaults depend on the model and the number of entities, else they are:"
    return f"\n\nEvery setting is a flag. {note}\n{fields}"
