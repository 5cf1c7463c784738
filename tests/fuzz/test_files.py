"""Feature files and saved models with bytes changed, cut off or made up."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat import DPLeastSquares, persistence
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.data import FeatureFileError, open_features, write_features
from privfeat.exceptions import PrivacyError
from privfeat.persistence import ModelFileError, model_folder
from tests.fuzz.damage import damaged

json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ),
    max_leaves=5,
)


def test_a_damaged_feature_file_is_refused_or_reads_the_same(tmp_path, tried, examples):
    """Where the checksums hold, rows and labels are those that were written."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)).astype(np.float32), np.arange(8) % 2
    path = tmp_path / "features.h5"
    write_features(path, {"train": (X, y)}, class_names=["ant", "bee"])
    content = path.read_bytes()

    @examples(80)
    @given(data=st.data())
    def attempt(data):
        path.write_bytes(damaged(content, data.draw))
        try:
            with open_features(path) as file:
                file.verify()
                for split in file.values():
                    found = split.X.read(0, len(split))
                    np.testing.assert_array_equal(found, X)
                    np.testing.assert_array_equal(split.y, y)
        except FeatureFileError:
            tried.append("refused")
            return
        tried.append("read")

    attempt()


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 2
    clf = DPLeastSquares(classes=range(2)).fit(X, y)
    persistence.save(clf, tmp_path / "model")
    return clf, tmp_path / "model"


def test_a_damaged_model_is_refused(model, tried, examples):
    clf, folder = model
    whole = {path: path.read_bytes() for path in folder.iterdir()}

    @examples(60)
    @given(data=st.data())
    def attempt(data):
        for path, content in whole.items():
            path.write_bytes(content)
        path = data.draw(st.sampled_from(sorted(whole)))
        path.write_bytes(damaged(whole[path], data.draw))
        try:
            again = persistence.load(folder)
        except ModelFileError:
            tried.append("refused")
            return
        np.testing.assert_array_equal(again.coef_, clf.coef_)
        assert again.privacy_ == clf.privacy_
        tried.append("read")

    attempt()


def test_a_made_up_model_is_refused_or_consistent(model, tried, examples):
    """With right checksums, any one field replaced by any JSON value."""
    _, folder = model
    path = folder / "model.json"
    whole = json.loads(path.read_text())

    @examples(60)
    @given(
        name=st.sampled_from(sorted(set(whole) - {"sha256"})),
        inner=st.integers(0, 20),
        value=json_values,
    )
    def attempt(name, inner, value):
        document = json.loads(json.dumps(whole))
        if isinstance(document[name], dict) and inner < len(document[name]):
            document[name][sorted(document[name])[inner]] = value
        else:
            document[name] = value
        try:
            document["sha256"] = model_folder.digest(document)
            path.write_text(json.dumps(document))
        except ValueError:  # a lone surrogate
            return
        try:
            clf = persistence.load(folder)
        except ModelFileError:
            tried.append("refused")
            return
        assert np.all(np.isfinite(clf.decision_function(np.ones((2, 3)))))
        tried.append("read")

    attempt()


def test_a_made_up_statement_is_refused_or_states_a_number(model, tried, examples):
    fields = json.loads(model[0].privacy_.to_json())

    @examples(80)
    @given(name=st.sampled_from(sorted(fields)), value=json_values)
    def attempt(name, value):
        text = json.dumps({**fields, name: value})
        try:
            statement = PrivacyStatement.from_json(text)
        except PrivacyError:
            tried.append("refused")
            return
        assert statement.epsilon >= 0.0  # NaN fails
        assert 0.0 < statement.delta < 1.0
        assert str(statement)
        tried.append("read")

    attempt()
