"""A run of embeddings that was stopped continues as if it had not been; what it saves can be loaded."""

import pytest
import torch

from edgewise.config.errors import CheckpointError, Interrupted
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.systems.reasoning.embeddings import training as kge
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig, KGEConfig
from edgewise.systems.reasoning.embeddings.training import CHECKPOINTS, measure, train_kge
from edgewise.systems.reasoning.knowledge.dataset import load_dataset

SMALL = {"embedding": EmbeddingConfig(dim=4), "epochs": 4, "save_every": 1, "batch_size": 256}


@pytest.fixture(scope="module")
def countries():
    return load_dataset("countries_s1")


class StopAfter:
    """A watcher that raises the stop request in an epoch, as Ctrl-C would."""

    def __init__(self, monkeypatch, epoch, questions):
        self.request = None
        self.limit = epoch * questions
        outer = self

        class Request(kge.StopRequest):
            def __init__(self, finishing):
                super().__init__(finishing)
                outer.request = self

        monkeypatch.setattr(kge, "StopRequest", Request)

    def start(self, frames, total, name):
        pass

    def update(self, frames, shown):
        if frames >= self.limit:
            self.request.received = "SIGINT"

    def close(self):
        pass


def test_a_stopped_run_continues_bit_for_bit(tmp_path, countries, monkeypatch):
    config = KGEConfig(**SMALL, evaluate_every=2)
    whole = train_kge(countries, config)
    with monkeypatch.context() as patch:
        progress = StopAfter(patch, 2, 2 * len(countries.train))
        with pytest.raises(Interrupted, match=r"SIGINT after epoch 2.*\n.*--resume"):
            train_kge(countries, config, folder=tmp_path, progress=progress)
    rest = train_kge(countries, config, folder=tmp_path, resume=True)
    assert torch.equal(rest.model.score(countries.test), whole.model.score(countries.test))
    assert rest.losses == whole.losses
    assert rest.validation == whole.validation
    assert set(whole.validation) == {2, 4}
    assert len(checkpoint.saved(tmp_path / CHECKPOINTS)) == 1


def test_a_finished_run_is_taken_up_as_it_is(tmp_path, countries):
    config = KGEConfig(**SMALL)
    done = train_kge(countries, config, folder=tmp_path)
    again = train_kge(countries, config, folder=tmp_path, resume=True)
    assert again.losses == done.losses
    assert measure(again.model, countries, "test") == measure(done.model, countries, "test")


def test_what_changes_nothing_about_learning_may_differ(tmp_path, countries):
    train_kge(countries, KGEConfig(**SMALL), folder=tmp_path)
    other = KGEConfig(**{**SMALL, "save_every": 2}, evaluate_every=2)
    assert len(train_kge(countries, other, folder=tmp_path, resume=True).losses) == 4


def test_resuming_where_nothing_is_begins(tmp_path, countries):
    assert len(train_kge(countries, KGEConfig(**SMALL), folder=tmp_path, resume=True).losses) == 4


def test_other_settings_and_other_data_are_refused(tmp_path, countries):
    train_kge(countries, KGEConfig(**SMALL), folder=tmp_path)
    with pytest.raises(CheckpointError, match="other settings: learning_rate"):
        train_kge(countries, KGEConfig(**SMALL, learning_rate=0.3), folder=tmp_path, resume=True)
    (tmp_path / "data").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / "data" / f"{split}.txt").write_text("a\tr\tb\n")
    with pytest.raises(CheckpointError, match="was trained on other data"):
        train_kge(load_dataset(tmp_path / "data"), KGEConfig(**SMALL), folder=tmp_path, resume=True)
